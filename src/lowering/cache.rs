//! A cache of compiled operators, for callers whose tensors come one call at a time. The key is everything that an
//! operator depends on.

use std::mem::{replace, take};
use std::process;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{RwLock, TryLockError};

use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::desc::{FeatureLevel, TensorDataType};
use crate::device::operator::{CompileOptions, CompiledOperator, Operator};
use crate::device::Device;
use crate::error::Error;
use crate::lowering::Lowered;

/// Operators per generation. The cache has two generations. When the recent one is full, it becomes the older one, and
/// the previous older one is dropped. A lookup moves an operator from the older to the recent one.
const GENERATION: usize = 1024;

/// The ordinal and the level of the device, and the arguments.
type Key = (Option<usize>, FeatureLevel, Lowered, CompileOptions);

type Generation = FxHashMap<Key, CompiledOperator>;

struct Generations {
    recent: Generation,
    older: Generation,
}

/// A process uses one. A forked child that finds it locked for ever takes the next one.
static CACHES: [RwLock<Generations>; 8] = [const {
    RwLock::new(Generations {
        recent: Generation::with_hasher(FxBuildHasher),
        older: Generation::with_hasher(FxBuildHasher),
    })
}; 8];
static CURRENT: AtomicUsize = AtomicUsize::new(0);
/// The process that owns the current one, from the first operator on.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// How often a lock is tried: longer than another thread keeps it, unless the system has stopped that thread.
const TRIES: u32 = 256;

/// Takes the lock of the cache, and never waits for it. In a forked child, a lock that another thread of the parent had
/// stays taken for ever. Without the cache, a call compiles its operator.
fn take_lock<Guard>(
    attempt: impl Fn(&'static RwLock<Generations>) -> Result<Guard, TryLockError<Guard>>,
) -> Option<Guard> {
    let current = CURRENT.load(Ordering::Relaxed);
    let taken = (0..TRIES).find_map(|_| match attempt(&CACHES[current]) {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => {
            std::hint::spin_loop();
            None
        }
    });
    if taken.is_none() && PROCESS.swap(process::id(), Ordering::Relaxed) != process::id() {
        CURRENT.store((current + 1).min(CACHES.len() - 1), Ordering::Relaxed);
    }
    taken
}

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
        let key: Key = (self.ordinal(), self.feature_level(), *lowered, options);
        let found = take_lock(RwLock::try_read).map(|generations| {
            let recent = generations.recent.get(&key).cloned();
            (recent.is_some(), recent.or_else(|| generations.older.get(&key).cloned()))
        });
        let (is_recent, found) = found.unwrap_or_default();
        let operator = match (found, lowered) {
            (Some(operator), _) if is_recent => return Ok(operator),
            (Some(operator), _) => operator,
            (None, Lowered::Sequence(sequence)) if sequence.data_type == TensorDataType::Float64 => {
                self.compile_operator_with(&Operator::float64_sequence(sequence.desc())?, options)?
            }
            (None, _) => self.compile_operator_with(&self.create_operator(lowered.desc())?, options)?,
        };
        let _ = PROCESS.compare_exchange(0, process::id(), Ordering::Relaxed, Ordering::Relaxed);
        let mut dropped = Generation::default(); // after the lock
        if let Some(mut generations) = take_lock(RwLock::try_write) {
            if generations.recent.len() == GENERATION {
                let full = take(&mut generations.recent);
                dropped = replace(&mut generations.older, full);
            }
            generations.recent.insert(key, operator.clone());
        }
        drop(dropped);
        Ok(operator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lowering::LoweredSequence;

    #[test]
    fn compiled_operators_are_found_again() {
        let device = Device::cpu();
        let of = |count| Lowered::Sequence(LoweredSequence::packed(TensorDataType::Int32, count, 1, 2));
        let compile = |lowered, options| device.compile_lowered(&lowered, options).expect("right");
        let (any, aligned) = (CompileOptions::default(), CompileOptions::default().with_pointer_alignment(16));
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
