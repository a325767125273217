//! Finds what DxDispatch 0.18.1 would refuse or compute differently in the model as a whole, for `--strict`. The readers
//! find what a single value shows.
//!
//! Three rules need more than one value:
//!
//! - A length above the size of the axis: DirectML does not clamp it. Lengths that a dispatch writes are checked when
//!   they are there, by the program that runs the model.
//! - A reversal in place: DirectML returns wrong data.
//! - A FLOAT16 fill whose elements need rounding, if another command uses its output: adapters round differently.

use std::collections::HashMap;

use dml_cuda::{
    validate, FeatureLevel, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc,
    ScalarUnion, TensorDataType,
};
use half::f16;

use crate::command::{Bindings, Command, Source};
use crate::json::{Document, Result};
use crate::node::Node;
use crate::resource::Resource;
use crate::value::{from_bytes, truncated};
use crate::{Model, ModelCommand};

/// How the commands of a model use a resource.
#[derive(Default)]
struct Use {
    /// How many commands use it.
    commands: usize,
    /// Whether a dispatch writes it.
    is_written: bool,
}

/// A model with the uses of its resources.
struct Checked<'a> {
    model: &'a Model,
    uses: HashMap<&'a str, Use>,
}

/// What DxDispatch would refuse, and what it needs instead.
pub struct Finding {
    pub found: String,
    pub required: String,
}

/// Looks at each dispatch of a model, and at what it is bound to. Records findings in the document.
pub fn check(model: &Model, document: &Document) -> Result<()> {
    let mut uses: HashMap<&str, Use> = HashMap::new();
    for ModelCommand { command, .. } in &model.commands {
        for name in command.resources() {
            let used = uses.entry(name).or_default();
            used.commands += 1;
            used.is_written |= command.output() == Some(name);
        }
    }
    let checked = Checked { model, uses };
    // The commands as they were read, next to their nodes, which have the places for messages.
    let mut left = model.commands.iter();
    let commands = Node::root(document).require("commands")?;
    commands.each(|node| match left.next() {
        Some(each) => checked.dispatch(&each.command, node),
        None => Ok(()),
    })?;
    Ok(())
}

impl Checked<'_> {
    /// Looks at a dispatch by the rules of its operator.
    fn dispatch(&self, command: &Command, node: &Node) -> Result<()> {
        let Command::Dispatch {
            dispatchable,
            bindings,
        } = command
        else {
            return Ok(());
        };
        let nodes = node.require("bindings")?;
        let mut dispatchables = self.model.dispatchables.iter();
        let Some(found) = dispatchables.find(|found| found.name == *dispatchable) else {
            return Ok(());
        };
        // An operator that the rules reject does not run, and may be larger than all memory.
        if validate(&found.desc, FeatureLevel::HIGHEST).is_err() {
            return Ok(());
        }
        match &found.desc {
            OperatorDesc::ReverseSubsequences(desc) => {
                self.lengths(desc, bindings, &nodes)?;
                self.reversal_in_place(desc, bindings, &nodes);
            }
            OperatorDesc::FillValueSequence(desc) => {
                if let (Some(output), Some(node)) = (command.output(), nodes.get("OutputTensor")) {
                    self.fill(desc, output, &node);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses a fill whose elements are rounded, if another command reads them.
    fn fill(&self, desc: &FillValueSequenceDesc, output: &str, node: &Node) {
        if self.uses[output].commands < 2 {
            return;
        }
        if let Some(rounded) = rounded_element(desc) {
            let required =
                "a fill of elements that FLOAT16 holds, or adapters differ: some round to nearest, some towards zero";
            node.refuse(format!("a fill with the element {rounded}"), required);
        }
    }

    /// The resource of a name. A deferred one may be absent.
    fn resource(&self, name: &str) -> Option<&Resource> {
        let mut resources = self.model.resources.iter();
        let (_, resource) = resources.find(|(found, _)| found == name)?;
        Some(resource)
    }

    /// Refuses lengths above the size of the axis, if the model's file has them.
    fn lengths(
        &self,
        desc: &ReverseSubsequencesDesc,
        bindings: &Bindings,
        nodes: &Node,
    ) -> Result<()> {
        let point = "SequenceLengthsTensor";
        let (Some(source), Some(node)) = (bindings.get(point), nodes.get(point)) else {
            return Ok(());
        };
        // What a dispatch writes is checked when it is dispatched.
        if self.uses[source.resource.as_str()].is_written {
            return Ok(());
        }
        if let Some(resource) = self.resource(&source.resource) {
            let size = desc.sequence_lengths_tensor.total_tensor_size_in_bytes;
            let bytes = bound_bytes(resource, source, size)?;
            if let Some(Finding { found, required }) = long_lengths(&bytes, desc) {
                node.refuse(found, required);
            }
        }
        Ok(())
    }

    /// Warns of a reversal whose input and output overlap.
    fn reversal_in_place(&self, desc: &ReverseSubsequencesDesc, bindings: &Bindings, nodes: &Node) {
        let bound = (bindings.get("InputTensor"), bindings.get("OutputTensor"));
        let (Some(input), Some(output)) = bound else {
            return;
        };
        if input.resource != output.resource {
            return;
        }
        let resource = self.resource(&input.resource);
        let data_type = resource.and_then(|resource| resource.data_type);
        let offsets = (
            input.offset_in_bytes(data_type),
            output.offset_in_bytes(data_type),
        );
        let length = desc.output_tensor.total_tensor_size_in_bytes;
        // Input and output of a reversal have the same size, so that the distance of their begins decides.
        if matches!(offsets, (Some(from), Some(to)) if from.abs_diff(to) < length) {
            let required =
                "two, or ranges that do not overlap: DirectML accepts one but returns wrong data";
            nodes.differs("one resource for InputTensor and OutputTensor", required);
        }
    }
}

/// The first `size` bytes of a resource's initial values from the bound offset on, or fewer if it ends before. Nothing
/// after them is kept: the resource may be much larger.
fn bound_bytes(resource: &Resource, source: &Source, size: u64) -> Result<Vec<u8>> {
    let Some(offset) = source.offset_in_bytes(resource.data_type) else {
        return Ok(Vec::new());
    };
    let end = offset.saturating_add(size);
    let mut bytes = Vec::new();
    resource.initial_values.write(|part| {
        let missing = end.saturating_sub(bytes.len() as u64);
        let taken = missing.min(part.len() as u64);
        bytes.extend_from_slice(&part[..taken as usize]);
        Ok::<(), String>(())
    })?;
    bytes.drain(..bytes.len().min(offset as usize));
    Ok(bytes)
}

/// A dimension of the lengths. Its step is in bytes.
struct Dimension {
    size: u64,
    step: u64,
}

/// The finding about a dispatch's lengths if one is above the axis size: DirectML does not clamp it as this library
/// does. `bytes` begin at the bound range.
pub fn long_lengths(bytes: &[u8], desc: &ReverseSubsequencesDesc) -> Option<Finding> {
    let lengths = &desc.sequence_lengths_tensor;
    let &axis_size = desc.input_tensor.sizes.get(desc.axis as usize)?;
    let width = match lengths.data_type {
        TensorDataType::UInt64 => 8,
        _ => 4,
    };
    let (mut dimensions, mut packed) = (Vec::new(), 1);
    // From the innermost dimension, whose stride is 1 if there are none.
    for (d, &size) in lengths.sizes.iter().enumerate().rev() {
        let stride = match &lengths.strides {
            Some(strides) => strides[d].into(),
            None => packed,
        };
        packed *= u64::from(size);
        dimensions.push(Dimension {
            // Repeated elements count once.
            size: if stride == 0 { 1 } else { size.into() },
            step: stride * width,
        });
    }
    let longest = longest(bytes, width as usize, &dimensions);
    if longest <= axis_size.into() {
        return None;
    }
    Some(Finding {
        found: format!("a tensor with a length of {longest}"),
        required: format!("one of lengths up to {axis_size}, the size of the axis, because DirectML does not clamp a length"),
    })
}

/// The longest of the lengths that begin at a byte. The innermost dimension comes first. Bytes that are not there count
/// as 0.
fn longest(bytes: &[u8], width: usize, dimensions: &[Dimension]) -> u64 {
    let Some((outer, inner)) = dimensions.split_last() else {
        return from_bytes(bytes.get(..width).unwrap_or_default());
    };
    let mut most = 0;
    for n in 0..outer.size {
        let bytes = bytes.get((n * outer.step) as usize..).unwrap_or_default();
        most = most.max(longest(bytes, width, inner));
    }
    most
}

/// The first element of a FLOAT16 fill that depends on the adapter. NVIDIA's GPUs round elements to nearest. A software
/// adapter was recorded that rounds them towards zero.
pub fn rounded_element(desc: &FillValueSequenceDesc) -> Option<f32> {
    let half = |scalar: ScalarUnion| f16::from_bits(scalar.to_bits() as u16).to_f32();
    let (start, delta) = (half(desc.value_start), half(desc.value_delta));
    let count: u64 = desc
        .output_tensor
        .sizes
        .iter()
        .map(|&size| u64::from(size))
        .product();
    if desc.value_data_type != TensorDataType::Float16
        || !start.is_finite()
        || !delta.is_finite()
        || delta == 0.0
    {
        return None;
    }
    // Nearly always one of the first few thousand elements needs more than FLOAT16's 11 bits. From 2^24 on, f32 does
    // not hold every n.
    let mut elements = (0..count.min(1 << 24)).map(|n| (n as f32).mul_add(delta, start));
    elements.find(|element| {
        let nearest = f16::from_f32(*element);
        nearest.is_infinite() || nearest != truncated(*element)
    })
}
