//! A kernel launch, independent of its operator: entry point, grid, parameter bytes, and where the pointers go in them.

use bytemuck::Pod;

use super::kernels::Entry;

/// The parameter structure of a kernel: the `repr(C)` twin of a structure of its kernel file.
pub(crate) trait Parameters: Pod {
    /// Offsets in bytes of the pointers to the inputs, in the order of the signature.
    const INPUTS: &'static [usize] = &[];
    /// Offset of the pointer to the output.
    const OUTPUT: usize;
}

/// A launch, with parameters of a kernel's own type until they are erased.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Launch<P = Erased> {
    pub entry: Entry,
    /// Thread blocks of the grid.
    pub blocks: u32,
    /// Threads per thread block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per thread block.
    pub shared: u32,
    /// The required alignment of the first input's and the output's pointers.
    pub alignment: u32,
    /// Bytes of a thread's widest store.
    pub access: u32,
    pub params: P,
}

/// A parameter structure as bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Erased {
    /// The structure, without its pointers.
    pub words: Box<[u64]>,
    /// The offsets in it of the pointers to the inputs.
    pub inputs: &'static [usize],
    /// The offset in it of the pointer to the output.
    pub output: usize,
}

/// Addresses of the tensors of one dispatch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses<'a> {
    /// In the order of the signature.
    pub inputs: &'a [u64],
    pub output: u64,
}

/// Words of the largest parameter structure.
const MAX_WORDS: usize = 80;

impl<P: Parameters> Launch<P> {
    pub fn erase(self) -> Launch {
        const { assert!(size_of::<P>().is_multiple_of(8) && size_of::<P>() <= MAX_WORDS * 8) }
        let Self { entry, blocks, threads, shared, alignment, access, params } = self;
        let mut words = vec![0u64; size_of::<P>() / 8].into_boxed_slice();
        bytemuck::cast_slice_mut(&mut words).copy_from_slice(bytemuck::bytes_of(&params));
        let params = Erased { words, inputs: P::INPUTS, output: P::OUTPUT };
        Launch { entry, blocks, threads, shared, alignment, access, params }
    }
}

impl Launch {
    /// The parameters with these pointers. Does not allocate.
    pub fn parameters(&self, addresses: &Addresses<'_>) -> [u64; MAX_WORDS] {
        let mut words = [0; MAX_WORDS];
        words[..self.params.words.len()].copy_from_slice(&self.params.words);
        for (offset, &address) in self.params.inputs.iter().zip(addresses.inputs) {
            words[offset / 8] = address;
        }
        words[self.params.output / 8] = addresses.output;
        words
    }

    /// Whether these pointers are aligned enough for it.
    pub fn takes(&self, addresses: &Addresses<'_>) -> bool {
        let first = addresses.inputs.first().copied().unwrap_or_default();
        (first | addresses.output).is_multiple_of(u64::from(self.alignment))
    }
}
