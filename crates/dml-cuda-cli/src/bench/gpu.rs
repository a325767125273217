//! Times baselines on a GPU, in a graph or queued. They are the driver's copies and fills, and the kernels of plain.ptx.
//!
//! A baseline says how fast a dispatch could be at best. What is fastest depends on the size and the GPU, so that several
//! kinds are timed in several ways, and the fastest counts:
//!
//! ```text
//! kinds   Copy, Fill   the driver's        Store, Swap, Empty   kernels
//! ways    InGraph      as a CUDA graph     Queued               one by one
//! ```
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::ptr::null_mut;

use cudarc::driver::result::{self, module, DriverError};
use cudarc::driver::sys;
use dml_cuda::{Buffer, BufferError, Device, RawStream, Stream};

use super::statistics::median;
use crate::options::Repeated;
use crate::run::samples::{Result, Samples};

/// How a baseline reaches the GPU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Launched one by one, so that the host may be slower than the GPU.
    Queued,
    /// Launched as one CUDA graph.
    InGraph,
}

/// What a baseline does with a buffer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A copy of another buffer, by the driver.
    Copy,
    /// A fill with one byte, by the driver.
    Fill,
    /// A fill by a kernel that stores 16 bytes a thread.
    Store,
    /// Two halves that change places, by a kernel.
    Swap,
    /// A kernel that does nothing.
    Empty,
}

/// A GPU that baselines are timed on.
pub struct Gpu {
    /// Declared first: it waits for its work before the kernels are gone.
    pub stream: Stream,
    kernels: Kernels,
}

/// The kernels, loaded into the GPU's primary context.
struct Kernels {
    device: sys::CUdevice,
    module: sys::CUmodule,
}

impl Gpu {
    /// Makes its primary context current on this thread.
    pub fn new(device: &Device) -> Result<Self> {
        let ordinal = device.ordinal().ok_or("plain work is on a GPU only")?;
        let device_of_driver =
            result::device::get(ordinal as i32).map_err(failed("opening the device"))?;
        // SAFETY: a device of the driver. `drop` releases its context.
        let context = unsafe { result::primary_ctx::retain(device_of_driver) }
            .map_err(failed("opening the device"))?;
        let mut kernels = Kernels {
            device: device_of_driver,
            module: null_mut(),
        };
        let ptx = CString::new(include_str!("plain.ptx"))?;
        // SAFETY: the context is retained. The PTX is a text that ends in a NUL and outlives the call.
        let module = unsafe {
            result::ctx::set_current(context).and_then(|()| module::load_data(ptx.as_ptr().cast()))
        };
        kernels.module = module.map_err(failed("loading plain.ptx"))?;
        Ok(Self {
            stream: device.create_stream()?,
            kernels,
        })
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        // SAFETY: `Gpu::new` loaded and retained them. The stream has waited for the launches.
        unsafe {
            if !self.module.is_null() {
                let _ = module::unload(self.module);
            }
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

/// The buffers that a baseline writes, and that a copy reads. They take turns, and the first `bytes` bytes of each take
/// part.
pub struct Memory<'a> {
    /// Empty unless the baseline is a copy.
    pub from: &'a [Buffer],
    pub to: &'a [Buffer],
    pub bytes: u64,
}

impl Gpu {
    /// The samples of the kind and way with the lowest median.
    pub fn fastest(
        &self,
        memory: &Memory,
        kinds: &[Kind],
        ways: &[Way],
        times: &Repeated,
    ) -> Result<Samples> {
        let mut all = Vec::new();
        for kind in kinds {
            for way in ways {
                all.push(self.sample(memory, *kind, *way, times)?);
            }
        }
        let fastest = all
            .into_iter()
            .min_by(|a, b| median(&a.gpu).total_cmp(&median(&b.gpu)));
        Ok(fastest.unwrap_or_default())
    }

    /// Times one kind in one way.
    fn sample(&self, memory: &Memory, kind: Kind, way: Way, times: &Repeated) -> Result<Samples> {
        let queue = |stream| self.queue(memory, kind, times.repeat, stream);
        if way == Way::Queued {
            let raw = self.stream.raw().ok_or("plain work is on a GPU only")?;
            return Samples::take(times, &self.stream, None, || queue(raw));
        }
        let mut queued = Ok(());
        // SAFETY: the buffers and the kernels are borrowed longer than the graph lives.
        let graph = unsafe {
            self.stream
                .device()
                .record_raw_graph(|stream| queued = queue(stream))
        };
        // An error while the graph is recorded is better than that of the incomplete graph.
        queued?;
        Samples::take(times, &self.stream, graph?.as_mut(), || Ok(()))
    }

    /// Queues a baseline on a stream, several times in a row. Kernels move whole thread blocks' shares, at least one.
    fn queue(&self, memory: &Memory, kind: Kind, repeat: u32, stream: RawStream) -> Result<()> {
        let &Memory { from, to, bytes } = memory;
        let stream = stream.0.cast();
        // A share is what a thread block of 256 threads moves: vectors of 16 bytes.
        let (entry, share) = match kind {
            Kind::Copy | Kind::Fill => (None, 1),
            Kind::Store => (Some(c"store"), 256 * 16),
            Kind::Swap => (Some(c"swap"), 256 * 16 * 4),
            Kind::Empty => (Some(c"empty"), 1),
        };
        let blocks = (bytes / share).max(1);
        let length = blocks * share;
        for buffer in from.iter().chain(to) {
            let size_in_bytes = buffer.size_in_bytes();
            if size_in_bytes < length {
                return Err(BufferError::OutOfRange {
                    offset: 0,
                    length,
                    size_in_bytes,
                }
                .into());
            }
        }
        let kernel = entry
            .map(|entry| self.kernels.find(entry))
            .transpose()
            .map_err(failed("loading plain.ptx"))?;
        for n in 0..repeat as usize {
            // The distance of both halves, or the byte that is stored.
            let word = if kind == Kind::Swap { length / 2 } else { 1 };
            let mut words = [address(to, n), word];
            // SAFETY: the context is current, and the stream is the device's. The buffers are large enough. They wait
            // for the work before they are freed, and the kernels stay as long. A kernel takes one structure of two
            // words.
            let queued = unsafe {
                match kernel {
                    None if kind == Kind::Copy => result::memcpy_dtod_async(
                        words[0],
                        address(from, n),
                        bytes as usize,
                        stream,
                    ),
                    None => result::memset_d8_async(words[0], 1, bytes as usize, stream),
                    Some(kernel) => {
                        let mut parameters = [words.as_mut_ptr().cast()];
                        result::launch_kernel(
                            kernel,
                            (blocks as u32, 1, 1),
                            (256, 1, 1),
                            0,
                            stream,
                            &mut parameters,
                        )
                    }
                }
            };
            queued.map_err(failed("queuing plain work"))?;
        }
        Ok(())
    }
}

impl Kernels {
    /// Finds a kernel by its name in plain.ptx.
    fn find(&self, entry: &CStr) -> Result<sys::CUfunction, DriverError> {
        // SAFETY: the module is loaded.
        unsafe { module::get_function(self.module, entry.to_owned()) }
    }
}

/// The address of the buffer whose turn it is.
fn address(buffers: &[Buffer], n: usize) -> u64 {
    buffers[n % buffers.len()].raw().unwrap_or_default().0
}

/// Describes a failure of the driver.
fn failed(verb: &'static str) -> impl Fn(DriverError) -> String {
    move |error| {
        format!(
            "cuda: {verb} failed: {error} (CUDA error {})",
            error.0 as u32
        )
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    #[test]
    fn a_baseline_does_what_it_is_compared_for_inside_of_its_buffers() {
        // Not by dml_cuda_testing, which the published crate does not have.
        let is_required = std::env::var_os("REQUIRE_CUDA").is_some_and(|value| value == "1");
        let Ok(device) = Device::cuda(0) else {
            return assert!(!is_required, "REQUIRE_CUDA=1, but there is no GPU");
        };
        let gpu = Gpu::new(&device).expect("loaded");
        let [a, b] =
            [1u8, 2].map(|value| device.create_buffer_from(&[value; 40_000]).expect("small"));
        let run = |kind, bytes, repeat| {
            let times = &Repeated {
                iterations: 1,
                repeat,
                adapter: None,
            };
            // A second swap would undo the first.
            let ways = if kind == Kind::Swap {
                &[Way::InGraph][..]
            } else {
                &[Way::InGraph, Way::Queued]
            };
            gpu.fastest(
                &Memory {
                    from: from_ref(&b),
                    to: from_ref(&a),
                    bytes,
                },
                &[kind],
                ways,
                times,
            )
            .map(drop)
        };
        let bytes = || a.to_vec::<u8>().expect("bytes");
        run(Kind::Copy, 10_000, 2).expect("it fits");
        assert!(bytes()[..10_000] == [2; 10_000] && bytes()[10_000..] == [1; 30_000]);
        run(Kind::Swap, 32_768, 1).expect("it fits");
        assert!(bytes()[..16_384] == [1; 16_384] && bytes()[16_384..26_384] == [2; 10_000]);
        run(Kind::Empty, 0, 3).expect("it fits");
        run(Kind::Store, 16_384, 1).expect("it fits");
        assert!(
            bytes()[..4] == [1, 0, 0, 0]
                && bytes()[16_384..26_384] == [2; 10_000]
                && bytes()[32_768..] == [1; 7232]
        );
        run(Kind::Fill, 40_000, 1).expect("it fits");
        assert!(bytes() == [1; 40_000]);
        for kind in [Kind::Copy, Kind::Fill, Kind::Swap] {
            let refused = run(kind, 60_000, 1).expect_err("too many").to_string();
            assert!(
                refused.contains("must be within the 40000 bytes"),
                "{refused}"
            );
        }
    }
}
