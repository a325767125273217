//! The work of these tests' processes, each with the mock driver.

use std::collections::BTreeSet;

use cudarc::driver::{result, sys};
use dml_cuda::lowering::{ForeignTensor, Lowered, LoweredSequence, ReversalArrays};
use dml_cuda::{
    Address, BufferBinding, CompileOptions, CompiledOperator, Device, DeviceError, Error,
    ExplainedLaunch, ExplainedMode, FeatureLevel, Operator, RawStream, ScalarUnion, Specialize,
    TensorDataType,
};

type Done = Result<(), Box<dyn std::error::Error>>;

/// A reversal of two lanes of eight FLOAT32.
fn reversal(device: &Device) -> Result<Operator, Error> {
    Ok(device.create_operator(dml_cuda_testing::lanes(TensorDataType::Float32, 2, 8))?)
}

/// Reverses in place on a new stream, which is dropped with its work.
fn reverse(device: &Device, reversal: &CompiledOperator) -> Result<(), Error> {
    let [data, lengths] = [64, 8].map(|size| device.create_buffer(size).expect("small"));
    let table = reversal.bind(&[(&data).into(), (&lengths).into()], &data)?;
    Ok(table.dispatch(&device.create_stream()?)?)
}

/// A fill of eight FLOAT64.
fn fill(device: &Device, options: CompileOptions) -> Result<CompiledOperator, Error> {
    let [start, delta] = [0.0, 1.0].map(ScalarUnion::Float64);
    let device = device.clone().with_feature_level(FeatureLevel::Extended);
    let operator = device.create_operator(dml_cuda_testing::fill(
        TensorDataType::Float64,
        &[8],
        start,
        delta,
    ))?;
    Ok(device.compile_operator_with(&operator, options)?)
}

/// The environment sets a device's options.
pub fn environment() -> Done {
    let set = CompileOptions::default()
        .with_specialize(Specialize::Always)
        .with_measure(true);
    assert_eq!(Device::cpu().with_environment()?.compile_options(), set);
    Ok(())
}

/// Does work in threads at once.
fn in_threads(count: usize, work: impl Fn(usize) -> Result<(), Error> + Sync) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..count).map(|n| scope.spawn(move || work(n))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no thread panics"))
    })
}

/// Uses the whole public API on a GPU and drops objects in difficult orders.
pub fn scenario() -> Done {
    for adapter in Device::cuda_adapters()? {
        assert_eq!((adapter.name.as_str(), adapter.ordinal), ("Fake GPU", 0));
    }
    let (device, again) = (Device::cuda(0)?, Device::cuda(0)?);
    let reversal = reversal(&device)?;
    let [start, delta] = [0.0, 1.0].map(ScalarUnion::Float32);
    let fill = device.create_operator(dml_cuda_testing::fill(
        TensorDataType::Float32,
        &[2, 8],
        start,
        delta,
    ))?;
    let (reversal, fill) = (
        device.compile_operator(&reversal)?,
        again.compile_operator(&fill)?,
    );
    let in_place = again.compile_operator(reversal.operator())?;
    let input = device.create_buffer_from(&[1.0f32; 16])?;
    let lengths = again.create_buffer_from(&[3u32, 8])?;
    let output = device.create_buffer(64)?;
    let (stream, other) = (device.create_stream()?, again.create_stream()?);
    let copying = reversal.bind(&[(&input).into(), (&lengths).into()], &output)?;
    let earlier = stream.record_event()?;
    copying.dispatch(&stream)?;
    in_place
        .bind(&[(&input).into(), (&lengths).into()], &input)?
        .dispatch(&other)?;
    let later = stream.record_event()?;
    assert_eq!(later.milliseconds_since(&earlier)?, 0.5);
    other.wait(&later)?;
    assert_eq!(
        Device::cpu().create_stream()?.wait(&later),
        Err(DeviceError::DifferentDevices)
    );
    let filling = fill.bind(&[], &output)?;
    filling.dispatch(&stream)?;
    let mut graph = device.record_graph([&copying, &filling, &copying])?;
    graph.launch(&stream)?;
    graph.launch(&other)?;
    assert!(graph.milliseconds()? > 0.0);
    graph.launch(&stream)?;
    assert_eq!(output.to_vec::<f32>()?.len(), 16);
    // Drops streams, buffers and devices while work is queued. The tables keep what they need.
    copying.dispatch(&stream)?;
    graph.launch(&stream)?;
    drop((stream, device, input, again));
    copying.dispatch(&other)?;
    graph.launch(&other)?;
    drop((output, lengths, copying, reversal, filling));
    graph.launch(&other)?;
    drop(graph);
    other.synchronize()?;
    in_threads(4, |n| {
        let device = Device::cuda(0)?;
        let (stream, buffer) = (device.create_stream()?, device.create_buffer(64)?);
        let table = fill.bind(&[], &buffer)?;
        table.dispatch(&stream)?;
        if n % 2 == 0 {
            drop(stream);
        }
        Ok(())
    })?;
    drop((other, fill, in_place));
    assert_eq!(
        dml_cuda::fill_value_sequence(&Device::cuda(0)?, &[4], 1u8, 1i8)?.len(),
        4
    );
    Ok(())
}

/// Mistakes that the mock driver must report: a leaked buffer, and memory that is freed while a stream uses it.
#[allow(unsafe_code)]
pub fn misuse() -> Done {
    let device = Device::cuda(0)?;
    std::mem::forget(device.create_buffer(64)?);
    let operator = fill(&device, CompileOptions::default())?;
    // SAFETY: the mock driver's kernels touch nothing, and nothing else of this process uses the memory.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0)?)?;
        let address = result::malloc_sync(64)?;
        operator.dispatch_raw(&[], Address(address), RawStream::NULL)?;
        result::free_sync(address)?;
    }
    // The range that is bound is the one that a launch uses.
    let (stream, buffer) = (device.create_stream()?, device.create_buffer(320)?);
    operator
        .bind(&[], BufferBinding::range(&buffer, 256, 64))?
        .dispatch(&stream)?;
    let address = buffer.raw().expect("of a GPU").0;
    std::mem::forget((stream, buffer));
    // SAFETY: the mock driver's kernels touch nothing.
    unsafe { result::free_sync(address) }?;
    Ok(())
}

/// A stream that waited for another one's event is done after that one's work, whose memory is then free.
#[allow(unsafe_code)]
pub fn order_of_streams() -> Done {
    let device = Device::cuda(0)?;
    let operator = fill(&device, CompileOptions::default())?;
    let (stream, other) = (device.create_stream()?, device.create_stream()?);
    // SAFETY: the mock driver's kernels touch nothing, and the context is released at the end.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0)?)?;
        let address = result::malloc_sync(64)?;
        let queue =
            || operator.dispatch_raw(&[], Address(address), stream.raw().expect("of a GPU"));
        queue()?;
        other.wait(&stream.record_event()?)?;
        other.synchronize()?;
        result::free_sync(address)?;
        stream.synchronize()?;
        drop((stream, other, operator, device));
        result::primary_ctx::release(0)?;
    }
    Ok(())
}

/// Does what XLA does: makes a context current, captures a stream, and calls a handler that has never run before.
#[allow(unsafe_code)]
pub fn first_use_in_a_capture() -> Done {
    result::init()?;
    assert!(Device::current_cuda_ordinal()
        .is_err_and(|error| error.to_string().contains("(CUDA error 201)")));
    // SAFETY: the mock driver's kernels touch nothing, and the handles are live until they are released at the end.
    unsafe {
        let context = result::primary_ctx::retain(0)?;
        result::ctx::set_current(context)?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        result::stream::begin_capture(
            stream,
            sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        )?;
        let device = Device::cuda(Device::current_cuda_ordinal()?)?;
        let operator = fill(&device, CompileOptions::default().with_measure(true))?;
        assert!(operator.explain().modes[0].kernels[0].measured.is_some());
        operator.dispatch_raw(&[], Address(256), RawStream(stream.cast()))?;
        result::graph::destroy(result::stream::end_capture(stream)?)?;
        result::stream::destroy(stream)?;
        drop((operator, device));
        result::primary_ctx::release(0)?;
    }
    Ok(())
}

/// Objects of every kind are made, used and dropped while a stream is captured.
fn use_and_drop_all(device: &Device) -> Done {
    let options = CompileOptions::default()
        .with_specialize(Specialize::Always)
        .with_measure(true);
    let reversal = device.compile_operator_with(&reversal(device)?, options)?;
    reverse(device, &reversal)?;
    let [data, lengths] = [64, 8].map(|size| device.create_buffer(size).expect("small"));
    let table = reversal.bind(&[(&data).into(), (&lengths).into()], &data)?;
    let stream = device.create_stream()?;
    let (event, mut graph) = (stream.record_event()?, device.record_graph([&table])?);
    graph.launch(&stream)?;
    assert!(stream.record_event()?.milliseconds_since(&event)? > 0.0);
    assert!(graph.milliseconds()? > 0.0);
    data.write(0, &[1; 64])?;
    data.to_vec::<u8>()?;
    stream.synchronize()?;
    drop(Device::cuda(Device::cuda_count() - 1)?);
    Ok(())
}

/// Nothing breaks a capture in any mode: not calls of the thread that captures, nor those of another one. Captured
/// dispatches have kernels of their own, which stay when the operator is gone. An older driver cannot load them.
#[allow(unsafe_code)]
pub fn everything_in_a_capture() -> Done {
    use sys::CUstreamCaptureMode as Mode;
    let device = Device::cuda(0)?;
    let is_old = device
        .cuda_properties()
        .is_some_and(|properties| properties.driver_version < 12_030);
    let filling = fill(&device, CompileOptions::default())?;
    let memory = device.create_buffer(1 << 10)?;
    let to = memory.raw().expect("of a GPU");
    use_and_drop_all(&device)?;
    // SAFETY: the mock driver's kernels touch nothing, and the handles are live until they are released.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0)?)?;
        let (outside, mut count) = (
            result::stream::create(result::stream::StreamKind::NonBlocking)?,
            100,
        );
        for mode in [
            Mode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Mode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Mode::CU_STREAM_CAPTURE_MODE_RELAXED,
        ] {
            result::stream::begin_capture(outside, mode)?;
            filling.dispatch_raw(&[], to, RawStream(outside.cast()))?;
            count += 1;
            let first =
                Lowered::Sequence(LoweredSequence::packed(TensorDataType::Int16, count, 1, 2));
            match device.run_lowered(&first, &[], Address(to.0 + 512), RawStream(outside.cast())) {
                Err(error) if is_old => {
                    let words = error.to_string();
                    assert!(
                        words
                            .contains("(CUDA error 900); run the operator once before the capture"),
                        "{words}"
                    );
                }
                done => done?,
            }
            if !is_old {
                use_and_drop_all(&device)?;
            }
            std::thread::scope(|scope| {
                scope
                    .spawn(|| use_and_drop_all(&device).is_ok())
                    .join()
                    .expect("no panic")
            });
            let captured = result::stream::end_capture(outside)?;
            let mut executable = std::ptr::null_mut();
            sys::cuGraphInstantiateWithFlags(&mut executable, captured, 0).result()?;
            result::graph::launch(executable, outside)?;
            result::stream::synchronize(outside)?;
            let (mut first, mut filled) = ([0i16; 2], [0f64; 2]);
            memory.read(0, bytemuck::cast_slice_mut(&mut filled))?;
            memory.read(512, bytemuck::cast_slice_mut(&mut first))?;
            assert!(
                device.name() == "Fake GPU" || (first, filled) == ([1, 3], [0.0, 1.0]),
                "{first:?} {filled:?}"
            );
            memory.write(0, &[0; 1 << 10])?;
            result::graph::exec_destroy(executable)?;
            result::graph::destroy(captured)?;
        }
        result::stream::destroy(outside)?;
        result::primary_ctx::release(0)?;
    }
    Ok(())
}

/// Reverses rows of 8 FLOAT32 in one call, out of place, at addresses that are multiples of 16 bytes.
///
/// # Safety
///
/// The driver is the mock one, whose kernels touch nothing.
#[allow(unsafe_code)]
unsafe fn reverse_rows(device: &Device, rows: i64, stream: sys::CUstream) -> Result<(), Error> {
    // SAFETY: the caller promises that no kernel touches the addresses.
    unsafe { reverse_rows_by(device, Address(2 << 20), rows, stream) }
}

/// [`reverse_rows`] with lengths at an address.
#[allow(unsafe_code)]
unsafe fn reverse_rows_by(
    device: &Device,
    at: Address,
    rows: i64,
    stream: sys::CUstream,
) -> Result<(), Error> {
    let (sizes, of_lengths) = ([rows, 8], [rows, 1]);
    let arrays = ReversalArrays {
        input: ForeignTensor::packed(Address(1 << 20), &sizes),
        lengths: ForeignTensor::packed(at, &of_lengths),
        output: ForeignTensor::packed(Address(3 << 20), &sizes),
        axis: 1,
        element_size: 4,
        length_type: TensorDataType::UInt32,
    };
    // SAFETY: the caller promises that no kernel touches the addresses.
    unsafe { device.reverse_arrays(&arrays, RawStream(stream.cast())) }
}

/// A call on arrays, which loads no kernel that its addresses do not need. A GPU reads lengths whole.
#[allow(unsafe_code)]
pub fn one_call() -> Done {
    let device = Device::cuda(0)?;
    // SAFETY: this program runs with the mock driver.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0)?)?;
        reverse_rows(&device, 8, std::ptr::null_mut())?;
        let refused = reverse_rows_by(&device, Address((2 << 20) + 1), 8, std::ptr::null_mut());
        assert!(refused.is_err_and(|error| error.to_string().contains("(binding.alignment)")));
        result::primary_ctx::release(0)?;
    }
    Ok(())
}

/// Specialized kernels in graphs that other libraries captured and replay after the cache has dropped the operator.
#[allow(unsafe_code)]
pub fn specialized() -> Done {
    let device = Device::cuda(0)?;
    let options = CompileOptions::default().with_specialize(Specialize::Always);
    let specializing = device.clone().with_compile_options(options);
    // SAFETY: the mock driver's kernels touch nothing, and the handles are live until they are released at the end.
    unsafe {
        result::ctx::set_current(result::primary_ctx::retain(0)?)?;
        let outside = result::stream::create(result::stream::StreamKind::NonBlocking)?;
        result::stream::begin_capture(
            outside,
            sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        )?;
        reverse_rows(&specializing, 8, outside)?;
        let captured = result::stream::end_capture(outside)?;
        let mut executable = std::ptr::null_mut();
        sys::cuGraphInstantiateWithFlags(&mut executable, captured, 0).result()?;
        for count in 0..std::env::var("DOUBLE_KERNELS")?.parse()? {
            reverse_rows(&specializing, 100 + count, outside)?;
            result::stream::synchronize(outside)?;
        }
        // Measuring compiles no kernel that could not stay.
        let generic = CompileOptions::default().with_measure(true);
        let reversal =
            device.create_operator(dml_cuda_testing::lanes(TensorDataType::UInt32, 5000, 8))?;
        device.compile_operator_with(&reversal, generic)?;
        let operator =
            device.compile_operator_with(&reversal, generic.with_specialize(Specialize::Always))?;
        println!("MEASURED {}", measured_kernels(&operator).len());
        result::graph::launch(executable, outside)?;
        result::stream::synchronize(outside)?;
        result::graph::exec_destroy(executable)?;
        result::graph::destroy(captured)?;
        result::stream::destroy(outside)?;
        result::primary_ctx::release(0)?;
    }
    Ok(())
}

/// Does something quick while another thread does something slow.
fn overlap(slow: impl FnOnce() + Send, quick: impl FnOnce()) {
    std::thread::scope(|scope| {
        let slow = scope.spawn(slow);
        std::thread::sleep(std::time::Duration::from_millis(100));
        quick();
        assert!(!slow.is_finished(), "it waited for the other thread");
    });
}

/// Slow work of one thread does not hold up the others: waiting for a stream of another GPU, loading another
/// kernel, opening another GPU. Threads may load the same kernel.
pub fn threads() -> Done {
    let device = Device::cuda(0)?;
    let other =
        if std::env::var_os("DOUBLE_SLOW").is_some_and(|slow| slow == "cuDevicePrimaryCtxRetain") {
            device.clone()
        } else {
            Device::cuda(1)?
        };
    let buffer = device.create_buffer(64)?;
    let compile = |data_type| {
        let sequence = Lowered::Sequence(LoweredSequence::packed(data_type, 60, 1, 2));
        device
            .compile_lowered(&sequence, CompileOptions::default())
            .map(drop)
    };
    compile(TensorDataType::UInt8)?;
    std::mem::forget(device.create_stream()?); // what dropping a buffer waits for
    match std::env::var("DOUBLE_SLOW")?.as_str() {
        "cuStreamSynchronize" => overlap(
            || drop(buffer),
            || {
                let streams = [device.create_stream(), other.create_stream()];
                streams
                    .into_iter()
                    .for_each(|stream| std::mem::forget(stream.expect("a stream")));
            },
        ),
        "cuModuleLoadData" => overlap(
            || compile(TensorDataType::Int32).expect("compiled"),
            || {
                let fill =
                    dml_cuda_testing::fill(TensorDataType::UInt8, &[60], 0u8.into(), 1i8.into());
                let operator = device.create_operator(fill).expect("right");
                device.compile_operator(&operator).expect("compiled");
            },
        ),
        _ => overlap(
            || drop(Device::cuda(1).expect("a GPU")),
            || drop(Device::cuda(0).expect("a GPU")),
        ),
    }
    let specialized = CompileOptions::default().with_specialize(Specialize::Always);
    let sequence = Lowered::Sequence(LoweredSequence::packed(TensorDataType::Int16, 60, 1, 2));
    Ok(in_threads(2, |_| {
        device.compile_lowered(&sequence, specialized).map(drop)
    })?)
}

/// Compiles a measured operator, whose kernel is that of DOUBLE_FAST, or the estimate's if a call fails. Then measures
/// all kernels.
pub fn measured() -> Done {
    let device = Device::cuda(0)?;
    let reversal = reversal(&device)?;
    let options = CompileOptions::default();
    let estimated = device.compile_operator_with(&reversal, options)?;
    let (data, lengths) = (
        device.create_buffer_from(&[1.5f32; 16])?,
        device.create_buffer_from(&[3u32, 8])?,
    );
    let stream = device.create_stream()?;
    println!("MEASURING");
    let operator = device.compile_operator_with(&reversal, options.with_measure(true));
    println!("COMPILED {}", operator.is_ok());
    let operator = operator?;
    let [estimated, found] =
        [&estimated, &operator].map(|operator| operator.explain().modes.remove(1));
    let measured: Vec<_> = found
        .kernels
        .iter()
        .filter(|kernel| kernel.measured.is_some())
        .collect();
    measured
        .iter()
        .for_each(|kernel| println!("KERNEL {}", kernel.kernel));
    match std::env::var("DOUBLE_FAST") {
        Ok(fast) if !measured.is_empty() => assert_eq!(found.kernels[0].kernel, fast),
        _ => assert_eq!(chosen(&found), chosen(&estimated)),
    }
    operator
        .bind(&[(&data).into(), (&lengths).into()], &data)?
        .dispatch(&stream)?;
    assert_eq!(
        (data.to_vec::<f32>()?, lengths.to_vec::<u32>()?),
        (vec![1.5; 16], vec![3, 8])
    );
    for kernel in device.measure_kernels(&reversal, true)? {
        assert!(kernel.time.as_secs_f64() > 0.0);
        kernel
            .operator
            .bind(&[(&data).into(), (&lengths).into()], &data)?
            .dispatch(&stream)?;
        // In the mode that was not measured, it has the usual kernels.
        let output = device.create_buffer(64)?;
        kernel
            .operator
            .bind(&[(&data).into(), (&lengths).into()], &output)?
            .dispatch(&stream)?;
    }
    Ok(())
}

/// The names and launches of the chosen kernels.
fn chosen(mode: &ExplainedMode) -> Vec<(&str, &ExplainedLaunch)> {
    mode.kernels
        .iter()
        .map(|kernel| kernel.kernel.as_str())
        .zip(mode.launches())
        .collect()
}

/// The names of the kernels that were timed to choose one.
fn measured_kernels(operator: &CompiledOperator) -> BTreeSet<String> {
    let kernels = operator
        .explain()
        .modes
        .into_iter()
        .flat_map(|mode| mode.kernels);
    kernels
        .filter(|kernel| kernel.measured.is_some())
        .map(|kernel| kernel.kernel)
        .collect()
}

/// Compiles a measured operator whose specialized kernels are kept.
pub fn measured_and_kept() -> Done {
    let device = Device::cuda(0)?;
    let options = CompileOptions::default()
        .with_measure(true)
        .with_specialize(Specialize::Always);
    let operator = device.compile_operator_with(&reversal(&device)?, options)?;
    let modes = operator.explain().modes;
    let launches = modes.iter().flat_map(|mode| mode.launches());
    let specialized = launches
        .filter(|launch| launch.specialize == Specialize::Always)
        .count();
    println!(
        "MEASURED {}\nSPECIALIZED {specialized}",
        measured_kernels(&operator).len()
    );
    Ok(())
}

/// Measures kernels. The generic ones stay, because the device is never dropped, so only specialized ones are unloaded.
pub fn measured_and_unloaded() -> Done {
    let device = std::mem::ManuallyDrop::new(Device::cuda(0)?);
    let kernels = device.measure_kernels(&reversal(&device)?, false)?;
    let specialized = kernels
        .iter()
        .filter(|kernel| kernel.specialized_time.is_some())
        .count();
    println!("MEASURED {specialized}");
    Ok(())
}

/// Threads that measure operators for all pointers and modes at once.
pub fn measured_by_threads() -> Done {
    let device = Device::cuda(0)?;
    let options = CompileOptions::default()
        .with_measure(true)
        .with_specialize(Specialize::Always);
    Ok(in_threads(2, |_| {
        let operator = device.compile_operator_with(&reversal(&device)?, options)?;
        for mode in operator.explain().modes {
            assert!(
                mode.kernels.iter().any(|kernel| kernel.measured.is_some()),
                "{mode:?}"
            );
            assert_eq!(
                mode.launches().last().map(|launch| launch.alignment <= 4),
                Some(true),
                "{mode:?}"
            );
        }
        reverse(&device, &operator)
    })?)
}

pub fn first() -> Done {
    println!(
        "FIRST {} of {}",
        Device::cuda_or_cpu()?,
        Device::cuda_count()
    );
    Ok(())
}
