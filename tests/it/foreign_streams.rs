//! Streams, contexts and graphs of another CUDA library, streams that wait for each other, and the largest tensors,
//! which only a GPU has memory for.
#![allow(unsafe_code)]

use crate::outside::{result, sys, CudaContext, Outside};
use dml_cuda::{
    reverse_subsequences, Address, BufferBinding, CompiledOperator, Device, RawStream, ScalarUnion,
    TensorDataType,
};
use dml_cuda_testing::{compile, cuda, fill, lanes, POISON};

#[test]
fn a_dispatch_is_captured_and_replayed_with_new_lengths() {
    let Some(device) = cuda("a_dispatch_is_captured_and_replayed_with_new_lengths") else {
        return;
    };
    let outside = Outside::new(&device);
    let stream = outside.stream();
    let operator = compile(&device, &lanes(TensorDataType::Float32, 3, 8).into());
    let input: Vec<f32> = (0..24).map(|k| k as f32).collect();
    let (from, to) = (
        outside.memory(bytemuck::cast_slice(&input), 0),
        outside.memory(&[POISON; 96], 0),
    );
    let mut lengths = outside.memory(&[0; 12], 0);

    // SAFETY: the stream is live; between begin and end only the dispatch is queued on it. Memory and operator
    // outlive every replay.
    let graph = unsafe {
        result::stream::begin_capture(
            stream,
            sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        )
        .expect("idle");
        outside
            .dispatch(&operator, &[from.tensor(), lengths.tensor()], to.tensor())
            .expect("capturable");
        let graph = result::stream::end_capture(stream).expect("captured");
        let mut nodes = 0;
        sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &mut nodes)
            .result()
            .expect("a graph");
        assert_eq!(nodes, 1, "one kernel launch and nothing else");
        result::graph::instantiate(
            graph,
            sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
        )
        .expect("instantiated")
    };
    for these in [[8u32, 0, 3], [1, 8, 100], [5, 5, 5]] {
        lengths.write(0, bytemuck::cast_slice(&these));
        // SAFETY: the graph and its stream are live, and so is all its memory.
        unsafe { result::graph::launch(graph, stream.cast()) }.expect("launched");
        let required =
            reverse_subsequences(&Device::cpu(), &input, &[3, 8], 1, &these).expect("right");
        assert_eq!(
            bytemuck::pod_collect_to_vec::<u8, f32>(&to.read()),
            required
        );
    }
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    let Some(device) = cuda("a_stream_waits_for_an_event_of_another") else {
        return;
    };
    let [bytes, end] = [64 << 20, 64];
    let [long, short, lengths] =
        [bytes, end, 4].map(|size| device.create_buffer(size).expect("small"));
    let fill_with = |value| {
        let [start, delta] = [value, 0].map(ScalarUnion::UInt8);
        let operator = compile(
            &device,
            &fill(TensorDataType::UInt8, &[bytes as u32], start, delta).into(),
        );
        operator.bind(&[], &long).expect("right")
    };
    let copy = compile(&device, &lanes(TensorDataType::UInt8, 1, end as u32).into());
    let copy = copy
        .bind(
            &[
                BufferBinding::range(&long, bytes - end, end),
                (&lengths).into(),
            ],
            &short,
        )
        .expect("right");
    let [first, second] = [(); 2].map(|()| device.create_stream().expect("a stream"));
    for value in (0..100).rev().chain([7]) {
        fill_with(value).dispatch(&first).expect("queued");
    }
    // The copy would read another value, or 0, without waiting.
    second
        .wait(&first.record_event().expect("recorded"))
        .expect("queued");
    copy.dispatch(&second).expect("queued");
    assert_eq!(short.to_vec::<u8>().expect("read"), [7; 64]);
}

/// The context that is current on this thread.
fn current() -> Option<sys::CUcontext> {
    result::ctx::get_current().expect("the driver is initialized")
}

#[test]
fn the_callers_context_stays_current() {
    let Some(device) = cuda("the_callers_context_stays_current") else {
        return;
    };
    let everything = |device: &Device| {
        let stream = device.create_stream().expect("a stream");
        let buffer = device.create_buffer_from(&[1.0f32; 16]).expect("small");
        let lengths = device.create_buffer_from(&[8u32; 2]).expect("small");
        let operator = compile(device, &lanes(TensorDataType::Float32, 2, 8).into());
        let table = operator
            .bind(&[(&buffer).into(), (&lengths).into()], &buffer)
            .expect("right");
        table.dispatch(&stream).expect("queued");
        let events = [(); 2].map(|()| stream.record_event().expect("recorded"));
        events[1].milliseconds_since(&events[0]).expect("timed");
        assert_eq!(buffer.to_vec::<f32>().expect("read"), [1.0; 16]);
    };
    // In a separate thread, because the driver keeps a current context per thread.
    std::thread::spawn(move || {
        everything(&device);
        assert_eq!(current(), None);
        drop(device);
        assert_eq!(current(), None);
        let last = Device::cuda_count() - 1;
        let mine = CudaContext::new(last).expect("a GPU is there");
        mine.bind_to_thread().expect("the context is live");
        for ordinal in 0..=last {
            everything(&Device::cuda(ordinal).expect("a GPU is there"));
            assert_eq!(
                current(),
                Some(mine.cu_ctx()),
                "after work on GPU {ordinal} of {}",
                last + 1
            );
        }
    })
    .join()
    .expect("no assertion failed");
}

#[test]
fn default_streams_are_accepted_by_their_handles() {
    let Some(device) = cuda("default_streams_are_accepted_by_their_handles") else {
        return;
    };
    let outside = Outside::new(&device);
    let operator = compile(&device, &lanes(TensorDataType::Float32, 1, 4).into());
    let input = outside.memory(bytemuck::cast_slice(&[1.0f32, 2.0, 3.0, 4.0]), 0);
    let lengths = outside.memory(bytemuck::cast_slice(&[3u32]), 0);
    for handle in 0..3usize {
        let output = outside.memory(&[POISON; 16], 0);
        // SAFETY: the memory is as large as the tensors; the handles are those of the default streams, waited for
        // below.
        unsafe {
            let [input, lengths, output] =
                [&input, &lengths, &output].map(|memory| Address(memory.tensor()));
            operator
                .dispatch_raw(&[input, lengths], output, RawStream(handle as *mut _))
                .expect("queued");
            result::stream::synchronize(handle as sys::CUstream).expect("no kernel failed");
        }
        assert_eq!(
            bytemuck::pod_collect_to_vec::<u8, f32>(&output.read()),
            [3.0, 2.0, 1.0, 4.0],
            "{handle}"
        );
    }
}

/// The positions at which the largest tensors are compared: both ends, and around 2²⁰ and 2³¹.
const WINDOWS: [u64; 5] = [
    0,
    1 << 20,
    (1 << 31) - 64,
    (1 << 31) + 5,
    u32::MAX as u64 - 131,
];

/// The largest tensors: 2³² − 1 elements of FLOAT32, and 2³² − 4 bytes (TotalTensorSizeInBytes is rounded up to 4 and
/// must be less than 2³² elements). Byte offsets need more than 32 bits, and counts use all 32.
#[test]
fn the_largest_tensors_are_right() {
    let Some(device) = cuda("the_largest_tensors_are_right") else {
        return;
    };
    let outside = Outside::new(&device);
    // SAFETY: nothing else uses these allocations, and both are freed at the end.
    let (big, other) = unsafe { (result::malloc_sync(1 << 34), result::malloc_sync(1 << 33)) };
    let (big, other) = (big.expect("16 GiB"), other.expect("8 GiB"));
    // SAFETY: callers dispatch on tensors that are inside these allocations.
    let dispatch = |operator: &CompiledOperator, inputs: &[u64], output| unsafe {
        outside.dispatch(operator, inputs, output)
    };
    // SAFETY: the windows are inside these allocations.
    let read = |address: u64, bytes| unsafe { outside.read(address, bytes) };

    let word_fill = fill(
        TensorDataType::UInt32,
        &[u32::MAX],
        ScalarUnion::UInt32(7),
        ScalarUnion::UInt32(3),
    );
    dispatch(&compile(&device, &word_fill.into()), &[], big).expect("dispatched");
    for first in WINDOWS {
        let required: Vec<u32> = (0..64)
            .map(|k| {
                (first as u32)
                    .wrapping_add(k)
                    .wrapping_mul(3)
                    .wrapping_add(7)
            })
            .collect();
        assert_eq!(
            bytemuck::pod_collect_to_vec::<u8, u32>(&read(big + 4 * first, 256)),
            required,
            "at {first}"
        );
    }

    // One lane of 2³² − 4 bytes, reversed; then in place.
    let count = u32::MAX - 3;
    let byte_fill = fill(
        TensorDataType::UInt8,
        &[count],
        ScalarUnion::UInt8(1),
        ScalarUnion::UInt8(77),
    );
    dispatch(&compile(&device, &byte_fill.into()), &[], big).expect("dispatched");
    let lane = compile(&device, &lanes(TensorDataType::UInt8, 1, count).into());
    let length = count - 12345;
    let lengths = outside.memory(&length.to_le_bytes(), 0);
    let value = |i: u64| (i as u8).wrapping_mul(77).wrapping_add(1);
    let reversed = |i: u64| {
        value(if i < u64::from(length) {
            u64::from(length) - 1 - i
        } else {
            i
        })
    };
    for output in [other, big] {
        dispatch(&lane, &[big, lengths.tensor()], output).expect("dispatched");
        for first in WINDOWS {
            let required: Vec<u8> = (first..first + 128).map(reversed).collect();
            assert_eq!(read(output + first, 128), required, "at {first}");
        }
    }
    // SAFETY: allocated above, and no queued work is left.
    unsafe {
        (
            result::free_sync(big).expect("freed"),
            result::free_sync(other).expect("freed"),
        )
    };
}
