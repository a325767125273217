//! Compiled operators by everything that they depend on, for callers whose tensors come one call at a time.

use std::collections::HashMap;
use std::mem::take;
use std::sync::{LazyLock, PoisonError, RwLock};

use crate::device::Device;
use crate::error::Error;
use crate::feature_level::FeatureLevel;
use crate::lowering::Lowered;
use crate::operator::{CompileOptions, CompiledOperator};

/// Operators of one generation. Two are kept: what nobody asked for while a whole one was filled goes.
const GENERATION: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    /// `None` of the CPU.
    ordinal: Option<usize>,
    level: FeatureLevel,
    lowered: Lowered,
    options: CompileOptions,
}

#[derive(Default)]
struct Generations {
    recent: HashMap<Key, CompiledOperator>,
    older: HashMap<Key, CompiledOperator>,
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
    /// An operator of other libraries' tensors, compiled now or in an earlier call of this process with the same arguments.
    ///
    /// Between 1,024 and 2,048 operators are kept, those that were asked for last; each keeps its GPU's context.
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
