//! A kernel launch, independent of its operator: entry point, grid and parameters, without the pointers.

use bytemuck::Pod;

use super::kernels::Entry;

/// Thread blocks, and the resources of an SM that each takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub blocks: u32,
    pub threads: u32,
    /// Bytes of dynamic shared memory.
    pub shared: u32,
}

/// A launch of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Launch {
    pub entry: Entry,
    pub grid: Grid,
    /// The required alignment of the first input's and the output's pointers.
    pub alignment: u32,
    /// Bytes of a thread's widest store.
    pub access: u32,
    /// The kernel's parameter structure. It begins with the pointers, which are 0 here: to the inputs in the order of
    /// the signature, then to the output.
    pub params: Box<[u64]>,
}

/// Addresses of the tensors of one dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// In the order of the signature.
    pub inputs: &'a [u64],
    pub output: u64,
}

/// Words of the largest parameter structure.
const MAX_WORDS: usize = 70;

/// A parameter structure as words.
pub(crate) fn words<P: Pod>(params: P) -> Box<[u64]> {
    const { assert!(size_of::<P>().is_multiple_of(8) && size_of::<P>() <= MAX_WORDS * 8) }
    let mut words = vec![0; size_of::<P>() / 8].into_boxed_slice();
    bytemuck::cast_slice_mut(&mut words).copy_from_slice(bytemuck::bytes_of(&params));
    words
}

impl Launch {
    /// A launch that has no parameters yet.
    pub fn new(entry: Entry, grid: Grid, alignment: u32, access: u32) -> Self {
        Self {
            entry,
            grid,
            alignment,
            access,
            params: Box::default(),
        }
    }

    /// The parameters with these pointers. Does not allocate.
    pub fn parameters(&self, addresses: &Addresses<'_>) -> [u64; MAX_WORDS] {
        let mut words = [0; MAX_WORDS];
        words[..self.params.len()].copy_from_slice(&self.params);
        words[..addresses.inputs.len()].copy_from_slice(addresses.inputs);
        words[addresses.inputs.len()] = addresses.output;
        words
    }

    /// Whether these pointers are aligned enough for it.
    pub fn takes(&self, addresses: &Addresses<'_>) -> bool {
        let first = addresses.inputs.first().copied().unwrap_or_default();
        (first | addresses.output).is_multiple_of(u64::from(self.alignment))
    }
}
