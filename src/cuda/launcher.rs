//! The launches of one compiled operator, with their kernels loaded.

use std::sync::Arc;

use super::driver::{self, Context, Kernel, StreamHandle};
use super::launch::{Addresses, Launch};
use super::select::{Launches, Selection};
use crate::error::{CompileError, CudaError};

/// Launches in the order in which they are tried. Empty if nothing moves.
type Loaded = Vec<(Launch, Arc<Kernel>)>;

/// Queues one operator on streams of one GPU.
#[derive(Debug)]
pub(crate) struct Launcher {
    context: Arc<Context>,
    out_of_place: Loaded,
    in_place: Loaded,
}

impl Launcher {
    /// Looks up the kernels of the launches, and loads those that this context uses for the first time.
    pub fn new(context: &Arc<Context>, selection: Selection) -> Result<Self, CompileError> {
        let load = |found: Launches| -> Result<Loaded, CudaError> {
            let load = |launch: Launch| context.kernel(launch.entry).map(|kernel| (launch, kernel));
            found.launches.into_iter().map(load).collect()
        };
        Ok(Self {
            context: context.clone(),
            out_of_place: load(selection.out_of_place)?,
            in_place: selection.in_place.map_or(Ok(Vec::new()), load)?,
        })
    }

    /// One launch of a kernel that belongs to no operator.
    pub fn of(context: &Arc<Context>, launch: Launch) -> Result<Self, CompileError> {
        let kernel = context.kernel(launch.entry)?;
        Ok(Self { context: context.clone(), out_of_place: vec![(launch, kernel)], in_place: Vec::new() })
    }

    /// Queues the first launch whose alignment the pointers satisfy. No launch means that there is nothing to do: the
    /// last one accepts all pointers that the operator was compiled for, and binding and raw dispatch check these.
    pub fn launch(&self, addresses: &Addresses<'_>, in_place: bool, stream: StreamHandle) -> Result<(), CudaError> {
        let launches = if in_place { &self.in_place } else { &self.out_of_place };
        match launches.iter().find(|(launch, _)| launch.takes(addresses)) {
            Some((launch, kernel)) => driver::launch(&self.context, kernel, launch, addresses, stream),
            None => {
                debug_assert!(launches.is_empty(), "no launch takes {addresses:?}");
                Ok(())
            }
        }
    }
}
