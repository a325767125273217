//! Which operators there are, in which domains.

use std::ffi::CStr;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

use dml::TensorDataType;
use ort_sys::{
    ONNXTensorElementDataType as Type, OrtApi, OrtApiBase, OrtCustomOpDomain, OrtErrorCode, OrtSessionOptions,
    OrtStatusPtr,
};

use super::api::{Failure, Ort, Result, VERSION};
use super::op::{Kind, Op, Provider};
use super::reverse::BYTES;

/// The entry of a session's configuration that asks for ONNX's own operators to be replaced.
const REPLACE: &CStr = c"dml_cuda.replace_onnx";

const PROVIDERS: [Provider; 3] =
    [Provider::Cpu, Provider::Cuda(c"CUDAExecutionProvider"), Provider::Cuda(c"CudaPluginExecutionProvider")];

/// The domains of one ONNX Runtime, which live as long as the process, like their operators.
#[derive(Clone, Copy)]
struct Domains {
    base: *const OrtApiBase,
    ort: Ort,
    own: *mut OrtCustomOpDomain,
    onnx: *mut OrtCustomOpDomain,
}

// SAFETY: the domains do not change once they are in `DOMAINS`.
unsafe impl Send for Domains {}

static DOMAINS: Mutex<Vec<Domains>> = Mutex::new(Vec::new());

impl Domains {
    fn new(base: *const OrtApiBase, ort: Ort) -> Result<Self> {
        use Type::*;
        let (own, onnx) = (ort.create_domain(c"dml_cuda")?, ort.create_domain(c"")?);
        let int64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
        for provider in PROVIDERS {
            let add = |domain, name, kind, inputs, output| {
                ort.add_op(domain, Op::leak(ort, name, kind, provider, inputs, output))
            };
            let strings = (provider == Provider::Cpu).then_some(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING);
            let moved = || BYTES.iter().map(|(data_type, _)| *data_type).chain(strings);
            for data_type in moved() {
                add(onnx, c"ReverseSequence", Kind::ReverseSequence, vec![data_type, int64], data_type)?;
            }
            for data_type in [
                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
            ] {
                add(onnx, c"Range", Kind::Range, vec![data_type; 3], data_type)?;
            }
            for (of_lengths, lengths) in [
                (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, TensorDataType::UInt32),
                (ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, TensorDataType::UInt64),
                (ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, TensorDataType::UInt64),
            ] {
                let kind = Kind::ReverseSubsequences { lengths };
                for data_type in moved() {
                    add(own, c"ReverseSubsequences", kind, vec![data_type, of_lengths], data_type)?;
                }
            }
            for data_type in [
                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
            ] {
                add(own, c"FillValueSequence", Kind::FillValueSequence, vec![int64, data_type, data_type], data_type)?;
            }
        }
        Ok(Self { base, ort, own, onnx })
    }
}

fn register(options: *mut OrtSessionOptions, base: *const OrtApiBase, ort: Ort) -> Result<()> {
    let mut known = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let domains = match known.iter().find(|domains| domains.base == base) {
        Some(domains) => *domains,
        None => {
            let made = Domains::new(base, ort)?;
            known.push(made);
            made
        }
    };
    let replace = match domains.ort.config_entry(options, REPLACE)?.as_deref() {
        None | Some("0") => false,
        Some("1") => true,
        Some(other) => return Err(format!("dml_cuda.replace_onnx is `{other}`, must be `0` or `1`").into()),
    };
    domains.ort.add_domain(options, domains.own)?;
    if replace {
        domains.ort.add_domain(options, domains.onnx)?;
    }
    Ok(())
}

/// What ONNX Runtime calls when a session's options load this library: adds the domain `dml_cuda`, and with the session's
/// configuration entry `dml_cuda.replace_onnx` set to `1` before, this library's ReverseSequence and Range in place of its own.
///
/// # Safety
///
/// Both pointers are ONNX Runtime's.
#[no_mangle]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime's promise; it does not unload itself.
    let Some(ort) = (unsafe { Ort::new(base) }) else {
        // SAFETY: every version answers for version 1, whose table begins with this function.
        return unsafe {
            let api: *const OrtApi = ((*base).GetApi)(1);
            let message = c"dml_cuda: this ONNX Runtime is older than 1.18, the oldest that it works with";
            ((*api).CreateStatus)(OrtErrorCode::ORT_NOT_IMPLEMENTED, message.as_ptr())
        };
    };
    const _: () = assert!(VERSION == 18, "the message names it");
    match catch_unwind(AssertUnwindSafe(|| register(options, base, ort))) {
        Ok(Ok(())) => OrtStatusPtr(null_mut()),
        Ok(Err(Failure::Text(message))) => ort.status(Failure::Text(format!("dml_cuda: {message}"))),
        Ok(Err(failure)) => ort.status(failure),
        Err(_) => ort.status(Failure::Text("dml_cuda: a fault of the library; please report it".to_owned())),
    }
}
