//! The list of operators and their domains.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::sync::{Mutex, PoisonError};

use dml_cuda::TensorDataType::{Float16, Float32, Float64, Int16, Int32, Int64};
use ort_sys::{
    ONNXTensorElementDataType as Type, OrtApi, OrtApiBase, OrtCustomOpDomain, OrtErrorCode,
    OrtSessionOptions, OrtStatusPtr,
};

use super::element::ELEMENTS;
use super::op::{guarded, Kind, Op, CPU};
use super::ort::{Ort, Result, VERSION};
use crate::status::text;

/// The session's configuration entry that names the ONNX operators to replace.
const REPLACE: &CStr = c"dml_cuda.replace_onnx";

/// The entry that a registration adds, so that a second registration can see the first.
const REGISTERED: &CStr = c"dml_cuda.registered";

const PROVIDERS: [&CStr; 3] = [
    CPU,
    c"CUDAExecutionProvider",
    c"CudaPluginExecutionProvider",
];

/// The operators of the domain `dml_cuda`.
const OWN: [Kind; 2] = [Kind::ReverseSubsequences, Kind::FillValueSequence];

/// The ONNX operators that a session can replace.
const REPLACEABLE: [Kind; 2] = [Kind::ReverseSequence, Kind::Range];

/// The value of `REPLACE` that a registration adds if there is none. ONNX Runtime then warns when a program sets the
/// entry, which this library does not see any more, and the warning has this text.
const TOO_LATE: &CStr =
    c"0; set it before register_custom_ops_library, or register the library again";

const ENTRY: &str = "dml_cuda.replace_onnx";
const VARIABLE: &str = "the environment variable DML_CUDA_REPLACE_ONNX";

/// The ONNX operators to replace, in the order of `REPLACEABLE`, and who asks for it: the options' entry, else the
/// environment variable, for servers that cannot set entries. An environment variable of `0` replaces nothing, whatever
/// the entry says.
fn wanted(options: *const OrtSessionOptions, ort: Ort) -> Result<(Vec<Kind>, &'static str)> {
    let entry = ort
        .config_entry(options, REPLACE)?
        .filter(|value| value.as_bytes() != TOO_LATE.to_bytes());
    let variable = std::env::var_os("DML_CUDA_REPLACE_ONNX");
    let of_entry = entry.map(|value| replaced(&value, ENTRY)).transpose()?;
    let of_variable = variable
        .map(|value| replaced(&value.to_string_lossy(), VARIABLE))
        .transpose()?;
    Ok(match (of_entry, of_variable) {
        (Some(kinds), None) => (kinds, ENTRY),
        (Some(kinds), Some(of_variable)) if !of_variable.is_empty() => (kinds, ENTRY),
        (_, of_variable) => (of_variable.unwrap_or_default(), VARIABLE),
    })
}

/// The operators that a value of `source` names.
fn replaced(value: &str, source: &str) -> Result<Vec<Kind>> {
    let names: Vec<&str> = match value {
        "0" => Vec::new(),
        "1" => vec!["ReverseSequence"],
        names => names.split(',').map(str::trim).collect(),
    };
    let kinds: Vec<Kind> = REPLACEABLE
        .into_iter()
        .filter(|kind| names.contains(&&*kind.name()))
        .collect();
    if !names
        .iter()
        .all(|name| kinds.iter().any(|kind| kind.name() == *name))
    {
        return Err(format!(
            "{source} is `{value}`, but must be `0`, `1` (ReverseSequence), or a list of the names \
             `ReverseSequence` and `Range`, as in `ReverseSequence,Range`"
        )
        .into());
    }
    Ok(kinds)
}

/// An ONNX Runtime, by its address, the operators of a domain, and who asks to replace them (`domain`).
type Key = (usize, Vec<Kind>, Option<&'static str>);

/// The addresses of the domains, at most seven for each ONNX Runtime of the process. Like their operators, they exist
/// until it ends.
static DOMAINS: Mutex<BTreeMap<Key, usize>> = Mutex::new(BTreeMap::new());

/// The domain with these operators. The first call creates it. `source` is who asks to replace ONNX operators, as
/// messages name it, and `None` for the domain `dml_cuda`.
fn domain(
    base: *const OrtApiBase,
    ort: Ort,
    kinds: Vec<Kind>,
    source: Option<&'static str>,
) -> Result<*mut OrtCustomOpDomain> {
    let mut known = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (base as usize, kinds, source);
    if let Some(&found) = known.get(&key) {
        return Ok(found as *mut OrtCustomOpDomain);
    }
    let domain = ort.create_domain(if source.is_some() { c"" } else { c"dml_cuda" })?;
    for provider in PROVIDERS {
        for &kind in &key.1 {
            for (inputs, output) in types(kind, provider) {
                let (callbacks, name) = (Op::callbacks(kind), text(&kind.name()));
                let op = Op {
                    callbacks,
                    ort,
                    kind,
                    name,
                    provider,
                    source,
                    inputs,
                    output,
                };
                ort.add_op(domain, &Box::leak(Box::new(op)).callbacks)?;
            }
        }
    }
    known.insert(key, domain as usize);
    Ok(domain)
}

/// The types of an operator's inputs and of its output: each combination is an operator of its own.
fn types(kind: Kind, provider: &CStr) -> Vec<(Vec<Type>, Type)> {
    use Type::*;
    let int64 = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    let on_cpu = |data_type| (provider == CPU).then_some(data_type);
    let moved = || {
        ELEMENTS
            .into_iter()
            .map(|moved| moved.element_type)
            .chain(on_cpu(ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING))
    };
    match kind {
        Kind::ReverseSequence => moved().map(|moved| (vec![moved, int64], moved)).collect(),
        Kind::ReverseSubsequences => {
            let lengths = [
                ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
                ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
                int64,
            ];
            lengths
                .iter()
                .flat_map(|&lengths| moved().map(move |moved| (vec![moved, lengths], moved)))
                .collect()
        }
        Kind::Range => {
            let ranged = ELEMENTS
                .into_iter()
                .filter_map(|ranged| match ranged.data_type? {
                    Float32 | Float64 | Float16 | Int16 | Int32 | Int64 => {
                        Some(ranged.element_type)
                    }
                    _ => None,
                });
            // No GPU kernel writes bfloat16, so such nodes stay on the CPU.
            let ranged = ranged.chain(on_cpu(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16));
            ranged.map(|ranged| (vec![ranged; 3], ranged)).collect()
        }
        Kind::FillValueSequence => {
            // DirectML fills no FLOAT64.
            let filled = ELEMENTS
                .into_iter()
                .filter(|filled| filled.data_type.is_some_and(|of| of != Float64))
                .map(|filled| filled.element_type);
            filled
                .map(|filled| (vec![int64, filled, filled], filled))
                .collect()
        }
    }
}

/// Adds the domains that the options ask for. A second registration adds only what the first did not.
fn register(options: *mut OrtSessionOptions, base: *const OrtApiBase, ort: Ort) -> Result<()> {
    for key in ort.config_keys(options)? {
        if key.starts_with("dml_cuda.")
            && ![REPLACE, REGISTERED]
                .iter()
                .any(|known| known.to_bytes() == key.as_bytes())
        {
            return Err(format!(
                "the session's configuration entry is `{key}`, but must be `dml_cuda.replace_onnx`"
            )
            .into());
        }
    }
    let (kinds, source) = wanted(options, ort)?;
    let names: Vec<_> = kinds.iter().map(|kind| kind.name()).collect();
    let asked = if names.is_empty() {
        "0".to_owned()
    } else {
        names.join(",")
    };
    match ort.config_entry(options, REGISTERED)? {
        None => ort.add_domain(options, domain(base, ort, OWN.into(), None)?)?,
        Some(before) if before == asked => return Ok(()),
        Some(before) if before == "0" => {}
        Some(before) => {
            return Err(format!(
                "these options replace `{before}` since the library was first registered with them, and now {source} \
                 asks for `{asked}`: set it once, before the library is registered"
            )
            .into());
        }
    }
    if !kinds.is_empty() {
        ort.add_domain(options, domain(base, ort, kinds, Some(source))?)?;
    }
    if ort.config_entry(options, REPLACE)?.is_none() {
        ort.add_config_entry(options, REPLACE, TOO_LATE)?;
    }
    ort.add_config_entry(options, REGISTERED, &text(&asked))
}

/// ONNX Runtime calls this when a session's options load the library. It adds the domain `dml_cuda`, and this library's
/// versions of the ONNX operators that the configuration entry `dml_cuda.replace_onnx` or the environment variable
/// `DML_CUDA_REPLACE_ONNX` names.
///
/// # Safety
///
/// ONNX Runtime passes both pointers.
#[no_mangle]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime's promise; it does not unload itself.
    let Some(ort) = (unsafe { Ort::new(base) }) else {
        // SAFETY: every ONNX Runtime has version 1 of the table, which begins with this function.
        return unsafe {
            let api: *const OrtApi = ((*base).GetApi)(1);
            let message =
                c"dml_cuda: this ONNX Runtime is older than 1.18, the oldest that it works with";
            ((*api).CreateStatus)(OrtErrorCode::ORT_NOT_IMPLEMENTED, message.as_ptr())
        };
    };
    const _: () = assert!(VERSION == 18, "the message names it");
    guarded(
        ort,
        || "dml_cuda".to_owned(),
        || register(options, base, ort),
    )
}
