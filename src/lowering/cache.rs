//! A cache of compiled operators, for callers whose tensors come one call at a time. The key is everything that an
//! operator depends on.
//!
//! NumPy, PyTorch, JAX and ONNX Runtime hand over tensors, and never see an operator. Their calls repeat few layouts, so
//! most of them find their operator here by one hash, and nothing is validated or chosen again:
//!
//! ```text
//! tensors ── lowered ──> key ──┬─ recent generation ──────────────> operator
//!                              ├─ older generation, copied to recent ┘
//!                              └─ create, compile, insert ──────────┘
//! ```

use std::cell::RefCell;
use std::mem::take;

use rustc_hash::FxHashMap;

use crate::desc::{is_extension, FeatureLevel, TensorRole};
use crate::device::compile::Dispatches;
use crate::device::operator::CompiledOperator;
use crate::device::Device;
use crate::error::Error;
use crate::lowering::Lowered;
use crate::options::CompileOptions;

/// Operators per generation. The cache has two generations. When the recent one is full, it becomes the older one, and
/// the previous older one is dropped. A lookup copies an operator from the older to the recent one.
const GENERATION: usize = 512;

/// The ordinal and the level of the device, and the arguments.
type Key = (
    Option<usize>,
    FeatureLevel,
    Lowered,
    CompileOptions,
    Dispatches,
);

type Generation = FxHashMap<Key, CompiledOperator>;

#[derive(Default)]
struct Generations {
    recent: Generation,
    older: Generation,
}

thread_local! {
    /// Each thread has its own, so there is no lock: not for another thread, and not one that a fork could leave
    /// locked.
    static CACHE: RefCell<Generations> = RefCell::default();
}

impl Generations {
    fn find(&mut self, key: &Key) -> Option<CompiledOperator> {
        if let Some(operator) = self.recent.get(key) {
            return Some(operator.clone());
        }
        let operator = self.older.get(key)?.clone();
        self.insert(*key, operator.clone());
        Some(operator)
    }

    fn insert(&mut self, key: Key, operator: CompiledOperator) {
        if self.recent.len() == GENERATION {
            self.older = take(&mut self.recent);
        }
        self.recent.insert(key, operator);
    }
}

impl Device {
    /// The compiled operator for tensors of other libraries: compiled now, or by an earlier call of this thread with
    /// the same arguments.
    ///
    /// A thread's cache keeps the 512 to 1,024 operators that it requested last. Each keeps its GPU's context alive.
    ///
    /// # Errors
    ///
    /// The descriptor is rejected, or compilation failed.
    pub fn compile_lowered(
        &self,
        lowered: &Lowered,
        options: CompileOptions,
    ) -> Result<CompiledOperator, Error> {
        self.compile_lowered_for(lowered, options, Dispatches::default())
    }

    pub(crate) fn compile_lowered_for(
        &self,
        lowered: &Lowered,
        options: CompileOptions,
        dispatches: Dispatches,
    ) -> Result<CompiledOperator, Error> {
        let key: Key = (
            self.ordinal(),
            self.feature_level(),
            *lowered,
            options,
            dispatches,
        );
        // A thread that ends has no cache any more.
        if let Ok(Some(operator)) = CACHE.try_with(|cache| cache.borrow_mut().find(&key)) {
            return Ok(operator);
        }
        let desc = lowered.desc();
        // A level rejects what is not in it, but an extension of this library is in none.
        let is_extended = is_extension(
            desc.operator_type(),
            TensorRole::Output,
            desc.output_tensor().data_type,
        );
        let level = if is_extended {
            FeatureLevel::Extended
        } else {
            self.feature_level
        };
        let device = self.clone().with_feature_level(level);
        let operator = device.compile_for(&device.create_operator(desc)?, options, dispatches)?;
        let _ = CACHE.try_with(|cache| cache.borrow_mut().insert(key, operator.clone()));
        Ok(operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::TensorDataType;
    use crate::lowering::LoweredSequence;

    #[test]
    fn a_feature_level_that_rejects_a_sequence_rejects_it_here() {
        let device = Device::cpu().with_feature_level(crate::FeatureLevel::V4_1);
        let compile = |data_type| {
            let lowered = Lowered::Sequence(LoweredSequence::packed(data_type, 5, 1, 2));
            device.compile_lowered(&lowered, CompileOptions::default())
        };
        assert!(compile(TensorDataType::Int64).is_err());
        assert!(compile(TensorDataType::Int32).is_ok() && compile(TensorDataType::Float64).is_ok());
    }

    #[test]
    fn compiled_operators_are_found_again() {
        let device = Device::cpu();
        let of =
            |count| Lowered::Sequence(LoweredSequence::packed(TensorDataType::Int32, count, 1, 2));
        let compile = |lowered, options| device.compile_lowered(&lowered, options).expect("right");
        let (any, measured) = (
            CompileOptions::default(),
            CompileOptions::default().with_measure(true),
        );
        let first = compile(of(5), any);
        let same = |other: &CompiledOperator| std::ptr::eq(first.operator(), other.operator());
        assert!(same(&compile(of(5), any)));
        assert!(!same(&compile(of(5), measured)) && !same(&compile(of(6), any)));
        let at = Dispatches::at(None, crate::Address(16));
        assert!(!same(
            &device.compile_lowered_for(&of(5), any, at).expect("right")
        ));
        // It stays while it is requested, in this thread, and is gone after two generations of others.
        assert!(!same(
            &std::thread::scope(|scope| scope.spawn(|| compile(of(5), any)).join())
                .expect("compiled")
        ));
        for count in 1000..6000 {
            compile(of(count), any);
            if count % 250 == 0 {
                assert!(same(&compile(of(5), any)));
            }
        }
        (6000..9000).for_each(|count| drop(compile(of(count), any)));
        assert!(!same(&compile(of(5), any)));
    }
}
