//! A cache of compiled operators, for callers whose tensors come one call at a time. The key is everything that an
//! operator depends on.

use std::mem::take;
use std::sync::{LazyLock, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::desc::feature_level::FeatureLevel;
use crate::device::operator::{CompileOptions, CompiledOperator};
use crate::device::Device;
use crate::error::Error;
use crate::lowering::Lowered;

/// Operators per generation. The cache has two generations. When the recent one is full, it becomes the older one, and
/// the previous older one is dropped. A lookup moves an operator from the older to the recent one.
const GENERATION: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// `None` for the CPU.
    ordinal: Option<usize>,
    level: FeatureLevel,
    lowered: Lowered,
    options: CompileOptions,
}

#[derive(Default)]
struct Generations {
    recent: FxHashMap<Key, CompiledOperator>,
    older: FxHashMap<Key, CompiledOperator>,
}

impl Generations {
    fn keep(&mut self, key: Key, operator: CompiledOperator) {
        if self.recent.len() == GENERATION {
            self.older = take(&mut self.recent);
        }
        self.recent.insert(key, operator);
    }
}

static OPERATORS: LazyLock<RwLock<Generations>> = LazyLock::new(RwLock::default);

impl Device {
    /// The compiled operator for tensors of other libraries: compiled now, or by an earlier call of this process with
    /// the same arguments.
    ///
    /// A cache keeps the 1,024 to 2,048 operators that were requested last. Each keeps its GPU's context alive.
    ///
    /// # Errors
    ///
    /// The descriptor is rejected, or compilation failed.
    pub fn compile_lowered(&self, lowered: &Lowered, options: CompileOptions) -> Result<CompiledOperator, Error> {
        let key = Key { ordinal: self.ordinal(), level: self.feature_level(), lowered: *lowered, options };
        let read = OPERATORS.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(operator) = read.recent.get(&key) {
            return Ok(operator.clone());
        }
        let older = read.older.get(&key).cloned();
        drop(read);
        let operator = match older {
            Some(operator) => operator,
            None => self.compile_operator_with(&lowered.operator(self)?, options)?,
        };
        OPERATORS.write().unwrap_or_else(PoisonError::into_inner).keep(key, operator.clone());
        Ok(operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desc::data_type::TensorDataType;
    use crate::lowering::LoweredSequence;

    #[test]
    fn compiled_operators_are_found_again() {
        let device = Device::cpu();
        let of = |count| Lowered::Sequence(LoweredSequence::packed(TensorDataType::Int32, count, 1, 2));
        let compile = |lowered, options| device.compile_lowered(&lowered, options).expect("right");
        let (any, aligned) = (CompileOptions::default(), CompileOptions { pointer_alignment: 16, in_place: None });
        let first = compile(of(5), any);
        let same = |other: &CompiledOperator| std::ptr::eq(first.operator(), other.operator());
        assert!(same(&compile(of(5), any)));
        assert!(!same(&compile(of(5), aligned)) && !same(&compile(of(6), any)));
        // It stays while it is requested, and is gone after two generations of others.
        for count in 1000..6000 {
            compile(of(count), any);
            if count % 500 == 0 {
                assert!(same(&compile(of(5), any)));
            }
        }
        (6000..9000).for_each(|count| drop(compile(of(count), any)));
        assert!(!same(&compile(of(5), any)));
    }
}
