//! Options for compiling kernels for one operator.

/// Whether the driver compiles kernels with the sizes and strides of one operator as constants. A generic kernel reads
/// them, and serves every operator.
///
/// A specialized kernel is up to 1.2 times as fast where little work is done, and rarely slower. The driver compiles it
/// in some 13 ms, or takes it from its cache on disk in less than 1 ms: this is for fixed shapes. If the driver cannot
/// compile it, the generic kernel runs, without an error. Nothing changes on the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Specialize {
    /// Kernels are generic, but for dispatches that are captured into a CUDA graph: these are compiled once and
    /// replayed for ever. The first one that is captured takes the time to compile, and its kernel stays loaded as for
    /// [`Kept`](Self::Kept). Drivers older than CUDA 12.3 cannot compile during a capture: there, captured dispatches
    /// take kernels that are already loaded.
    #[default]
    Captured,
    /// Kernels are generic.
    Never,
    /// Kernels are specialized, and unloaded with the last clone of the operator.
    Owned,
    /// Kernels are specialized, and stay loaded while the process uses the GPU through any object of this crate: until
    /// then, graphs that captured them can be replayed after the operator is gone. At most
    /// [`MAX_KEPT`](Self::MAX_KEPT) stay loaded per GPU. Further ones are generic.
    Kept,
}

impl Specialize {
    /// How many specialized kernels stay loaded.
    pub const MAX_KEPT: usize = 1024;
}
