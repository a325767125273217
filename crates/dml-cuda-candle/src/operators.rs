//! Compiled reversals, kept for the next call of the same layout.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use candle_core::{Error, Result};
use dml::{CompiledOperator, Device, OperatorDesc, ReverseSubsequencesDesc};

/// Most reversals that are kept; a model has a few.
const KEPT: usize = 256;

/// By the ordinal of the GPU (`None` is the CPU) and the descriptor.
type Kept = HashMap<(Option<usize>, ReverseSubsequencesDesc), CompiledOperator>;

static OPERATORS: LazyLock<Mutex<Kept>> = LazyLock::new(Mutex::default);

/// The reversal, compiled now or before.
pub fn reversal(ordinal: Option<usize>, desc: &ReverseSubsequencesDesc) -> Result<CompiledOperator> {
    let key = (ordinal, desc.clone());
    let operators = || OPERATORS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(operator) = operators().get(&key) {
        return Ok(operator.clone());
    }
    let operator = compile(&device(ordinal)?, desc.clone())?;
    let mut operators = operators();
    if operators.len() == KEPT {
        operators.clear();
    }
    operators.insert(key, operator.clone());
    Ok(operator)
}

/// A descriptor, validated and compiled.
pub fn compile(device: &Device, desc: impl Into<OperatorDesc>) -> Result<CompiledOperator> {
    let operator = device.create_operator(desc).map_err(Error::wrap)?;
    device.compile_operator(&operator).map_err(Error::wrap)
}

/// The device of an ordinal; `None` is the CPU.
pub fn device(ordinal: Option<usize>) -> Result<Device> {
    match ordinal {
        None => Ok(Device::cpu()),
        #[cfg(feature = "cuda")]
        Some(ordinal) => Device::cuda(ordinal).map_err(Error::wrap),
        #[cfg(not(feature = "cuda"))]
        Some(_) => Err(Error::NotCompiledWithCudaSupport),
    }
}
