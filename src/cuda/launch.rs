//! A kernel launch with its operator erased: entry point, grid, parameter bytes, and where the pointers go in them.

use bytemuck::Pod;

use super::kernels::Entry;

/// The parameter structure of a kernel: the `repr(C)` twin of a structure of its kernel file.
pub(crate) trait Parameters: Pod {
    /// Offsets in bytes of the pointers to the input, the lengths and the output.
    const POINTERS: [Option<usize>; 3];
}

/// A launch, with parameters of a kernel's own type until they are erased.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Launch<P = Erased> {
    pub entry: Entry,
    /// Thread blocks of the grid.
    pub blocks: u32,
    /// Threads per block.
    pub threads: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared: u32,
    /// What the pointers of the big tensors must be multiples of.
    pub alignment: u32,
    /// Bytes of the widest store of a thread.
    pub access: u32,
    pub params: P,
}

/// A parameter structure as bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Erased {
    /// The structure, without its pointers.
    words: Box<[u64]>,
    /// Where in it the pointers to the input, the lengths and the output go.
    pointers: [Option<usize>; 3],
}

/// Addresses of the tensors of one dispatch; 0 where there is no such tensor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    pub input: u64,
    pub lengths: u64,
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
        Launch { entry, blocks, threads, shared, alignment, access, params: Erased { words, pointers: P::POINTERS } }
    }
}

impl Launch {
    /// Hands the parameters, pointers filled in, to `launch`. Nothing is allocated.
    pub fn with_parameters<R>(&self, addresses: &Addresses, launch: impl FnOnce(&[u64]) -> R) -> R {
        let mut words = [0; MAX_WORDS];
        let words = &mut words[..self.params.words.len()];
        words.copy_from_slice(&self.params.words);
        for (offset, address) in self.params.pointers.iter().zip([addresses.input, addresses.lengths, addresses.output])
        {
            if let Some(offset) = offset {
                words[offset / 8] = address;
            }
        }
        launch(words)
    }

    /// Whether it takes these pointers.
    pub fn takes(&self, addresses: &Addresses) -> bool {
        (addresses.input | addresses.output).is_multiple_of(u64::from(self.alignment))
    }

    /// The parameter structure, without its pointers.
    #[cfg(test)]
    pub fn parameters(&self) -> &[u8] {
        bytemuck::cast_slice(&self.params.words)
    }

    /// Where in it the pointers to the input, the lengths and the output go, in bytes.
    #[cfg(test)]
    pub fn pointers(&self) -> [Option<usize>; 3] {
        self.params.pointers
    }
}
