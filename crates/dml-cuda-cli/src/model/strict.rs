//! `--strict`: refuses what this runner accepts and DxDispatch 0.18.1 does not. A model that passes runs on Windows too.

pub mod values;

use std::path::Path;

use dml_cuda::{OperatorDesc, OperatorType, TensorDataType};
use jsonc_parser::ast::Value;

use super::json::{Document, Node, Result};
use super::{dispatchable, npy, resource};

/// What surrounds a document.
pub struct Source<'a> {
    /// The model's path, as it was given.
    pub path: &'a Path,
    pub text: &'a str,
    pub has_byte_order_mark: bool,
    /// Where the model's files are.
    pub folder: &'a Path,
    /// Other paths of the command line.
    pub paths: Vec<&'a Path>,
}

fn is_integer(node: &Node) -> bool {
    let digits = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    node.value.as_number_lit().is_some_and(|number| digits(number.value))
}

/// The places that DxDispatch would refuse.
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    /// Members that must be integers of 0 or more. Unlike here, null is not an absent member.
    fn unsigned(&mut self, object: &Node, names: &[&str]) -> Result<()> {
        for name in names {
            object.member(name)?.iter().for_each(|node| self.integer(node, false));
        }
        Ok(())
    }

    fn list_of_unsigned(&mut self, object: &Node, name: &str) -> Result<()> {
        match object.member(name)? {
            Some(list) if list.value.as_array().is_some() => {
                list.elements()?.iter().for_each(|node| self.integer(node, false));
            }
            Some(other) => self.add(&other, &other.kind(), "an array of integers"),
            None => {}
        }
        Ok(())
    }

    /// DxDispatch takes integers without a fraction and without an exponent.
    fn integer(&mut self, node: &Node, negative: bool) {
        let found = node.kind();
        if !is_integer(node) || (!negative && found.starts_with('-')) {
            let sign = if negative { "" } else { " of 0 or more" };
            self.add(node, &found, &format!("an integer{sign} without a fraction or an exponent"));
        }
    }

    /// A number of a type, in an initial value or a scalar.
    fn number(&mut self, node: &Node, data_type: TensorDataType) {
        let Some(number) = node.value.as_number_lit() else { return };
        if is_unsigned(data_type) && node.kind().starts_with('-') {
            return self.add(node, &node.kind(), &format!("0 or more, because its type is {data_type}"));
        }
        if !data_type.is_float() {
            return self.integer(node, true);
        }
        let value: f64 = number.value.parse().unwrap_or(f64::NAN);
        let integer = number.value.parse::<i128>().ok();
        // DxDispatch takes an integer of 64 bits for a float only if a double holds it. Longer ones are doubles to it.
        let of_64_bits = |integer: &i128| (i64::MIN.into()..=u64::MAX.into()).contains(integer);
        if !value.is_finite() {
            self.add(node, &node.kind(), "a number that a double can hold");
        } else if integer.filter(of_64_bits).is_some_and(|integer| value as i128 != integer) {
            self.add(node, &node.kind(), "an integer that a double holds exactly, or a number with a fraction");
        }
    }

    fn add(&mut self, node: &Node, found: &str, required: &str) {
        self.0.push(node.error(found, required));
    }
}

/// Fails with a list of everything that DxDispatch would refuse or give other bits. Returns warnings about what it accepts but does
/// differently.
pub fn check(document: &Document, source: &Source) -> Result<Vec<String>> {
    let (mut findings, mut warnings) = (Findings::default(), Vec::new());
    let root = document.root();
    file_names(source, &mut findings);
    if source.has_byte_order_mark {
        findings.0.push("line 1: the document begins with a byte order mark, must begin with its text".to_owned());
    }
    control_characters(source.text, &mut findings);
    let resources = root.require("resources")?.members()?;
    let commands = root.require("commands")?.elements()?;
    let outputs = commands.iter().filter_map(|command| command.get("bindings").ok()??.get("OutputTensor").ok()?);
    let outputs: Vec<String> = outputs.filter_map(|output| resource_of(&output)).collect();
    for (name, resource) in &resources {
        findings.unsigned(resource, &["sizeInBytes", "initialValuesOffsetInBytes"])?;
        if let Some(offset) = resource.get("initialValuesOffsetInBytes")?.filter(|offset| offset.kind() != "0") {
            let required = "0, because DxDispatch writes the values at byte 0 all the same";
            // What a dispatch writes does not depend on the values before it.
            match outputs.iter().any(|output| output == name) {
                true => warnings.push(offset.error(offset.kind(), required)),
                false => findings.add(&offset, &offset.kind(), required),
            }
        }
        initial_values(resource, source.folder, &mut findings)?;
    }
    let dispatchables = root.require("dispatchables")?.members()?;
    for (_, dispatchable) in &dispatchables {
        if let Some(bindings) = dispatchable.get("bindings")? {
            findings.add(
                &bindings,
                "given",
                "left out, because DxDispatch binds these when it initializes and not when it dispatches",
            );
        }
        operator(dispatchable, &mut findings)?;
    }
    for command in &commands {
        // DxDispatch does not fail if it cannot write.
        if let Some(path) = command.get("targetPath")?.filter(|path| !is_windows_path(&path.kind())) {
            warnings.push(path.error(path.kind(), "a name that Windows takes, without <, >, |, ?, * and :"));
        }
        findings.list_of_unsigned(command, "dimensions")?;
        findings.list_of_unsigned(command, "threadGroupCount")?;
        if let Some(count) = command.member("threadGroupCount")? {
            if count.value.as_array().is_none_or(|array| array.elements.len() != 3) {
                findings.add(&count, &count.kind(), "an array of 3 integers");
            }
        }
        let Some(bindings) = command.get("bindings")? else { continue };
        for (_, bound) in bindings.members()? {
            let one = [bound.clone()];
            let sources = if bound.value.as_array().is_some() { bound.elements()? } else { one.to_vec() };
            for source in sources.iter().filter(|source| source.value.as_object().is_some()) {
                binding(source, &resources, &mut findings)?;
            }
        }
        let named = command.get("dispatchable")?;
        let operator =
            dispatchables.iter().find(|(name, _)| named.as_ref().and_then(|node| node.string().ok()) == Some(name));
        match operator.map(|(_, operator)| dispatchable::read(operator)) {
            Some(Ok(OperatorDesc::ReverseSubsequences(desc))) => {
                let resource = |bound: &Node| {
                    let name = resource_of(bound);
                    resources.iter().find(|(found, _)| name.as_deref() == Some(found))
                };
                // What a dispatch writes is checked when it is dispatched.
                if let Some(lengths) = bindings.get("SequenceLengthsTensor")? {
                    let known = resource(&lengths).filter(|(name, _)| !outputs.iter().any(|output| output == name));
                    // Errors of what is read are found when it is read to run.
                    if let Some(Ok(read)) = known.map(|(_, node)| resource::read(node, source.folder)) {
                        let offset = known.map_or(Ok(0), |(_, node)| byte_offset(&lengths, node))? as usize;
                        let bytes = read.initial_values.get(offset..).unwrap_or_default();
                        if let Some((found, required)) = values::long_lengths(bytes, &desc) {
                            findings.add(&lengths, &found, &required);
                        }
                    }
                }
                if let (Some(input), Some(output)) = (bindings.get("InputTensor")?, bindings.get("OutputTensor")?) {
                    let Some((_, node)) = resource(&input).filter(|_| resource_of(&input) == resource_of(&output))
                    else {
                        continue;
                    };
                    let begins = [byte_offset(&input, node)?, byte_offset(&output, node)?];
                    if begins[0].abs_diff(begins[1]) < desc.output_tensor.total_tensor_size_in_bytes {
                        let required =
                            "two, or ranges that do not overlap: DirectML accepts one but returns wrong data";
                        warnings.push(bindings.error("one resource for InputTensor and OutputTensor", required));
                    }
                }
            }
            Some(Ok(OperatorDesc::FillValueSequence(desc))) => {
                let Some(output) = bindings.get("OutputTensor")? else { continue };
                let is_used = |other: &Node| !std::ptr::eq(other.value, command.value) && uses(other, &output);
                if let Some(rounded) = values::rounded_element(&desc).filter(|_| commands.iter().any(is_used)) {
                    let required =
                        "of elements that FLOAT16 holds, or adapters differ: some round to nearest, some towards zero";
                    findings.add(&output, &format!("a fill with the element {rounded}"), required);
                }
            }
            _ => {}
        }
    }
    if findings.0.is_empty() {
        return Ok(warnings);
    }
    let lines: Vec<String> = findings.0.iter().map(|finding| format!("\n  {finding}")).collect();
    Err(format!("DxDispatch would not run this model as this runner does:{}", lines.concat()))
}

/// DxDispatch tells a model by its name's ending, and ends an option's value at the first space.
fn file_names(source: &Source, findings: &mut Findings) {
    let has_space = |path: &Path| path.to_string_lossy().contains(' ');
    if !source.path.to_string_lossy().ends_with(".json") || has_space(source.path) {
        findings
            .0
            .push(format!("the model's path is '{}', must end in .json and have no space", source.path.display()));
    }
    for path in source.paths.iter().filter(|path| has_space(path)) {
        findings.0.push(format!("a path is '{}', must have no space", path.display()));
    }
}

fn is_windows_path(quoted: &str) -> bool {
    let path = quoted.trim_matches('"');
    // `C:` names a drive.
    !path.contains(['<', '>', '|', '?', '*']) && !path.chars().skip(2).any(|character| character == ':')
}

/// In a string DxDispatch takes control characters as escapes only.
fn control_characters(text: &str, findings: &mut Findings) {
    let (mut in_string, mut in_comment, mut previous, mut line) = (false, None, ' ', 1);
    for character in text.chars() {
        match (in_comment, in_string) {
            (Some('/'), _) if character == '\n' => in_comment = None,
            (Some('*'), _) if (previous, character) == ('*', '/') => in_comment = None,
            (Some(_), _) => {}
            (None, true) if previous == '\\' => {
                // The character after an escape; a second backslash does not escape the next one.
                previous = ' ';
                continue;
            }
            (None, true) if character == '"' => in_string = false,
            (None, true) if character < ' ' => {
                findings.0.push(format!("line {line}: a string has the character {character:?}, must have an escape"));
            }
            (None, true) => {}
            (None, false) if character == '"' => in_string = true,
            (None, false) if previous == '/' && matches!(character, '/' | '*') => in_comment = Some(character),
            (None, false) => {}
        }
        line += usize::from(character == '\n');
        previous = character;
    }
}

/// The byte at which a binding begins in its resource.
fn byte_offset(bound: &Node, resource: &Node) -> Result<u64> {
    let Value::Object(_) = bound.value else { return Ok(0) };
    let of_type = match resource.get("initialValuesDataType")? {
        Some(data_type) => u64::from(dispatchable::data_type(&data_type)?.size_in_bits() / 8),
        None => 4,
    };
    let size = bound.get_or("elementSizeInBytes", 0, |node| node.u64())?;
    Ok(bound.get_or("elementOffset", 0, |node| node.u64())?.saturating_mul(if size == 0 { of_type } else { size }))
}

/// Whether a command names the resource of a binding.
fn uses(command: &Node, bound: &Node) -> bool {
    let resource = command.get("resource").ok().flatten();
    let bindings = command.get("bindings").ok().flatten().and_then(|bindings| bindings.members().ok());
    let sources = bindings.into_iter().flatten().map(|(_, source)| source).chain(resource);
    resource_of(bound)
        .is_some_and(|name| sources.into_iter().any(|source| resource_of(&source).as_ref() == Some(&name)))
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

fn operator(dispatchable: &Node, findings: &mut Findings) -> Result<()> {
    let Some(kind) = dispatchable.get("type")? else {
        findings.add(dispatchable, "without \"type\"", "an object that has it, in lower case");
        return Ok(());
    };
    if let Some(other) = dispatchable.member("Type")? {
        if other.kind() != kind.kind() {
            findings.add(&other, &other.kind(), "the same as \"type\", or left out");
        }
    }
    execution_flags(dispatchable, findings)?;
    if let Some(mode) = dispatchable.member("dmlCompileType")? {
        if mode.kind() != "\"DmlCompileOp\"" {
            // Of the other mode a crash was recorded.
            findings.add(&mode, &mode.kind(), "\"DmlCompileOp\", or left out");
        }
    }
    let desc = dispatchable.get("desc")?.unwrap_or_else(|| dispatchable.clone());
    for name in ["InputTensor", "SequenceLengthsTensor", "OutputTensor"] {
        let Some(tensor) = desc.get(name)? else { continue };
        let tensor = tensor.get("Desc")?.unwrap_or(tensor);
        findings.list_of_unsigned(&tensor, "Sizes")?;
        findings.list_of_unsigned(&tensor, "Strides")?;
        findings.unsigned(&tensor, &["DimensionCount", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"])?;
    }
    findings.unsigned(&desc, &["Axis"])?;
    if OperatorType::from_name(kind.string()?) == Some(OperatorType::FillValueSequence) {
        scalars(&desc, findings)?;
    }
    Ok(())
}

fn execution_flags(dispatchable: &Node, findings: &mut Findings) -> Result<()> {
    let Some(flags) = dispatchable.member("executionFlags")? else { return Ok(()) };
    let one = [flags.clone()];
    let each = if flags.value.as_array().is_some() { flags.elements()? } else { one.to_vec() };
    for flag in each {
        let name = flag.string().unwrap_or_default();
        let name = name.strip_prefix("DML_EXECUTION_FLAG_").unwrap_or(name);
        const NAMES: [&str; 4] =
            ["NONE", "ALLOW_HALF_PRECISION_COMPUTATION", "DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE"];
        if !NAMES.contains(&name) {
            findings.add(&flag, &flag.kind(), &format!("{} or {}", NAMES[..3].join(", "), NAMES[3]));
        }
    }
    Ok(())
}

fn scalars(desc: &Node, findings: &mut Findings) -> Result<()> {
    let Some(value_type) = desc.get("ValueDataType")? else { return Ok(()) };
    let data_type = dispatchable::data_type(&value_type)?;
    let (member, member_type) = match data_type {
        TensorDataType::Float16 => ("UInt16", TensorDataType::UInt16),
        _ => (data_type.name(), data_type),
    };
    for name in ["ValueStart", "ValueDelta"] {
        let Some(scalar) = desc.get(name)? else { continue };
        if scalar.value.as_string_lit().is_some() {
            findings.add(&scalar, &scalar.kind(), "a number");
        } else if scalar.value.as_object().is_some() {
            // A union's members are spelled Float32, UInt16, …
            match scalar.members()?.into_iter().find(|(found, _)| found.eq_ignore_ascii_case(member)) {
                Some((_, value)) => findings.number(&value, member_type),
                None => findings.add(&scalar, "an object without the type's member", &format!("one of {data_type}")),
            }
        } else {
            findings.number(&scalar, data_type);
        }
    }
    Ok(())
}

fn binding(source: &Node, resources: &[(&str, Node)], findings: &mut Findings) -> Result<()> {
    findings.unsigned(source, &["elementCount", "elementSizeInBytes", "elementOffset", "counterOffsetBytes"])?;
    if let Some(format) = source.member("format")? {
        if !format.string().is_ok_and(is_dxgi_format) {
            findings.add(&format, &format.kind(), "the name of a DXGI_FORMAT");
        }
    }
    if let Some(counter) = source.member("counter")? {
        if !counter.string().is_ok_and(|counter| resources.iter().any(|(name, _)| *name == counter)) {
            findings.add(&counter, &counter.kind(), "the name of a resource");
        }
    }
    Ok(())
}

/// Whether a name has the form of those of uncompressed formats: channels with their bits, then a kind.
fn is_dxgi_format(name: &str) -> bool {
    let name = name.strip_prefix("DXGI_FORMAT_").unwrap_or(name);
    let Some((channels, kind)) = name.split_once('_') else { return name == "UNKNOWN" };
    let channels_fit = channels.split_inclusive(|c: char| c.is_ascii_digit()).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.len() <= 1 && letters.bytes().all(|letter| b"RGBADXE".contains(&letter))
    });
    channels_fit && matches!(kind, "TYPELESS" | "FLOAT" | "UNORM" | "UNORM_SRGB" | "UINT" | "SNORM" | "SINT")
}

fn initial_values(resource: &Node, folder: &Path, findings: &mut Findings) -> Result<()> {
    let Some(values) = resource.get("initialValues")? else { return Ok(()) };
    let declared = resource.get("initialValuesDataType")?.map(|node| dispatchable::data_type(&node)).transpose()?;
    if values.value.as_array().is_some() {
        for element in values.elements()? {
            match declared {
                Some(data_type) => findings.number(&element, data_type),
                None => {
                    if let (Some(data_type), Some(value)) = (element.get("type")?, element.get("value")?) {
                        findings.number(&value, dispatchable::data_type(&data_type)?);
                    }
                }
            }
        }
        return Ok(());
    }
    if values.value.as_object().is_none() {
        return Ok(());
    }
    if let Some(path) = values.get("sourcePath")? {
        return array_file(&path, folder, findings);
    }
    findings.unsigned(&values, &["valueCount"])?;
    if values.get("valueStart")?.is_some() && values.get("valueDelta")?.is_none() {
        findings.add(&values, "without valueDelta", "an object that has it");
    }
    for member in ["value", "valueStart", "valueDelta"] {
        if let (Some(node), Some(data_type)) = (values.get(member)?, declared) {
            findings.number(&node, data_type);
        }
    }
    Ok(())
}

/// DxDispatch takes bytes after the array for elements, and does not swap those of a big-endian array.
fn array_file(source: &Node, folder: &Path, findings: &mut Findings) -> Result<()> {
    let Ok((path, bytes)) = resource::read_file(source, folder) else { return Ok(()) };
    if !path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
        return Ok(());
    }
    let Ok((_, elements)) = npy::read(&bytes) else { return Ok(()) };
    let header = npy::header(&bytes).unwrap_or_default();
    let behind = bytes.len().saturating_sub(header.len() + elements.len());
    if behind > 0 {
        findings.add(
            source,
            &format!("{}, with {behind} bytes after its array", source.kind()),
            "a file that ends there",
        );
    }
    if header.windows(2).any(|pair| pair == b"'>") {
        findings.add(source, &format!("{}, a big-endian array", source.kind()), "a little-endian one");
    }
    Ok(())
}
