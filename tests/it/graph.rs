//! Graphs: recorded dispatches are launched in order, read what the buffers contain at the launch, and keep alive what
//! they use.

use dml_cuda::{Buffer, Device, DeviceError, DispatchError, Graph, TensorDataType};
use dml_cuda_testing::{compile, devices, lanes};

const LANES: u32 = 3;
const SIZE: u32 = 8;

/// A graph that reverses the input into the output, then the output in place by other lengths. Only the graph keeps its
/// tables. Also returns its buffers.
fn twice(device: &Device) -> (Graph, [Buffer; 4]) {
    let operator = compile(device, &lanes(TensorDataType::Float32, LANES, SIZE).into());
    let bytes = u64::from(LANES * SIZE * 4);
    let buffer = |bytes| device.create_buffer(bytes).expect("memory");
    let [input, output, first, second] = [bytes, bytes, 12, 12].map(buffer);
    let copy = operator
        .bind(&[(&input).into(), (&first).into()], &output)
        .expect("bound");
    let again = operator
        .bind(&[(&output).into(), (&second).into()], &output)
        .expect("bound");
    let graph = device.record_graph([&copy, &again]).expect("recorded");
    (graph, [input, output, first, second])
}

/// Fills the inputs.
fn write([input, _, first, second]: &[Buffer; 4], values: &[f32], lengths: ([u32; 3], [u32; 3])) {
    input
        .write(0, bytemuck::cast_slice(values))
        .expect("written");
    first
        .write(0, bytemuck::cast_slice(&lengths.0))
        .expect("written");
    second
        .write(0, bytemuck::cast_slice(&lengths.1))
        .expect("written");
}

/// The result of both reversals, computed on the CPU.
fn reversed(values: &[f32], lengths: [u32; 3]) -> Vec<f32> {
    let mut values = values.to_vec();
    for (lane, length) in values.chunks_mut(SIZE as usize).zip(lengths) {
        lane[..(length as usize).min(SIZE as usize)].reverse();
    }
    values
}

#[test]
fn a_graph_runs_in_order_and_reads_the_buffers_at_launch() {
    for device in devices("a_graph_runs_in_order_and_reads_the_buffers_at_launch") {
        let (mut graph, buffers) = twice(&device);
        let streams = [(); 2].map(|()| device.create_stream().expect("a stream"));
        for (n, lengths) in [
            ([1, 5, 8], [8, 0, 3]),
            ([0, 8, 2], [2, 2, 9]),
            ([7, 7, 7], [8, 8, 8]),
        ]
        .into_iter()
        .enumerate()
        {
            let values: Vec<f32> = (0..LANES * SIZE)
                .map(|k| (k + 100 * n as u32) as f32)
                .collect();
            write(&buffers, &values, lengths);
            for stream in &streams {
                graph.launch(stream).expect("launched");
                graph.launch(stream).expect("launched");
            }
            let required = reversed(&reversed(&values, lengths.0), lengths.1);
            assert_eq!(
                buffers[1].to_vec::<f32>().expect("read"),
                required,
                "{device}"
            );
        }
        // It outlives everything it was made of, and can be dropped while it runs.
        let [_, output, ..] = buffers;
        graph.launch(&streams[0]).expect("launched");
        drop((graph, streams));
        assert_eq!(output.to_vec::<f32>().expect("read").len(), 24);
    }
}

#[test]
fn milliseconds_are_the_gpus_time_of_the_last_launch() {
    for device in devices("milliseconds_are_the_gpus_time_of_the_last_launch") {
        let (mut graph, _) = twice(&device);
        let stream = device.create_stream().expect("a stream");
        let before = graph.milliseconds();
        graph.launch(&stream).expect("launched");
        let after = graph.milliseconds();
        assert_eq!(before, Err(DeviceError::NotLaunched));
        if device.ordinal().is_some() {
            let milliseconds = after.expect("it was launched");
            assert!(
                milliseconds > 0.0 && milliseconds < 10.0,
                "{milliseconds} ms"
            );
        } else {
            assert_eq!(after, Err(DeviceError::NoEvents));
        }
        // A graph without dispatches can also be launched.
        let mut nothing = device.record_graph([]).expect("recorded");
        nothing.launch(&stream).expect("launched");
        stream.synchronize().expect("done");
    }
}

#[test]
fn graphs_refuse_streams_and_operators_of_another_device() {
    let all = devices("graphs_refuse_streams_and_operators_of_another_device");
    let [cpu, gpu] = all.as_slice() else { return };
    for (device, other) in [(cpu, gpu), (gpu, cpu)] {
        let (found, required) = (other.to_string(), device.to_string());
        let (mut graph, _) = twice(device);
        let launched = graph.launch(&other.create_stream().expect("a stream"));
        assert_eq!(launched, Err(DispatchError::Device { found, required }));
        let operator = compile(other, &lanes(TensorDataType::UInt8, 2, 4).into());
        let [buffer, lengths] = [8, 8].map(|bytes| other.create_buffer(bytes).expect("memory"));
        let table = operator
            .bind(&[(&buffer).into(), (&lengths).into()], &buffer)
            .expect("bound");
        let (found, required) = (device.to_string(), other.to_string());
        assert_eq!(
            device.record_graph([&table]).err(),
            Some(DispatchError::Graph { found, required })
        );
    }
}
