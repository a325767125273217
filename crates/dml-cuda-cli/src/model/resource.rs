//! Resources: buffers and their initial values.

use std::fs;
use std::path::{Path, PathBuf};

use dml_cuda::TensorDataType;

use super::dispatchable::data_type;
use super::initial::Values;
use super::json::{Node, Result};
use super::npy;
use super::value::element_bytes;

/// A buffer as the model describes it.
pub struct Resource {
    /// The element type for printing and writing. `None` for a list of mixed types.
    pub data_type: Option<TensorDataType>,
    pub initial_values: Values,
    pub initial_values_offset: u64,
    pub size_in_bytes: u64,
    /// The file of `sourcePath`.
    pub file: Option<PathBuf>,
    /// The model gives `sizeInBytes`. Else the size is that of `initial_values`, rounded up.
    pub explicit_size: bool,
}

/// Reads a resource. A dispatch writes those of `is_output`.
pub fn read(node: &Node, model_directory: &Path, is_output: bool) -> Result<Resource> {
    node.check_names(&["initialValuesDataType", "initialValues", "initialValuesOffsetInBytes", "sizeInBytes"])?;
    let declared = match node.get("initialValuesDataType")? {
        Some(name) if matches!(name.string()?, "UNKNOWN" | "DML_TENSOR_DATA_TYPE_UNKNOWN") => None,
        Some(name) => match data_type(&name)? {
            found @ (TensorDataType::UInt4 | TensorDataType::Int4) => {
                return Err(name.error(found, "a type of whole bytes"));
            }
            found => Some(found),
        },
        None => None,
    };
    let values = node.require("initialValues")?;
    let (data_type, initial_values, file) = initial_values(node, &values, declared, model_directory)?;
    let length = initial_values.length();
    if length == 0 {
        return Err(values.error("empty", "at least one value"));
    }
    let initial_values_offset = node.optional_u64("initialValuesOffsetInBytes")?.unwrap_or(0);
    if let Some(offset) = node.get("initialValuesOffsetInBytes")?.filter(|_| initial_values_offset > 0) {
        let required = "0, because DxDispatch writes the values at byte 0 all the same";
        // What a dispatch writes does not depend on the values before it.
        match is_output {
            true => offset.differs(offset.kind(), required),
            false => offset.refuse(offset.kind(), required),
        }
    }
    let size = node.get("sizeInBytes")?;
    let size_in_bytes = node.optional_u64("sizeInBytes")?.unwrap_or(length.next_multiple_of(4));
    if initial_values_offset.checked_add(length).is_none_or(|end| end > size_in_bytes) {
        let place = size.as_ref().unwrap_or(node);
        let required = format!("enough for the {length} bytes of initialValues at offset {initial_values_offset}");
        return Err(place.error(format!("{size_in_bytes} bytes"), required));
    }
    Ok(Resource {
        data_type,
        initial_values,
        initial_values_offset,
        size_in_bytes,
        file,
        explicit_size: size.is_some(),
    })
}

/// Whether the values come later, from an ONNX model.
pub fn is_deferred(node: &Node) -> bool {
    let values = node.get("initialValues").ok().flatten();
    values.is_some_and(|values| values.string().is_ok_and(|values| values == "deferred"))
}

fn initial_values(
    node: &Node,
    values: &Node,
    declared: Option<TensorDataType>,
    model_directory: &Path,
) -> Result<(Option<TensorDataType>, Values, Option<PathBuf>)> {
    let typed = || {
        declared.ok_or_else(|| {
            node.error(
                "without the member initialValuesDataType",
                "an object that has it, as its values have no type of their own",
            )
        })
    };
    if values.is_text() {
        let required = "an array or an object: only ONNX models fill deferred resources";
        return Err(values.error(values.kind(), required));
    }
    if values.is_array() {
        let mut bytes = Vec::new();
        values.each(|element| {
            match declared {
                Some(data_type) => bytes.extend(element_bytes(element, data_type)?),
                None => bytes.extend(element_bytes(&element.require("value")?, data_type(&element.require("type")?)?)?),
            }
            Ok(())
        })?;
        bytes.shrink_to_fit();
        return Ok((declared, Values::Bytes(bytes), None));
    }
    values.check_names(&["value", "valueStart", "valueDelta", "valueCount", "sourcePath"])?;
    let has = |name: &str| values.get(name).map(|member| member.is_some());
    match (has("value")?, has("valueStart")?, has("sourcePath")?) {
        (true, false, false) => Ok((declared, constant(values, typed()?)?, None)),
        (false, true, false) => Ok((declared, sequence(values, typed()?)?, None)),
        (false, false, true) => file(values, declared, typed, model_directory),
        _ => Err(values.error(values.kind(), "an object with exactly one of value, valueStart and sourcePath")),
    }
}

fn value_count(values: &Node) -> Result<u64> {
    let count = values.require("valueCount")?;
    match count.u32()? {
        0 => Err(count.error(0, "at least 1")),
        found => Ok(found.into()),
    }
}

/// `{ "valueCount": 4, "value": 0 }`
fn constant(values: &Node, data_type: TensorDataType) -> Result<Values> {
    let element = element_bytes(&values.require("value")?, data_type)?;
    Ok(Values::Constant { element, count: value_count(values)? })
}

/// `{ "valueCount": 4, "valueStart": 1, "valueDelta": 2.5 }`
fn sequence(values: &Node, data_type: TensorDataType) -> Result<Values> {
    let start = element_bytes(&values.require("valueStart")?, data_type)?;
    let delta = match values.get("valueDelta")? {
        Some(delta) => element_bytes(&delta, data_type)?,
        None => {
            values.refuse("without valueDelta", "an object that has it");
            vec![0; start.len()]
        }
    };
    Ok(Values::Sequence { data_type, start, delta, count: value_count(values)? })
}

/// A path of a model with this system's separators. The model may come from Windows.
pub fn separated(path: &str) -> String {
    if cfg!(windows) {
        path.to_owned()
    } else {
        path.replace('\\', "/")
    }
}

/// Whether DxDispatch takes a file of this name for an image. Files of other names are arrays or raw bytes.
pub fn is_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".png", ".jpg"].iter().any(|ending| name.ends_with(ending))
}

/// The file of a `sourcePath`, relative to the model, else to the current directory: its path and its bytes.
pub fn read_file(source: &Node, model_directory: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let name = source.string()?;
    let name_here = separated(name);
    let beside_model = model_directory.join(&name_here);
    let path = if beside_model.exists() { beside_model } else { PathBuf::from(name_here) };
    if is_image(name) {
        return Err(source.error(format!("{}, an image", source.kind()), "another file: this runner reads no images"));
    }
    let regular = |path: &Path| match fs::metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(std::io::Error::other("it is no regular file")),
    };
    let bytes = regular(&path)
        .map_err(|error| source.error(format!("{}, which cannot be read ({error})", source.kind()), "a file"))?;
    Ok((path, bytes))
}

/// `{ "sourcePath": "input.npy" }`
fn file(
    values: &Node,
    declared: Option<TensorDataType>,
    typed: impl FnOnce() -> Result<TensorDataType>,
    model_directory: &Path,
) -> Result<(Option<TensorDataType>, Values, Option<PathBuf>)> {
    let source = values.require("sourcePath")?;
    let name = source.kind();
    let (path, bytes) = read_file(&source, model_directory)?;
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if extension.as_deref() != Some("npy") {
        let data_type = typed()?;
        let element = (data_type.size_in_bits() / 8).max(1) as usize;
        if bytes.len() % element != 0 {
            let found = format!("{name}, a file of {} bytes", bytes.len());
            return Err(source.error(found, format!("a file of whole elements of {data_type}, {element} bytes each")));
        }
        return Ok((Some(data_type), Values::Bytes(bytes), Some(path)));
    }
    let (data_type, elements) = npy::read(&bytes)
        .map_err(|why| source.error(format!("{name}, but {why}"), "a .npy file this runner can read"))?;
    refuse_array(&source, &bytes, elements.len());
    match declared {
        Some(declared) if declared != data_type => Err(source
            .error(format!("{name}, a file of {data_type}"), format!("one of {declared}, the initialValuesDataType"))),
        _ => Ok((Some(data_type), Values::Bytes(elements), Some(path))),
    }
}

/// DxDispatch takes bytes after the array for elements, and does not swap those of a big-endian array.
fn refuse_array(source: &Node, file: &[u8], elements: usize) {
    let header = npy::header(file).unwrap_or_default();
    let behind = file.len().saturating_sub(header.len() + elements);
    if behind > 0 {
        source.refuse(format!("{}, with {behind} bytes after its array", source.kind()), "a file that ends there");
    }
    if header.windows(2).any(|pair| pair == b"'>") {
        source.refuse(format!("{}, a big-endian array", source.kind()), "a little-endian one");
    }
}
