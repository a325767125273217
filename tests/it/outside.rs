//! Memory and streams that the library did not make: the host's, or those of another CUDA library.
#![allow(unsafe_code)]

use dml_cuda::{Address, CompiledOperator, Device, DispatchError, RawStream};
use dml_cuda_testing::{GUARD, POISON};

pub use cudarc::driver::{result, sys, CudaContext};

/// The outside objects that dispatches on a device need: for a GPU its context, current on this thread, and a stream.
pub struct Outside {
    stream: Option<(std::sync::Arc<CudaContext>, sys::CUstream)>,
}

impl Outside {
    pub fn new(device: &Device) -> Self {
        let stream = device.ordinal().map(|ordinal| {
            let context = CudaContext::new(ordinal).expect("a GPU is there");
            context.bind_to_thread().expect("the context is live");
            (
                context,
                result::stream::create(result::stream::StreamKind::NonBlocking).expect("a stream"),
            )
        });
        Self { stream }
    }

    pub fn stream(&self) -> sys::CUstream {
        self.stream
            .as_ref()
            .map_or(std::ptr::null_mut(), |(_, stream)| *stream)
    }

    /// Dispatches on the stream.
    ///
    /// # Safety
    /// The promises of [`CompiledOperator::dispatch_raw`].
    pub unsafe fn dispatch(
        &self,
        operator: &CompiledOperator,
        at: &[u64],
        output: u64,
    ) -> Result<(), DispatchError> {
        let inputs: Vec<Address> = at.iter().copied().map(Address).collect();
        // SAFETY: promises 1, 2 and 4 of `dispatch_raw`. Promise 3: the stream lives as long as `self`.
        unsafe { operator.dispatch_raw(&inputs, Address(output), RawStream(self.stream().cast())) }
    }

    /// Memory with a tensor that begins `lead` bytes past a multiple of 16, between poison.
    pub fn memory(&self, tensor: &[u8], lead: usize) -> Memory<'_> {
        let all = [&vec![POISON; lead], tensor, &[POISON; GUARD]].concat();
        let mut host = vec![0u128; all.len().div_ceil(16)];
        let address = match self.stream {
            // SAFETY: the context is current, and only `drop` frees the memory.
            Some(_) => unsafe { result::malloc_sync(all.len()) }.expect("the cases are small"),
            None => host.as_mut_ptr() as u64,
        };
        let mut memory = Memory {
            outside: self,
            host,
            address,
            lead,
            size: tensor.len(),
        };
        memory.write(0, &all);
        memory
    }

    /// Copies from an address, after all work on the stream.
    ///
    /// # Safety
    /// The bytes are allocated on the stream's GPU.
    pub unsafe fn read(&self, address: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        // SAFETY: the bytes are allocated, and the slice outlives the copy.
        unsafe {
            result::memcpy_dtoh_async(&mut bytes, address, self.stream())
                .expect("the memory is there");
            result::stream::synchronize(self.stream()).expect("no kernel failed");
        }
        bytes
    }
}

pub struct Memory<'a> {
    outside: &'a Outside,
    host: Vec<u128>,
    address: u64,
    lead: usize,
    size: usize,
}

impl Memory<'_> {
    /// The address of the tensor.
    pub fn tensor(&self) -> u64 {
        self.address + self.lead as u64
    }

    /// Replaces bytes, counted from the first of the memory.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.lead + self.size + GUARD);
        if self.outside.stream.is_some() {
            // SAFETY: the bytes are inside the allocation, and the slice outlives the copy.
            unsafe {
                let stream = self.outside.stream();
                result::memcpy_htod_async(self.address + at as u64, bytes, stream)
                    .expect("the memory is there");
                result::stream::synchronize(stream).expect("no kernel failed");
            }
            return;
        }
        bytemuck::cast_slice_mut(&mut self.host)[at..][..bytes.len()].copy_from_slice(bytes);
    }

    /// The tensor's bytes, after all work on the stream. Panics if bytes around it were written.
    pub fn read(&self) -> Vec<u8> {
        let all = bytemuck::cast_slice(&self.host)[..self.lead + self.size + GUARD].to_vec();
        let all = match self.outside.stream {
            // SAFETY: they are the bytes of the allocation.
            Some(_) => unsafe { self.outside.read(self.address, all.len()) },
            None => all,
        };
        let (before, rest) = all.split_at(self.lead);
        let (tensor, behind) = rest.split_at(self.size);
        assert!(
            before.iter().chain(behind).all(|&byte| byte == POISON),
            "bytes around the tensor were written"
        );
        tensor.to_vec()
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        if self.stream.is_some() {
            // SAFETY: `new` created it, and it is destroyed only here; every test waits for its kernels.
            let _ = unsafe { result::stream::destroy(self.stream()) };
        }
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if self.outside.stream.is_some() {
            // SAFETY: `memory` allocated it, and it is freed only here; every test waits for its kernels.
            let _ = unsafe { result::free_sync(self.address) };
        }
    }
}
