//! `--strict`: refuses what this runner accepts and DxDispatch 0.18.1 does not. A model that passes runs on Windows too.

use dml_cuda::{OperatorType, TensorDataType};
use jsonc_parser::ast::Value;

use super::dispatchable;
use super::json::{Document, Node, Result};

/// The places that DxDispatch would refuse.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn add(&mut self, node: &Node, found: &str, required: &str) {
        self.0.push(node.error(found, required));
    }
}

/// Fails with a list of everything that DxDispatch would refuse. Returns warnings about what it accepts but does differently.
pub fn check(document: &Document, has_byte_order_mark: bool) -> Result<Vec<String>> {
    let (mut findings, mut warnings) = (Findings::default(), Vec::new());
    let root = document.root();
    if has_byte_order_mark {
        findings.0.push("line 1: the document begins with a byte order mark, must begin with its text".to_owned());
    }
    for (_, resource) in root.require("resources")?.members()? {
        initial_values(&resource, &mut findings)?;
    }
    for (_, dispatchable) in root.require("dispatchables")?.members()? {
        if let Some(bindings) = dispatchable.get("bindings")? {
            findings.add(
                &bindings,
                "given",
                "left out, because DxDispatch binds these when it initializes and not when it dispatches",
            );
        }
        scalars(&dispatchable, &mut findings)?;
    }
    for command in root.require("commands")?.elements()? {
        if let Some(path) = command.get("targetPath")? {
            extension(&path, &mut findings)?;
        }
        if let Some(bindings) = command.get("bindings")? {
            let bound = |name: &str| Ok::<_, String>(bindings.get(name)?.map(|node| resource_of(&node)));
            if let (Some(input), Some(output)) = (bound("InputTensor")?, bound("OutputTensor")?) {
                if input == output && input.is_some() {
                    warnings.push(bindings.error(
                        "one resource for InputTensor and OutputTensor",
                        "two, because DirectML accepts one but returns wrong data",
                    ));
                }
            }
        }
    }
    if findings.0.is_empty() {
        return Ok(warnings);
    }
    let lines: Vec<String> = findings.0.iter().map(|finding| format!("\n  {finding}")).collect();
    Err(format!("DxDispatch would not run this model as this runner does:{}", lines.concat()))
}

/// The resource that a binding names.
fn resource_of(node: &Node) -> Option<String> {
    let node = match node.value {
        Value::Array(array) if array.elements.len() == 1 => node.elements().ok()?.into_iter().next()?,
        _ => node.clone(),
    };
    let name = if node.value.as_object().is_some() { node.get("name").ok()?? } else { node };
    name.string().ok().map(str::to_owned)
}

fn is_unsigned(data_type: TensorDataType) -> bool {
    use TensorDataType as T;
    matches!(data_type, T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64)
}

fn not_negative(node: &Node, data_type: TensorDataType, findings: &mut Findings) {
    if is_unsigned(data_type) && node.kind().starts_with('-') {
        findings.add(node, &node.kind(), &format!("0 or more, because its type is {data_type}"));
    }
}

fn scalars(dispatchable: &Node, findings: &mut Findings) -> Result<()> {
    let Some(kind) = dispatchable.get("type")? else {
        findings.add(dispatchable, "without \"type\"", "an object that has it, in lower case");
        return Ok(());
    };
    if OperatorType::from_name(kind.string()?) != Some(OperatorType::FillValueSequence) {
        return Ok(());
    }
    let desc = dispatchable.get("desc")?.unwrap_or_else(|| dispatchable.clone());
    let Some(value_type) = desc.get("ValueDataType")? else { return Ok(()) };
    let data_type = dispatchable::data_type(&value_type)?;
    for member in ["ValueStart", "ValueDelta"] {
        let Some(scalar) = desc.get(member)? else { continue };
        if scalar.value.as_string_lit().is_some() {
            findings.add(&scalar, &scalar.kind(), "a number");
        }
        not_negative(&scalar, data_type, findings);
    }
    Ok(())
}

fn initial_values(resource: &Node, findings: &mut Findings) -> Result<()> {
    let Some(values) = resource.get("initialValues")? else { return Ok(()) };
    let declared = resource.get("initialValuesDataType")?.map(|node| dispatchable::data_type(&node)).transpose()?;
    if values.value.as_array().is_some() {
        for element in values.elements()? {
            if let Some(data_type) = declared {
                not_negative(&element, data_type, findings);
            }
        }
        return Ok(());
    }
    if let Some(path) = values.get("sourcePath")? {
        return extension(&path, findings);
    }
    if values.get("valueStart")?.is_some() && values.get("valueDelta")?.is_none() {
        findings.add(&values, "without valueDelta", "an object that has it");
    }
    for member in ["value", "valueStart", "valueDelta"] {
        if let (Some(node), Some(data_type)) = (values.get(member)?, declared) {
            not_negative(&node, data_type, findings);
        }
    }
    Ok(())
}

/// DxDispatch accepts raw files as .bin and .dat only.
fn extension(path: &Node, findings: &mut Findings) -> Result<()> {
    let name = path.string()?.to_ascii_lowercase();
    if ![".npy", ".bin", ".dat"].iter().any(|extension| name.ends_with(extension)) {
        findings.add(path, &path.kind(), "a file that ends in .npy, .bin or .dat");
    }
    Ok(())
}
