//! Raw pointers and foreign streams: `CompiledOperator::dispatch_raw` at every alignment, captured into graphs, and
//! with arguments that it must refuse.
#![allow(unsafe_code)]

use crate::common::{assert_same, cases, cuda, lanes, oracle, GUARD, POISON};
use cudarc::driver::{result, sys, CudaContext};
use dml_cuda::{
    reverse_subsequences, BindingError, BufferTensorDesc, Device, DispatchError, FillValueSequenceDesc, OperatorDesc,
    ReverseSubsequencesDesc, ScalarUnion, TensorDataType, TensorRole,
};

/// Device memory that the test allocates, as another framework would, and uses on that framework's stream.
struct Foreign {
    address: u64,
    size: usize,
    stream: sys::CUstream,
}

impl Foreign {
    fn new(bytes: &[u8], stream: sys::CUstream) -> Self {
        // SAFETY: the context is current (`foreign_stream`), and the memory is freed by `drop` only.
        let address = unsafe { result::malloc_sync(bytes.len().max(1)) }.expect("the cases are small");
        let memory = Self { address, size: bytes.len(), stream };
        memory.write(bytes);
        memory
    }

    fn write(&self, bytes: &[u8]) {
        assert!(bytes.len() <= self.size);
        // SAFETY: the allocation is as large as the slice, which outlives the copy.
        unsafe { result::memcpy_htod_async(self.address, bytes, self.stream) }.expect("the memory is there");
        wait(self.stream);
    }

    fn read(&self) -> Vec<u8> {
        read(self.address, self.size, self.stream)
    }
}

fn wait(stream: sys::CUstream) {
    // SAFETY: the stream is never destroyed.
    unsafe { result::stream::synchronize(stream) }.expect("no kernel failed");
}

/// Bytes of device memory, after all work on the stream.
fn read(address: u64, size: usize, stream: sys::CUstream) -> Vec<u8> {
    let mut bytes = vec![0; size];
    // SAFETY: callers read inside their allocations; the slice outlives the copy.
    unsafe { result::memcpy_dtoh_async(&mut bytes, address, stream.cast()) }.expect("the memory is there");
    wait(stream);
    bytes
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: `new` allocated it, and it is freed only here; every test waits for its kernels.
        let _ = unsafe { result::free_sync(self.address) };
    }
}

/// A context and a stream made without the library.
fn foreign_stream() -> (std::sync::Arc<CudaContext>, sys::CUstream) {
    let context = CudaContext::new(0).expect("a GPU is there");
    context.bind_to_thread().expect("the context is live");
    (context, result::stream::create(result::stream::StreamKind::NonBlocking).expect("a stream"))
}

#[test]
fn the_case_table_is_right_at_every_alignment() {
    let Some(device) = cuda("the_case_table_is_right_at_every_alignment") else { return };
    let (_context, stream) = foreign_stream();
    for (n, case) in cases::all().iter().enumerate() {
        let output = case.desc.output_tensor();
        let width = oracle::width(output);
        // How many elements past a multiple of 16 bytes the input and the output begin.
        let (input_lead, output_lead) = ((n * 5 % 16) * width, (n * 3 % 16) * width);
        let place = |bytes: &[u8], lead: usize, total: usize| {
            let mut memory = vec![POISON; lead + total.max(bytes.len()) + GUARD];
            memory[lead..][..bytes.len()].copy_from_slice(bytes);
            Foreign::new(&memory, stream)
        };
        let inputs: Vec<Foreign> =
            case.inputs.iter().zip([input_lead, 8]).map(|(bytes, lead)| place(bytes, lead, 0)).collect();
        let pointers: Vec<u64> =
            inputs.iter().zip([input_lead, 8]).map(|(memory, lead)| memory.address + lead as u64).collect();
        let total = output.total_tensor_size_in_bytes as usize;
        let separate = place(&[], output_lead, total);
        let (out, lead) = if case.in_place { (&inputs[0], input_lead) } else { (&separate, output_lead) };
        let operator = crate::common::compile(&device, &case.desc);
        // SAFETY: the memory is as large as the tensors, nothing else uses it, `read` waits for the device.
        unsafe { operator.dispatch_raw(&pointers, out.address + lead as u64, stream.cast()) }
            .expect("the pointers are right");
        let bytes = out.read();
        assert!(
            bytes[..lead].iter().all(|&byte| byte == POISON),
            "bytes before the output were written: {:?}",
            case.desc
        );
        assert_same(&device, &case.desc, &bytes[lead..lead + total], &case.expected());
        assert!(
            bytes[lead + total..].iter().all(|&byte| byte == POISON),
            "bytes after the output were written: {:?}",
            case.desc
        );
    }
}

#[test]
fn a_dispatch_is_captured_and_replayed_with_new_lengths() {
    let Some(device) = cuda("a_dispatch_is_captured_and_replayed_with_new_lengths") else { return };
    let (_context, stream) = foreign_stream();
    let operator = crate::common::compile(&device, &lanes(TensorDataType::Float32, 3, 8).into());
    let input: Vec<f32> = (0..24).map(|k| k as f32).collect();
    let (from, to) = (Foreign::new(bytemuck::cast_slice(&input), stream), Foreign::new(&[POISON; 96], stream));
    let lengths = Foreign::new(&[0; 12], stream);

    // SAFETY: the stream is live; between begin and end only the dispatch is queued on it. Memory and operator
    // outlive every replay.
    let graph = unsafe {
        result::stream::begin_capture(stream, sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .expect("idle");
        operator.dispatch_raw(&[from.address, lengths.address], to.address, stream.cast()).expect("capturable");
        let graph = result::stream::end_capture(stream).expect("captured");
        let mut nodes = 0;
        sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &mut nodes).result().expect("a graph");
        assert_eq!(nodes, 1, "one kernel launch and nothing else");
        result::graph::instantiate(
            graph,
            sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
        )
        .expect("instantiated")
    };
    for these in [[8u32, 0, 3], [1, 8, 100], [5, 5, 5]] {
        lengths.write(bytemuck::cast_slice(&these));
        // SAFETY: the graph and its stream are live, and so is all its memory.
        unsafe { result::graph::launch(graph, stream.cast()) }.expect("launched");
        let required = reverse_subsequences(&Device::cpu(), &input, &[3, 8], 1, &these).expect("right");
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&to.read()), required);
    }
}

#[test]
fn wrong_pointers_are_refused_before_launch() {
    let Some(device) = cuda("wrong_pointers_are_refused_before_launch") else { return };
    let (_context, stream) = foreign_stream();
    let operator = crate::common::compile(&device, &lanes(TensorDataType::Float32, 2, 8).into());
    let memory = Foreign::new(&[POISON; 512], stream);
    let at = |offset: u64| memory.address + offset;
    // SAFETY: every call is refused, so that nothing is queued; this is what the test shows.
    let dispatch = |inputs: &[u64], output: u64| unsafe { operator.dispatch_raw(inputs, output, stream.cast()) };
    let binding = |result: Result<(), DispatchError>| match result {
        Err(DispatchError::Binding(error)) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(binding(dispatch(&[at(0)], at(256))), BindingError::Count { found: 1, required: 2 }));
    assert!(matches!(binding(dispatch(&[at(1), at(128)], at(256))), BindingError::Alignment { required: 4, .. }));
    assert!(matches!(binding(dispatch(&[at(0), at(128)], at(258))), BindingError::Alignment { required: 4, .. }));
    assert!(matches!(binding(dispatch(&[0, at(128)], at(256))), BindingError::Null { tensor: TensorRole::Input }));
    assert!(matches!(binding(dispatch(&[at(0), at(128)], at(32))), BindingError::Overlap { .. }));
    assert!(matches!(binding(dispatch(&[at(0), at(256)], at(256))), BindingError::Overlap { .. }));
    assert!(memory.read().iter().all(|&byte| byte == POISON));
}

/// The context that is current on this thread.
fn current() -> Option<sys::CUcontext> {
    result::ctx::get_current().expect("the driver is initialized")
}

#[test]
fn the_callers_context_stays_current() {
    let Some(device) = cuda("the_callers_context_stays_current") else { return };
    let everything = |device: &Device| {
        let stream = device.create_stream().expect("a stream");
        let buffer = device.create_buffer_from(&[1.0f32; 16]).expect("small");
        let lengths = device.create_buffer_from(&[8u32; 2]).expect("small");
        let operator = crate::common::compile(device, &lanes(TensorDataType::Float32, 2, 8).into());
        let table = operator.bind(&[(&buffer).into(), (&lengths).into()], &(&buffer).into()).expect("right");
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
            assert_eq!(current(), Some(mine.cu_ctx()), "after work on GPU {ordinal} of {}", last + 1);
        }
    })
    .join()
    .expect("no assertion failed");
}

#[test]
fn default_streams_are_accepted_by_their_handles() {
    let Some(device) = cuda("default_streams_are_accepted_by_their_handles") else { return };
    let (_context, stream) = foreign_stream();
    let operator = crate::common::compile(&device, &lanes(TensorDataType::Float32, 1, 4).into());
    let input = Foreign::new(bytemuck::cast_slice(&[1.0f32, 2.0, 3.0, 4.0]), stream);
    let lengths = Foreign::new(bytemuck::cast_slice(&[3u32]), stream);
    for handle in 0..3 {
        let output = Foreign::new(&[POISON; 16], stream);
        let handle: usize = handle;
        // SAFETY: the memory is as large as the tensors; the handles are those of the default streams, waited for below.
        unsafe {
            operator.dispatch_raw(&[input.address, lengths.address], output.address, handle as *mut _).expect("queued");
            result::stream::synchronize(handle as sys::CUstream).expect("no kernel failed");
        }
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&output.read()), [3.0, 2.0, 1.0, 4.0], "{handle}");
    }
}

/// The largest tensors: 2³² − 1 elements of FLOAT32, and 2³² − 4 bytes (TotalTensorSizeInBytes is rounded up to 4 and
/// must be less than 2³² elements). Byte offsets need more than 32 bits, and counts use all 32.
#[test]
fn the_largest_tensors_are_right() {
    let Some(device) = cuda("the_largest_tensors_are_right") else { return };
    let (_context, stream) = foreign_stream();
    let count = u32::MAX;
    let windows = [0u64, 1 << 20, (1 << 31) - 64, (1 << 31) + 5, u64::from(count) - 131];
    let read = |address: u64, bytes: usize| read(address, bytes, stream);
    let fill = |data_type, count: u32, start, delta| -> OperatorDesc {
        let output_tensor = BufferTensorDesc::packed(data_type, &[count]);
        FillValueSequenceDesc { output_tensor, value_data_type: data_type, value_start: start, value_delta: delta }
            .into()
    };

    // SAFETY: nothing else uses these allocations, and both are freed at the end.
    let (big, other) = unsafe { (result::malloc_sync(1 << 34), result::malloc_sync(1 << 33)) };
    let (big, other) = (big.expect("16 GiB"), other.expect("8 GiB"));
    let operator = crate::common::compile(
        &device,
        &fill(TensorDataType::UInt32, count, ScalarUnion::UInt32(7), ScalarUnion::UInt32(3)),
    );
    // SAFETY: 4·(2³² − 1) bytes lie inside 16 GiB; `read` waits.
    unsafe { operator.dispatch_raw(&[], big, stream.cast()) }.expect("dispatched");
    for first in windows {
        let required: Vec<u32> =
            (0..64).map(|k| (first as u32).wrapping_add(k).wrapping_mul(3).wrapping_add(7)).collect();
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, u32>(&read(big + 4 * first, 256)), required, "at {first}");
    }

    // One lane of 2³² − 4 bytes, reversed; then in place.
    let count = u32::MAX - 3;
    let operator = crate::common::compile(
        &device,
        &fill(TensorDataType::UInt8, count, ScalarUnion::UInt8(1), ScalarUnion::UInt8(77)),
    );
    // SAFETY: 2³² − 4 bytes lie inside 16 GiB.
    unsafe { operator.dispatch_raw(&[], big, stream.cast()) }.expect("dispatched");
    let lane = ReverseSubsequencesDesc {
        input_tensor: BufferTensorDesc::packed(TensorDataType::UInt8, &[count]),
        sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[1]),
        output_tensor: BufferTensorDesc::packed(TensorDataType::UInt8, &[count]),
        axis: 0,
    };
    let operator = crate::common::compile(&device, &lane.into());
    let length = count - 12345;
    let lengths = Foreign::new(&length.to_le_bytes(), stream);
    let value = |i: u64| (i as u8).wrapping_mul(77).wrapping_add(1);
    let reversed = |i: u64| value(if i < u64::from(length) { u64::from(length) - 1 - i } else { i });
    for (input, output) in [(big, other), (big, big)] {
        // SAFETY: both hold 2³² − 4 bytes; `read` waits before anything else uses them.
        unsafe { operator.dispatch_raw(&[input, lengths.address], output, stream.cast()) }.expect("dispatched");
        for first in windows {
            let required: Vec<u8> = (first..first + 128).map(reversed).collect();
            assert_eq!(read(output + first, 128), required, "at {first}");
        }
    }
    // SAFETY: allocated above, and no queued work is left.
    unsafe { (result::free_sync(big).expect("freed"), result::free_sync(other).expect("freed")) };
}
