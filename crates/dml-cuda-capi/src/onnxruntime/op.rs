//! The callbacks that describe an operator to ONNX Runtime, and its nodes.

use std::ffi::{c_char, c_int, c_void, CStr, CString};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;

use ort_sys::{
    ONNXTensorElementDataType as Type, OrtApi, OrtCustomOp, OrtCustomOpInputOutputCharacteristic,
    OrtKernelContext, OrtKernelInfo, OrtMemType, OrtShapeInferContext, OrtStatusPtr,
};

use super::node::NodeDevice;
use super::onnx_reversal::Reverse;
use super::ort::{Ort, Result, VERSION};
use crate::device::{cpu_device, cuda_device};
use crate::library::{NODES, RUNS};
use crate::status::caught;

/// The kinds of operators, with ONNX's and this library's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    ReverseSequence,
    Range,
    ReverseSubsequences,
    FillValueSequence,
}

impl Kind {
    pub fn name(self) -> String {
        format!("{self:?}")
    }

    fn reverses(self) -> bool {
        matches!(self, Self::ReverseSequence | Self::ReverseSubsequences)
    }
}

/// ONNX Runtime's name of its CPU provider. The others of this library are for CUDA.
pub const CPU: &CStr = c"CPUExecutionProvider";

/// An operator for one provider, with its types. ONNX Runtime passes the address of the first field to every callback.
#[repr(C)]
pub struct Op {
    pub callbacks: OrtCustomOp,
    pub ort: Ort,
    pub kind: Kind,
    pub name: CString,
    pub provider: &'static CStr,
    /// Who asks for this replacement of an ONNX operator. `None` for an operator of this library's domain.
    pub source: Option<&'static str>,
    pub inputs: Vec<Type>,
    pub output: Type,
}

// SAFETY: nothing in it changes.
unsafe impl Sync for Op {}

impl Op {
    /// The callbacks of an operator that is never freed.
    pub fn callbacks(kind: Kind) -> OrtCustomOp {
        // SAFETY: a number and optional functions, which may be zero.
        let unused: OrtCustomOp = unsafe { std::mem::zeroed() };
        OrtCustomOp {
            version: VERSION,
            GetName: Some(name_of),
            GetExecutionProviderType: Some(provider_of),
            GetInputType: Some(input_type),
            GetInputTypeCount: Some(input_count),
            GetOutputType: Some(output_type),
            GetOutputTypeCount: Some(output_count),
            KernelDestroy: Some(destroy),
            GetInputCharacteristic: Some(required),
            GetOutputCharacteristic: Some(required),
            GetInputMemoryType: Some(memory_type),
            CreateKernelV2: Some(create),
            KernelComputeV2: Some(compute),
            InferOutputShapeFn: (kind != Kind::FillValueSequence).then_some(infer),
            GetStartVersion: Some(start_version),
            GetMayInplace: kind.reverses().then_some(may_in_place),
            ReleaseMayInplace: kind.reverses().then_some(release_in_place),
            ..unused
        }
    }

    /// The operator of a callback's first argument.
    ///
    /// # Safety
    ///
    /// `op` is the address of an operator that is never freed.
    unsafe fn of<'a>(op: *const OrtCustomOp) -> &'a Op {
        // SAFETY: `callbacks` is the first field of a `repr(C)` structure that is never freed.
        unsafe { &*op.cast::<Op>() }
    }

    fn node(&self, info: *const OrtKernelInfo) -> Result<Node> {
        let ort = self.ort;
        let device = if self.provider == CPU {
            cpu_device()?
        } else {
            cuda_device(ort.device_ordinal(info)?)?
        };
        let reverse = match self.kind {
            Kind::Range | Kind::FillValueSequence => None,
            Kind::ReverseSubsequences => Some(Reverse::Subsequences {
                axis: ort.attribute(info, c"axis", None)?,
            }),
            Kind::ReverseSequence => {
                let (batch, time) = (
                    ort.attribute(info, c"batch_axis", Some(1))?,
                    ort.attribute(info, c"time_axis", Some(0))?,
                );
                // ONNX Runtime reads axes in the same way: a time axis of 0 or not 0, both axes below 2.
                if batch > 1 || time > 1 || batch == time {
                    let found = format!("batch_axis and time_axis are {batch} and {time}");
                    return Err(format!("{found}, but must be 0 and 1, or 1 and 0").into());
                }
                let time = usize::from(time != 0);
                Some(Reverse::Sequence {
                    batch: 1 - time,
                    time,
                })
            }
        };
        let (name, node) = (self.kind.name(), ort.node_name(info)?);
        let why = self
            .source
            .map_or(String::new(), |source| format!(", as {source} asks"));
        ort.log(
            info,
            &format!("dml_cuda runs {name} `{node}` on {device}{why}"),
        )?;
        NODES.fetch_add(1, Ordering::Relaxed);
        Ok(Node {
            device: NodeDevice { ort, device },
            kind: self.kind,
            reverse,
        })
    }
}

/// Runs a callback's body. Turns a failure or a panic into a status whose message begins with `name`.
pub fn guarded(
    ort: Ort,
    name: impl FnOnce() -> String,
    body: impl FnOnce() -> Result<()>,
) -> OrtStatusPtr {
    match caught(body) {
        Ok(()) => OrtStatusPtr(null_mut()),
        Err(failure) => ort.status(&name(), failure),
    }
}

fn operator(kind: Kind) -> String {
    format!("dml_cuda {}", kind.name())
}

/// Defines callbacks whose first argument is the address of an [`Op`].
macro_rules! callbacks {
    ($(
        $(#[doc = $text:literal])*
        fn $name:ident($op:ident $(, $argument:ident: $type:ty)*) -> $result:ty $body:block
    )*) => {$(
        $(#[doc = $text])*
        unsafe extern "system" fn $name($op: *const OrtCustomOp $(, $argument: $type)*) -> $result {
            // SAFETY: ONNX Runtime passes the operator's address to its callbacks.
            let $op = unsafe { Op::of($op) };
            $body
        }
    )*};
}

callbacks! {
    fn create(op, _api: *const OrtApi, info: *const OrtKernelInfo, kernel: *mut *mut c_void) -> OrtStatusPtr {
        let name = || match op.ort.node_name(info) {
            Ok(node) if !node.is_empty() => format!("{} `{node}`", operator(op.kind)),
            _ => operator(op.kind),
        };
        guarded(op.ort, name, || {
            let made = Box::new(op.node(info)?);
            // SAFETY: ONNX Runtime passes the address of a live pointer.
            unsafe { kernel.write(Box::into_raw(made).cast()) };
            Ok(())
        })
    }

    fn name_of(op) -> *const c_char {
        op.name.as_ptr()
    }

    fn provider_of(op) -> *const c_char {
        op.provider.as_ptr()
    }

    fn input_type(op, index: usize) -> Type {
        op.inputs.get(index).copied().unwrap_or(Type::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED)
    }

    fn input_count(op) -> usize {
        op.inputs.len()
    }

    fn output_type(op, _index: usize) -> Type {
        op.output
    }

    /// Shapes and scalars are on the host. Tensors and lengths are in the provider's memory.
    fn memory_type(op, _index: usize) -> OrtMemType {
        match op.kind.reverses() {
            true => OrtMemType::OrtMemTypeDefault,
            false => OrtMemType::OrtMemTypeCPUInput,
        }
    }

    /// The opset before the one in which ONNX has the operator. With the operator's own opset, ONNX Runtime up to 1.31
    /// would fold constants with its own kernel, whose type names a custom operator cannot have, and would fail to load
    /// the model. ONNX Runtime still refuses older opsets.
    fn start_version(op) -> c_int {
        match op.kind {
            Kind::ReverseSequence => 9,
            Kind::Range => 10,
            Kind::ReverseSubsequences | Kind::FillValueSequence => 1,
        }
    }

    fn infer(op, context: *mut OrtShapeInferContext) -> OrtStatusPtr {
        let body = || match op.kind {
            Kind::Range => op.ort.one_unknown_dimension(context),
            _ => op.ort.same_shape(context),
        };
        guarded(op.ort, || operator(op.kind), body)
    }
}

/// A node, as ONNX Runtime keeps it. ONNX Runtime runs it from several threads at once.
struct Node {
    device: NodeDevice,
    kind: Kind,
    /// `None` for a kind that makes sequences.
    reverse: Option<Reverse>,
}

unsafe extern "system" fn compute(
    node: *mut c_void,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: `create` made it and it is not yet destroyed. Concurrent runs share it, and `Node` is `Sync`.
    let node = unsafe { &*node.cast::<Node>() };
    let body = || match &node.reverse {
        Some(reverse) => reverse.run(&node.device, context),
        None if node.kind == Kind::Range => node.device.range(context),
        None => node.device.fill(context),
    };
    RUNS.fetch_add(1, Ordering::Relaxed);
    guarded(node.device.ort, || operator(node.kind), body)
}

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Node>();
};

unsafe extern "system" fn destroy(node: *mut c_void) {
    // SAFETY: `create` made it, and ONNX Runtime destroys it once.
    unsafe { crate::output::destroy(node.cast::<Node>()) }
}

unsafe extern "system" fn output_count(_: *const OrtCustomOp) -> usize {
    1
}

unsafe extern "system" fn required(
    _: *const OrtCustomOp,
    _: usize,
) -> OrtCustomOpInputOutputCharacteristic {
    OrtCustomOpInputOutputCharacteristic::INPUT_OUTPUT_REQUIRED
}

/// The output may be the first input.
unsafe extern "system" fn may_in_place(inputs: *mut *mut c_int, outputs: *mut *mut c_int) -> usize {
    static FIRST: c_int = 0;
    for indices in [inputs, outputs] {
        // SAFETY: ONNX Runtime passes the addresses of live pointers, and only reads what they point to then.
        unsafe { indices.write((&raw const FIRST).cast_mut()) };
    }
    1
}

/// Nothing was allocated.
unsafe extern "system" fn release_in_place(_: *mut c_int, _: *mut c_int) {}
