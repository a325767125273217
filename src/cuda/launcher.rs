//! The launches of one compiled operator, with their kernels loaded.

use std::sync::Arc;

use super::driver::{self, Context, LoadedKernel, StreamHandle};
use super::launch::{Addresses, Launch};
use crate::error::{CompileError, CudaError};
use crate::mode::Mode;
use crate::specialize::Specialize;

/// Launches in the order in which they are tried. Empty if nothing moves.
type Loaded = Vec<(Launch, Arc<LoadedKernel>)>;

/// Queues one operator on streams of one GPU.
#[derive(Debug)]
pub(crate) struct Launcher {
    context: Arc<Context>,
    /// In the order of `Mode::ALL`.
    modes: [Loaded; 2],
    /// Whether it has kernels of its own, which are unloaded with it.
    owns_kernels: bool,
}

impl Launcher {
    /// Looks up the kernels of the launches, in the order of `Mode::ALL`, and loads those that this context uses for the first
    /// time.
    pub fn new(
        context: &Arc<Context>,
        [copying, in_place]: [Vec<Launch>; 2],
        specialize: Specialize,
    ) -> Result<Self, CompileError> {
        let load = |launches: Vec<Launch>| -> Result<Loaded, CudaError> {
            let load = |launch: Launch| {
                let specialized = context.specialized_kernel(&launch, specialize);
                let kernel = specialized.map_or_else(|| context.kernel(launch.entry), Ok)?;
                Ok((launch, kernel))
            };
            launches.into_iter().map(load).collect()
        };
        let modes = [load(copying)?, load(in_place)?];
        Ok(Self { context: context.clone(), modes, owns_kernels: specialize == Specialize::Owned })
    }

    /// Whether all its kernels are specialized.
    #[cfg(all(test, in_repository))]
    pub fn is_specialized(&self) -> bool {
        let is_generic = |(launch, kernel): &(Launch, Arc<LoadedKernel>)| {
            self.context.kernel(launch.entry).is_ok_and(|generic| Arc::ptr_eq(&generic, kernel))
        };
        !self.modes.iter().flatten().any(is_generic)
    }

    /// Keeps the context and the kernels until the process ends.
    #[cfg(feature = "cudarc-0_19")]
    pub fn keep(&self) {
        self.context.keep();
        if self.owns_kernels {
            self.let_kernels_stay();
        }
    }

    fn let_kernels_stay(&self) {
        self.modes.iter().flatten().for_each(|(_, kernel)| kernel.stay());
    }

    /// Queues the first launch whose alignment the pointers satisfy. No launch means that there is nothing to do: the
    /// last one accepts all pointers that the operator was compiled for, and binding and raw dispatch check these.
    pub fn launch(&self, addresses: &Addresses<'_>, mode: Mode, stream: StreamHandle) -> Result<(), CudaError> {
        let launches = mode.of(&self.modes);
        match launches.iter().find(|(launch, _)| launch.takes(addresses)) {
            Some((launch, kernel)) => driver::launch(&self.context, kernel, launch, addresses, stream),
            None => {
                debug_assert!(launches.is_empty(), "no launch takes {addresses:?}");
                Ok(())
            }
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        // Work of bound operators may still be queued. If waiting for it fails (for example because this thread captures a
        // stream), the kernels leak.
        if self.owns_kernels && driver::wait_for_streams(&self.context).is_err() {
            self.let_kernels_stay();
        }
    }
}
