//! Buffers: memory of a device.
//!
//! A buffer of a GPU is memory of its primary context, that of the CPU is aligned memory of the process behind a lock.
//! Reading, writing and dropping a buffer wait for the work that is queued on this crate's streams, so that safe code
//! cannot see half-written memory. Raw pointers have their own promises (`dispatch_raw`).

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bytemuck::Pod;

use crate::address::Address;
use crate::cuda;
use crate::device::Device;
use crate::error::BufferError;

/// Host memory aligned to 16 bytes, as the binding rules promise.
#[derive(Debug)]
pub(crate) struct HostBytes(Box<[u128]>);

impl HostBytes {
    fn new(size_in_bytes: u64) -> Result<Self, BufferError> {
        let failed = |reason| out_of_memory(size_in_bytes, reason);
        let words = usize::try_from(size_in_bytes.div_ceil(16))
            .map_err(|error| failed(error.to_string()))?;
        // The system provides zero pages lazily: they cost nothing until they are written.
        let memory = bytemuck::allocation::try_zeroed_slice_box(words);
        memory
            .map(Self)
            .map_err(|()| failed("the system has no more memory".to_owned()))
    }

    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// Memory of a device. Cheap to clone: clones share the memory. It lives as long as any clone, and as any
/// [`BindingTable`](crate::BindingTable) made with one.
///
/// ```
/// let buffer = dml_cuda::Device::cpu().create_buffer_from(&[1u32, 2, 3])?;
/// buffer.write(4, &7u32.to_ne_bytes())?;
/// assert_eq!(buffer.to_vec::<u32>()?, [1, 7, 3]);
/// # Ok::<(), dml_cuda::BufferError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Buffer {
    device: Device,
    size_in_bytes: u64,
    storage: Arc<Storage>,
}

#[derive(Debug)]
enum Storage {
    Host(RwLock<HostBytes>),
    Cuda(cuda::Memory),
}

impl Device {
    /// Creates a buffer of `size_in_bytes` bytes, all zero, aligned to at least 16 bytes.
    pub fn create_buffer(&self, size_in_bytes: u64) -> Result<Buffer, BufferError> {
        let storage = match &self.context {
            Some(context) => Storage::Cuda(cuda::Memory::new(context, size_in_bytes)?),
            None => Storage::Host(RwLock::new(HostBytes::new(size_in_bytes)?)),
        };
        Ok(Buffer {
            device: self.clone(),
            size_in_bytes,
            storage: Arc::new(storage),
        })
    }

    /// A buffer that holds `values`, padded with zeros to a multiple of 4 bytes.
    pub fn create_buffer_from<T: Pod>(&self, values: &[T]) -> Result<Buffer, BufferError> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let buffer = self.create_buffer((bytes.len() as u64).next_multiple_of(4))?;
        buffer.write(0, bytes)?;
        Ok(buffer)
    }
}

impl Buffer {
    /// Bytes of the buffer.
    pub fn size_in_bytes(&self) -> u64 {
        self.size_in_bytes
    }

    /// The device that owns the memory.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The address in the GPU's memory, for other libraries; `None` on the CPU. It is valid as long as any clone of the
    /// buffer. Reading, writing or dropping a buffer waits only for work on this crate's own streams.
    pub fn raw(&self) -> Option<Address> {
        self.cuda_memory().map(|memory| Address(memory.address()))
    }

    /// Whether both are clones of one buffer.
    pub fn same_as(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.storage, &other.storage)
    }

    /// Writes bytes at an offset, after all work queued on this crate's streams.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), BufferError> {
        self.check_range(offset, bytes.len())?;
        match &*self.storage {
            Storage::Host(memory) => {
                lock_to_write(memory).bytes_mut()[offset as usize..][..bytes.len()]
                    .copy_from_slice(bytes);
                Ok(())
            }
            Storage::Cuda(memory) => Ok(memory.write(offset, bytes)?),
        }
    }

    /// Reads bytes from an offset, after all work queued on this crate's streams.
    pub fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<(), BufferError> {
        self.check_range(offset, bytes.len())?;
        match &*self.storage {
            Storage::Host(memory) => {
                let length = bytes.len();
                bytes.copy_from_slice(&lock_to_read(memory).bytes()[offset as usize..][..length]);
                Ok(())
            }
            Storage::Cuda(memory) => Ok(memory.read(offset, bytes)?),
        }
    }

    /// The first `count` elements of the buffer, whose bytes are read as `T`, after all work queued on this crate's streams.
    pub fn read_elements<T: Pod>(&self, count: usize) -> Result<Vec<T>, BufferError> {
        let length = (count as u64).saturating_mul(size_of::<T>() as u64);
        let size_in_bytes = self.size_in_bytes;
        if length > size_in_bytes {
            return Err(BufferError::OutOfRange {
                offset: 0,
                length,
                size_in_bytes,
            });
        }
        let out_of_memory = |()| out_of_memory(length, "the system has no more memory".to_owned());
        let mut values = bytemuck::allocation::try_zeroed_vec(count).map_err(out_of_memory)?;
        self.read(0, bytemuck::cast_slice_mut(&mut values))?;
        Ok(values)
    }

    /// All elements of the buffer, after all work queued on this crate's streams. A buffer has bytes, and no type: they are read
    /// as `T`, whatever they were written as, if they are whole elements.
    pub fn to_vec<T: Pod>(&self) -> Result<Vec<T>, BufferError> {
        let (size_in_bytes, element_size) = (self.size_in_bytes, size_of::<T>());
        if element_size == 0 || size_in_bytes % element_size as u64 != 0 {
            return Err(BufferError::PartialElement {
                size_in_bytes,
                element_size,
            });
        }
        self.read_elements((size_in_bytes / element_size as u64) as usize)
    }

    fn check_range(&self, offset: u64, length: usize) -> Result<(), BufferError> {
        let (length, size_in_bytes) = (length as u64, self.size_in_bytes);
        match offset.checked_add(length) {
            Some(end) if end <= size_in_bytes => Ok(()),
            _ => Err(BufferError::OutOfRange {
                offset,
                length,
                size_in_bytes,
            }),
        }
    }

    pub(crate) fn host(&self) -> Option<&RwLock<HostBytes>> {
        match &*self.storage {
            Storage::Host(memory) => Some(memory),
            Storage::Cuda(_) => None,
        }
    }

    pub(crate) fn cuda_memory(&self) -> Option<&cuda::Memory> {
        match &*self.storage {
            Storage::Host(_) => None,
            Storage::Cuda(memory) => Some(memory),
        }
    }
}

fn out_of_memory(size_in_bytes: u64, reason: String) -> BufferError {
    BufferError::OutOfMemory {
        backend: "cpu",
        size_in_bytes,
        reason,
    }
}

/// Ignores poisoning: a panic cannot leave invalid bytes, because all bytes are valid.
pub(crate) fn lock_to_write(memory: &RwLock<HostBytes>) -> RwLockWriteGuard<'_, HostBytes> {
    memory.write().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn lock_to_read(memory: &RwLock<HostBytes>) -> RwLockReadGuard<'_, HostBytes> {
    memory.read().unwrap_or_else(PoisonError::into_inner)
}
