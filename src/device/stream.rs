//! Streams, which order work on a device, and events, which time it and order streams.
//!
//! The CPU device has streams as well, so that a program need not ask which device it has: its work is done when a call
//! returns. It has no events.

use crate::address::RawStream;
use crate::cuda;
use crate::device::Device;
use crate::error::DeviceError;

/// A sequence of work on a device.
#[derive(Debug)]
pub struct Stream {
    device: Device,
    /// `None` on the CPU.
    pub(crate) queue: Option<cuda::Stream>,
}

impl Device {
    /// A new stream. Work queued on one stream runs in order; work on two streams may run at once.
    pub fn create_stream(&self) -> Result<Stream, DeviceError> {
        let queue = self.context.as_ref().map(cuda::Stream::new).transpose()?;
        Ok(Stream {
            device: self.clone(),
            queue,
        })
    }

    /// Makes the work that is queued on a stream from now on wait for what another stream has so far, such as that of a
    /// library that made an array. Does not wait itself, and does nothing on the CPU. While the stream is being
    /// captured into a CUDA graph, it can wait only for a stream of the same capture. The work of other streams must be
    /// done before the replay.
    ///
    /// # Errors
    ///
    /// [`DeviceError::Cuda`]: the driver failed.
    ///
    /// # Safety
    ///
    /// Both are live streams of this GPU and of its primary context, or 0, 1 or 2.
    #[allow(unsafe_code)]
    pub unsafe fn wait_for_raw_stream(
        &self,
        stream: RawStream,
        awaited: RawStream,
    ) -> Result<(), DeviceError> {
        if let Some(context) = &self.context {
            // SAFETY: the promise above. The handles are not used after this call.
            let [stream, awaited] =
                unsafe { [stream, awaited].map(|raw| cuda::StreamHandle::borrow(raw)) };
            cuda::Event::order(context, stream, awaited)?;
        }
        Ok(())
    }
}

impl Stream {
    /// The device of the stream.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Waits until all work queued so far is done.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        if let Some(stream) = &self.queue {
            stream.synchronize()?;
        }
        Ok(())
    }

    /// Records an event after all work queued so far.
    pub fn record_event(&self) -> Result<Event, DeviceError> {
        if let Some(stream) = &self.queue {
            return Ok(Event {
                event: stream.record_event()?,
                device: self.device.clone(),
            });
        }
        Err(DeviceError::NoEvents)
    }

    /// Makes the work that is queued from now on wait for an event of this device, such as one of another stream. Does
    /// not wait itself.
    ///
    /// # Errors
    ///
    /// [`DeviceError::DifferentDevices`]; [`DeviceError::Cuda`].
    pub fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        if !self.device.same_as(&event.device) {
            return Err(DeviceError::DifferentDevices);
        }
        if let Some(stream) = &self.queue {
            event.event.make_wait(stream.handle())?;
        }
        Ok(())
    }

    /// The driver's handle of the stream; `None` on the CPU. It lives as long as this stream.
    ///
    /// While the stream is being captured into a CUDA graph, nothing can wait for it: reading and writing a
    /// [`Buffer`](crate::Buffer) of the GPU and [`synchronize`](Self::synchronize) are errors, and buffers
    /// that are dropped meanwhile leak. The capture stays valid. Streams that the caller made and passes to
    /// [`CompiledOperator::dispatch_raw`](crate::CompiledOperator::dispatch_raw) have no such limit.
    pub fn raw(&self) -> Option<RawStream> {
        self.queue
            .as_ref()
            .map(|stream| RawStream(stream.handle().raw().cast()))
    }
}

/// A point in the work of a stream, with the time at which it was reached. GPU only.
///
/// ```
/// use dml_cuda::{Device, DeviceError};
/// let device = Device::cuda(0).unwrap_or(Device::cpu());
/// let stream = device.create_stream()?;
/// match stream.record_event() {
///     Ok(begin) => assert!(stream.record_event()?.milliseconds_since(&begin)? >= 0.0),
///     Err(error) => assert_eq!(error, DeviceError::NoEvents), // the CPU device
/// }
/// # Ok::<(), DeviceError>(())
/// ```
#[derive(Debug)]
pub struct Event {
    device: Device,
    event: cuda::Event,
}

impl Event {
    /// Milliseconds from `earlier` to this event, after waiting for both.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<f64, DeviceError> {
        if !self.device.same_as(&earlier.device) {
            return Err(DeviceError::DifferentDevices);
        }
        Ok(self.event.milliseconds_since(&earlier.event)?)
    }
}
