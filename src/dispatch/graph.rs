//! Graphs: dispatches that are recorded once and then launched together.

use crate::address::RawStream;
use crate::cuda;
use crate::device::stream::Stream;
use crate::device::Device;
use crate::dispatch::binding::BindingTable;
use crate::error::{DeviceError, DispatchError};
use crate::trace::span;

/// Dispatches that are launched together, in order, at the host cost of one. This is a CUDA graph; DirectML's
/// counterpart is a command list.
///
/// It keeps operators and buffers alive. Every launch reads what the buffers contain at that time. On the CPU a launch
/// runs the dispatches one after another.
///
/// ```
/// use dml_cuda::{BufferTensorDesc, Device, FillValueSequenceDesc, ScalarUnion, TensorDataType};
/// let device = Device::cpu();
/// let fill = device.create_operator(FillValueSequenceDesc {
///     output_tensor: BufferTensorDesc::packed(TensorDataType::Float32, &[4]),
///     value_data_type: TensorDataType::Float32,
///     value_start: ScalarUnion::Float32(1.0),
///     value_delta: ScalarUnion::Float32(0.5),
/// })?;
/// let fill = device.compile_operator(&fill)?;
/// let buffer = device.create_buffer(16)?;
/// let mut graph = device.record_graph(&[fill.bind(&[], &buffer)?])?;
/// let stream = device.create_stream()?;
/// graph.launch(&stream)?;
/// assert_eq!(buffer.to_vec::<f32>()?, [1.0, 1.5, 2.0, 2.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Graph {
    device: Device,
    /// Declared before `tables`, so that it is destroyed before the memory that it uses.
    recorded: Option<cuda::Graph>,
    tables: Vec<BindingTable>,
    launched: bool,
}

impl Device {
    /// Records dispatches of this device's operators. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Graph`] for a table of another device; [`DispatchError::Cuda`].
    pub fn record_graph<'a>(
        &self,
        tables: impl IntoIterator<Item = &'a BindingTable>,
    ) -> Result<Graph, DispatchError> {
        let tables: Vec<BindingTable> = tables.into_iter().cloned().collect();
        span!("record", device = self, dispatches = tables.len());
        if let Some(other) = tables
            .iter()
            .map(|table| table.operator().device())
            .find(|of| !of.same_as(self))
        {
            return Err(DispatchError::Graph {
                found: self.to_string(),
                required: other.to_string(),
            });
        }
        let record = |context| {
            cuda::Graph::record(context, |stream| {
                tables.iter().try_for_each(|table| table.queue(stream))
            })
        };
        let recorded = self.context.as_ref().map(record).transpose()?;
        Ok(Graph {
            device: self.clone(),
            recorded,
            tables,
            launched: false,
        })
    }

    /// Records what `queue` queues on a stream of the GPU, such as raw dispatches, and copies, fills and kernels of
    /// other libraries: as a graph, which is launched like one of [`record_graph`](Self::record_graph). `None` on the
    /// CPU.
    ///
    /// `queue` is called once, with the GPU's primary context current. Nothing runs yet.
    ///
    /// # Errors
    ///
    /// [`DispatchError::Cuda`].
    ///
    /// # Safety
    ///
    /// The caller promises that `queue` leaves the stream's capture as it is, and that the work may run whenever the
    /// graph is launched: memory and kernels are there as long as the graph, and until its last launch is done.
    #[allow(unsafe_code)]
    pub unsafe fn record_raw_graph(
        &self,
        queue: impl FnOnce(RawStream),
    ) -> Result<Option<Graph>, DispatchError> {
        let Some(context) = &self.context else {
            return Ok(None);
        };
        let recorded = Some(cuda::Graph::record(context, |stream| {
            queue(RawStream(stream.raw().cast()));
            Ok(())
        })?);
        Ok(Some(Graph {
            device: self.clone(),
            recorded,
            tables: Vec::new(),
            launched: false,
        }))
    }
}

impl Graph {
    /// Queues the dispatches on a stream of the graph's device. They run after the graph's previous launch, even if
    /// that was on another stream.
    pub fn launch(&mut self, stream: &Stream) -> Result<(), DispatchError> {
        span!(
            "launch",
            device = self.device,
            dispatches = self.tables.len()
        );
        if !stream.device().same_as(&self.device) {
            let (found, required) = (stream.device().to_string(), self.device.to_string());
            return Err(DispatchError::Device { found, required });
        }
        if let (Some(graph), Some(stream)) = (&mut self.recorded, &stream.queue) {
            graph.launch(stream.handle())?;
            self.launched = true;
            return Ok(());
        }
        self.tables
            .iter()
            .try_for_each(|table| table.dispatch(stream))?;
        self.launched = true;
        Ok(())
    }

    /// Waits for the last launch and returns its duration in milliseconds, from the begin of the first dispatch to the
    /// end of the last. GPU only.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NotLaunched`]; [`DeviceError::NoEvents`] on the CPU; [`DeviceError::Cuda`].
    pub fn milliseconds(&self) -> Result<f64, DeviceError> {
        if !self.launched {
            return Err(DeviceError::NotLaunched);
        }
        if let Some(graph) = &self.recorded {
            return Ok(graph.milliseconds()?);
        }
        Err(DeviceError::NoEvents)
    }
}
