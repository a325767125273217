//! What nodes of a session have in common: a device, and operators compiled so far.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use dml::{Address, CompileOptions, CompiledOperator, Device};
use ort_sys::OrtKernelContext;

use super::api::{Ort, Result};
use super::lower::{Reversal, Sequence};

/// Kernels that sessions made, runs of them, and runs whose output was the input, in this process.
pub(crate) static KERNELS: AtomicU64 = AtomicU64::new(0);
pub(crate) static RUNS: AtomicU64 = AtomicU64::new(0);
pub(crate) static IN_PLACE_RUNS: AtomicU64 = AtomicU64::new(0);

/// Operators that a node keeps. A model with more shapes than that compiles again, which takes microseconds.
const KEPT: usize = 32;

/// What an operator was compiled for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lowered {
    Reversal(Reversal),
    Sequence(Sequence),
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Key {
    lowered: Lowered,
    options: CompileOptions,
}

/// A node's. ONNX Runtime runs it from several threads at once.
pub struct Kernel {
    pub ort: Ort,
    pub device: Device,
    compiled: Mutex<Vec<(Key, CompiledOperator)>>,
}

impl Kernel {
    pub fn new(ort: Ort, device: Device) -> Self {
        KERNELS.fetch_add(1, Ordering::Relaxed);
        Self { ort, device, compiled: Mutex::default() }
    }

    /// Whether memory of the node is the host's.
    pub fn is_on_host(&self) -> bool {
        self.device.ordinal().is_none()
    }

    /// Compiles, or finds, an operator and dispatches it on the run's stream.
    ///
    /// # Safety
    ///
    /// The addresses are those of tensors as `lowered` describes them, which ONNX Runtime keeps until the work on its stream is
    /// done, and lets nobody else write.
    pub unsafe fn dispatch(
        &self,
        lowered: Lowered,
        inputs: &[Address],
        output: Address,
        context: *mut OrtKernelContext,
    ) -> Result<()> {
        // The lengths' alignment matters to no kernel.
        let input = inputs.first().copied();
        let aligned = (input.unwrap_or(0) | output).is_multiple_of(16);
        let options =
            CompileOptions { pointer_alignment: if aligned { 16 } else { 0 }, in_place: Some(input == Some(output)) };
        if options.in_place == Some(true) {
            IN_PLACE_RUNS.fetch_add(1, Ordering::Relaxed);
        }
        let operator = self.operator(Key { lowered, options })?;
        let stream = if self.is_on_host() { std::ptr::null_mut() } else { self.ort.stream(context)? };
        // SAFETY: the caller's promise; the stream is the run's; kernels stay loaded (`api::cuda_device`).
        Ok(unsafe { operator.dispatch_raw(inputs, output, stream) }?)
    }

    fn operator(&self, key: Key) -> Result<CompiledOperator> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, operator)) = compiled.iter().find(|(known, _)| *known == key) {
            return Ok(operator.clone());
        }
        let operator = match key.lowered {
            Lowered::Reversal(reversal) => self.device.create_operator(reversal.desc()?)?,
            Lowered::Sequence(sequence) => sequence.operator(&self.device)?,
        };
        let operator = self.device.compile_operator_with(&operator, key.options)?;
        if compiled.len() == KEPT {
            compiled.remove(0);
        }
        compiled.push((key, operator.clone()));
        Ok(operator)
    }
}
