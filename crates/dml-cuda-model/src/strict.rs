//! Finds what DxDispatch 0.18.1 would refuse or compute differently in the model as a whole. The readers find what a
//! single value shows.

use std::collections::HashMap;

use dml_cuda::{
    validate, FeatureLevel, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc,
    ScalarUnion, TensorDataType,
};
use half::f16;

use crate::command::{Bindings, Command};
use crate::json::{Document, Result};
use crate::node::Node;
use crate::value::{from_bytes, truncated};
use crate::Model;

/// How many commands use each resource, and whether a dispatch writes it.
type Uses<'a> = HashMap<&'a str, (usize, bool)>;

/// Looks at each dispatch of a model, and at what it is bound to. Records findings in the document.
pub fn check(model: &Model, document: &Document) -> Result<()> {
    let mut uses = Uses::new();
    for (command, ..) in &model.commands {
        for name in command.resources() {
            let (count, is_written) = uses.entry(name).or_default();
            *count += 1;
            *is_written |= command.output() == Some(name);
        }
    }
    let mut left = model.commands.iter();
    let commands = Node::root(document).require("commands")?;
    commands
        .each(|node| {
            left.next().map_or(Ok(()), |(command, ..)| {
                dispatch(model, &uses, command, node)
            })
        })
        .map(drop)
}

fn dispatch(model: &Model, uses: &Uses, command: &Command, node: &Node) -> Result<()> {
    let Command::Dispatch {
        dispatchable,
        bindings,
    } = command
    else {
        return Ok(());
    };
    let nodes = node.require("bindings")?;
    let desc = model
        .dispatchables
        .iter()
        .find(|found| found.name == *dispatchable)
        .map(|found| &found.desc);
    // An operator that the rules reject does not run, and may be larger than all memory.
    match desc.filter(|desc| validate(desc, FeatureLevel::HIGHEST).is_ok()) {
        Some(OperatorDesc::ReverseSubsequences(desc)) => {
            reversal((model, uses), desc, bindings, &nodes)
        }
        Some(OperatorDesc::FillValueSequence(desc)) => {
            let (Some(output), Some(node)) = (command.output(), nodes.get("OutputTensor")) else {
                return Ok(());
            };
            if let Some(rounded) = rounded_element(desc).filter(|_| uses[output].0 > 1) {
                let required =
                    "a fill of elements that FLOAT16 holds, or adapters differ: some round to nearest, some towards zero";
                node.refuse(format!("a fill with the element {rounded}"), required);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

fn reversal(
    (model, uses): (&Model, &Uses),
    desc: &ReverseSubsequencesDesc,
    bindings: &Bindings,
    nodes: &Node,
) -> Result<()> {
    let resource = |name: &str| {
        model
            .resources
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, resource)| resource)
    };
    if let (Some(source), Some(node)) = (
        bindings.get("SequenceLengthsTensor"),
        nodes.get("SequenceLengthsTensor"),
    ) {
        // What a dispatch writes is checked when it is dispatched.
        if let Some(resource) =
            resource(&source.resource).filter(|_| !uses[source.resource.as_str()].1)
        {
            let offset = source.offset_in_bytes(resource.data_type);
            // Nothing after the lengths is kept: the resource may be much larger.
            let length = desc.sequence_lengths_tensor.total_tensor_size_in_bytes;
            let end = offset.map_or(0, |offset| offset.saturating_add(length));
            let mut bytes = Vec::new();
            resource.initial_values.write(|part| {
                let missing = end.saturating_sub(bytes.len() as u64);
                let taken = missing.min(part.len() as u64);
                bytes.extend_from_slice(&part[..taken as usize]);
                Ok::<(), String>(())
            })?;
            let bound = offset
                .and_then(|offset| bytes.get(offset as usize..))
                .unwrap_or_default();
            if let Some((found, required)) = long_lengths(bound, desc) {
                node.refuse(found, required);
            }
        }
    }
    if let (Some(input), Some(output)) = (bindings.get("InputTensor"), bindings.get("OutputTensor"))
    {
        let data_type = resource(&input.resource).and_then(|resource| resource.data_type);
        let offsets = (
            input.offset_in_bytes(data_type),
            output.offset_in_bytes(data_type),
        );
        let length = desc.output_tensor.total_tensor_size_in_bytes;
        let overlap = matches!(offsets, (Some(from), Some(to)) if from.abs_diff(to) < length);
        if input.resource == output.resource && overlap {
            let required =
                "two, or ranges that do not overlap: DirectML accepts one but returns wrong data";
            nodes.differs("one resource for InputTensor and OutputTensor", required);
        }
    }
    Ok(())
}

/// The finding of `--strict` about a dispatch's lengths if one is above the axis size: DirectML does not clamp it as
/// this library does. `bytes` begin at the bound range.
pub fn long_lengths(bytes: &[u8], desc: &ReverseSubsequencesDesc) -> Option<(String, String)> {
    let lengths = &desc.sequence_lengths_tensor;
    let &axis_size = desc.input_tensor.sizes.get(desc.axis as usize)?;
    let width = if lengths.data_type == TensorDataType::UInt64 {
        8
    } else {
        4
    };
    let (mut dims, mut packed) = (Vec::new(), 1);
    for (d, &size) in lengths.sizes.iter().enumerate().rev() {
        let stride = lengths
            .strides
            .as_ref()
            .map_or(packed, |strides| strides[d].into());
        packed *= u64::from(size);
        // Repeated elements count once.
        dims.push((
            if stride == 0 { 1 } else { u64::from(size) },
            stride * width,
        ));
    }
    let longest = longest(bytes, width as usize, &dims);
    if longest <= axis_size.into() {
        return None;
    }
    let required =
        format!("one of lengths up to {axis_size}, the size of the axis, because DirectML does not clamp a length");
    Some((format!("a tensor with a length of {longest}"), required))
}

/// The longest of the lengths that begin at a byte, in dimensions with their sizes and steps in bytes.
fn longest(bytes: &[u8], width: usize, dims: &[(u64, u64)]) -> u64 {
    let Some(((size, step), inner)) = dims.split_last() else {
        return from_bytes(bytes.get(..width).unwrap_or_default());
    };
    let rests = (0..*size).map(|n| bytes.get((n * step) as usize..).unwrap_or_default());
    rests
        .map(|bytes| longest(bytes, width, inner))
        .max()
        .unwrap_or(0)
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
