//! Operators on arrays of other libraries, such as NumPy and PyTorch.
#![allow(non_camel_case_types, non_snake_case, clippy::missing_safety_doc)] // `device` says why

use std::ffi::{c_char, c_void};

use dml_cuda::lowering::{
    ForeignTensor, Lowered, LoweredReversal, LoweredSequence, LoweringError, ReversalArrays,
};
use dml_cuda::{RawStream, TensorDataType};

use crate::device::DML_CUDA_DEVICE;
use crate::input::{self, follow, list, optional, sized};
use crate::operator::DML_CUDA_COMPILED_OPERATOR;
use crate::output::enter;
use crate::status::*;
use crate::types::*;

/// An array of another library, with any rank, any element size in whole bytes, and strides in bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DML_CUDA_ARRAY {
    /// `sizeof(DML_CUDA_ARRAY)`.
    pub SizeInBytes: u32,
    /// How many numbers Sizes and StridesInBytes have.
    pub Rank: u32,
    /// The address of the first element. Compiling reads the address only, never the memory. A dispatch takes the same
    /// address.
    pub Data: *const c_void,
    /// Bytes of an element, at least 1.
    pub ElementSizeInBytes: u64,
    /// May be NULL if Rank is 0.
    pub Sizes: *const i64,
    /// At least 0 each. NULL means packed, in row-major order.
    pub StridesInBytes: *const i64,
}

/// Compiles a reversal of arrays along `axis`. A negative axis counts from the end. Dimensions are merged, and elements
/// move as integers of 1 to 8 bytes. No size may be 0.
///
/// `lengths` has unsigned elements of 4 or 8 bytes. NumPy's rules must broadcast its shape to the input's with 1 at the
/// axis. Its Data is ignored. `output` has the input's sizes. To run in place, give it the input's Data.
///
/// Dispatch the result with arrays of the same layout. `options` is as for `dml_cuda_compile_operator`. A repeated call
/// returns the operator from a cache. Destroy the result with `dml_cuda_destroy_compiled_operator`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_compile_reversal(
    device: *const DML_CUDA_DEVICE,
    input: *const DML_CUDA_ARRAY,
    lengths: *const DML_CUDA_ARRAY,
    output: *const DML_CUDA_ARRAY,
    axis: i32,
    options: *const c_char,
    compiled: *mut *mut DML_CUDA_COMPILED_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [
            device,
            array(input),
            array(output),
            array(lengths),
            optional(options)
        ],
        create(compiled),
        {
            let arrays = reversal(input, lengths, output, axis)?;
            let lowered = LoweredReversal::new(&arrays)?;
            let device = device.with_options(options)?;
            let compiled =
                device.compile_lowered(&Lowered::Reversal(lowered), device.compile_options());
            DML_CUDA_COMPILED_OPERATOR(
                compiled.map_err(|error| arrays.output.with_own_strides(error))?,
            )
        }
    )
}

/// Reverses arrays along `axis`, as described for `dml_cuda_compile_reversal`, in one call: compiles the operator or
/// finds it in a cache, and runs it on a stream as `dml_cuda_dispatch` takes one, or on the host with a stream of NULL.
/// A size may be 0: then nothing is done.
///
/// `lengths` has its own Data. On the host, no array need be aligned to its elements. A call that fails has queued and
/// written nothing.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_reverse_arrays(
    device: *const DML_CUDA_DEVICE,
    input: *const DML_CUDA_ARRAY,
    lengths: *const DML_CUDA_ARRAY,
    output: *const DML_CUDA_ARRAY,
    axis: i32,
    options: *const c_char,
    stream: *mut c_void,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [
            device,
            array(input),
            array(output),
            array(lengths),
            optional(options)
        ],
        {
            let arrays = reversal(input, lengths, output, axis)?;
            // SAFETY: the arrays are in memory of the device (dml_cuda.h). Kernels stay loaded (`cuda_device`).
            unsafe {
                device
                    .with_options(options)?
                    .reverse_arrays(&arrays, RawStream(stream))
            }?
        }
    )
}

/// Makes the work that is queued on a stream from now on wait for what another stream of the device has so far, such as
/// the one that `__cuda_array_interface__` names. Both must belong to the GPU's primary context. Does not wait itself,
/// and does nothing on the CPU device. While the stream is being captured into a CUDA graph, it waits only for another
/// captured stream: a replay reads its memory later.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_wait_for_stream(
    device: *const DML_CUDA_DEVICE,
    stream: *mut c_void,
    awaited: *mut c_void,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(error, [device], {
        // SAFETY: both are live streams of the device (dml_cuda.h).
        unsafe {
            device
                .device
                .wait_for_raw_stream(RawStream(stream), RawStream(awaited))
        }?
    })
}

/// An array, and the bytes of its elements.
type Array<'a> = (ForeignTensor<'a>, u64);

fn reversal<'a>(
    (input, size): Array<'a>,
    (lengths, length_size): Array<'a>,
    (output, found): Array<'a>,
    axis: i32,
) -> Result<ReversalArrays<'a>, Failure> {
    let length_type = match length_size {
        4 => TensorDataType::UInt32,
        8 => TensorDataType::UInt64,
        found => {
            return wrong(format!(
                "lengths.ElementSizeInBytes is {found}, but must be 4 or 8"
            ))
        }
    };
    // Lowering names an input without bytes.
    if found != size && size != 0 {
        return wrong(format!(
            "output.ElementSizeInBytes is {found}, but must be {size}, the input's"
        ));
    }
    Ok(ReversalArrays {
        input,
        lengths,
        output,
        axis: axis.into(),
        element_size: size as usize,
        length_type,
    })
}

/// Compiles a fill of an array that is packed, or has at most 8 dimensions: element i, in row-major order, becomes
/// start + i·delta. `data_type` is a type that DirectML fills, or FLOAT64 for a packed array. The elements and the
/// scalars have that type. As with `dml_cuda_compile_reversal`, a repeated call uses a cache. Destroy the result with
/// `dml_cuda_destroy_compiled_operator`.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_compile_sequence(
    device: *const DML_CUDA_DEVICE,
    output: *const DML_CUDA_ARRAY,
    data_type: DML_CUDA_TENSOR_DATA_TYPE,
    start: *const DML_CUDA_SCALAR_UNION,
    delta: *const DML_CUDA_SCALAR_UNION,
    options: *const c_char,
    compiled: *mut *mut DML_CUDA_COMPILED_OPERATOR,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [device, array(output), start, delta, optional(options)],
        create(compiled),
        {
            let lowered = sequence(output, data_type, start, delta)?;
            let device = device.with_options(options)?;
            let compiled = device.compile_lowered(&lowered, device.compile_options());
            DML_CUDA_COMPILED_OPERATOR(compiled.map_err(|error| output.0.with_own_strides(error))?)
        }
    )
}

/// Fills an array as described for `dml_cuda_compile_sequence`, in one call, as `dml_cuda_reverse_arrays` reverses. A
/// size may be 0: then nothing is done.
#[no_mangle]
pub unsafe extern "C" fn dml_cuda_fill_array(
    device: *const DML_CUDA_DEVICE,
    output: *const DML_CUDA_ARRAY,
    data_type: DML_CUDA_TENSOR_DATA_TYPE,
    start: *const DML_CUDA_SCALAR_UNION,
    delta: *const DML_CUDA_SCALAR_UNION,
    options: *const c_char,
    stream: *mut c_void,
    error: *mut *mut DML_CUDA_ERROR,
) -> DML_CUDA_STATUS {
    enter!(
        error,
        [device, array(output), start, delta, optional(options)],
        {
            let lowered = sequence(output, data_type, start, delta)?;
            let device = device.with_options(options)?;
            if output.0.sizes.contains(&0) {
                return Ok(());
            }
            // SAFETY: the array is in memory of the device (dml_cuda.h). Kernels stay loaded (`cuda_device`).
            let done =
                unsafe { device.run_lowered(&lowered, &[], output.0.address, RawStream(stream)) };
            done.map_err(|error| output.0.with_own_strides(error))?
        }
    )
}

fn sequence(
    (tensor, found): Array<'_>,
    data_type: DML_CUDA_TENSOR_DATA_TYPE,
    start: &DML_CUDA_SCALAR_UNION,
    delta: &DML_CUDA_SCALAR_UNION,
) -> Result<Lowered, Failure> {
    let data_type = input::data_type(data_type, "data_type")?;
    let required = u64::from(data_type.size_in_bits() / 8);
    // No fill has elements of 4 bits, which validation says.
    if found != required && required > 0 {
        return wrong(format!(
            "output.ElementSizeInBytes is {found}, but must be {required}, that of {data_type}"
        ));
    }
    // SAFETY: every bit pattern is a value of the union's integers.
    let (start, delta) = unsafe { (start.UInt64, delta.UInt64) };
    let lowered =
        LoweredSequence::strided(data_type, tensor, start, delta).map_err(|error| match error {
            LoweringError::Fold { shape } => Failure::argument(format!(
                "output has Sizes {shape:?}, but must be packed, or have at most 8 dimensions"
            )),
            error => error.into(),
        })?;
    Ok(Lowered::Sequence(lowered))
}

/// # Safety
///
/// The promise of [`follow`], for the array and for its `Rank` sizes and strides.
unsafe fn array<'a>(pointer: *const DML_CUDA_ARRAY, name: &str) -> Result<Array<'a>, Failure> {
    // SAFETY: null, or an array of the program.
    let array = unsafe { sized(pointer, name) }?;
    let rank = array.Rank as usize;
    if rank > 0 && array.Sizes.is_null() {
        return wrong(format!(
            "{name}.Sizes is NULL, but must have {rank} numbers"
        ));
    }
    // SAFETY: not null, so there are `Rank` numbers.
    let numbers = |from: *const i64| unsafe { list(from, rank) };
    let strides_in_bytes = (!array.StridesInBytes.is_null()).then(|| numbers(array.StridesInBytes));
    let tensor = ForeignTensor {
        address: array.Data.into(),
        sizes: numbers(array.Sizes),
        strides_in_bytes,
    };
    Ok((tensor, array.ElementSizeInBytes))
}
