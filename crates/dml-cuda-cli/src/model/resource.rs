//! Resources: buffers and their initial values.

use std::fs;
use std::path::{Path, PathBuf};

use dml_cuda::TensorDataType;
use half::f16;

use super::dispatchable::data_type;
use super::json::{Node, Result};
use super::npy;
use super::value::{element_bytes, truncated};

/// A buffer as the model describes it.
pub struct Resource {
    /// The element type for printing and writing. `None` for a list of mixed types.
    pub data_type: Option<TensorDataType>,
    pub initial_values: Vec<u8>,
    pub initial_values_offset: u64,
    pub size_in_bytes: u64,
    /// The file of `sourcePath`.
    pub file: Option<PathBuf>,
    /// The model gives `sizeInBytes`. Else the size is that of `initial_values`, rounded up.
    pub explicit_size: bool,
}

pub fn read(node: &Node, model_directory: &Path) -> Result<Resource> {
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
    if initial_values.is_empty() {
        return Err(values.error("empty", "at least one value"));
    }

    let length = initial_values.len() as u64;
    let initial_values_offset = node.get_or("initialValuesOffsetInBytes", 0, |node| node.u64())?;
    let size = node.get("sizeInBytes")?;
    let size_in_bytes = match &size {
        Some(size) => size.u64()?,
        None => length.next_multiple_of(4),
    };
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
) -> Result<(Option<TensorDataType>, Vec<u8>, Option<PathBuf>)> {
    let typed = || {
        declared.ok_or_else(|| {
            node.error(
                "without the member initialValuesDataType",
                "an object that has it, as its values have no type of their own",
            )
        })
    };
    if values.value.as_string_lit().is_some() {
        let required = "an array or an object: only ONNX models fill deferred resources";
        return Err(values.error(values.kind(), required));
    }
    if values.value.as_array().is_some() {
        let elements = values.elements()?;
        let mut bytes = Vec::new();
        for element in &elements {
            match declared {
                Some(data_type) => bytes.extend(element_bytes(element, data_type)?),
                None => bytes.extend(element_bytes(&element.require("value")?, data_type(&element.require("type")?)?)?),
            }
        }
        return Ok((declared, bytes, None));
    }
    let has = |name: &str| values.get(name).map(|member| member.is_some());
    match (has("value")?, has("valueStart")?, has("sourcePath")?) {
        (true, false, false) => constant(values, typed()?).map(|bytes| (declared, bytes, None)),
        (false, true, false) => sequence(values, typed()?).map(|bytes| (declared, bytes, None)),
        (false, false, true) => file(values, declared, typed, model_directory),
        _ => Err(values.error(values.kind(), "an object with exactly one of value, valueStart and sourcePath")),
    }
}

/// Zero bytes for `valueCount` elements. Fails if they do not fit the machine's memory.
fn reserve(values: &Node, data_type: TensorDataType) -> Result<(usize, Vec<u8>)> {
    let count_node = values.require("valueCount")?;
    let count = count_node.u32()? as usize;
    if count == 0 {
        return Err(count_node.error(0, "at least 1"));
    }
    let bytes = count * (data_type.size_in_bits() / 8) as usize;
    let mut memory = Vec::new();
    memory.try_reserve_exact(bytes).map_err(|_| {
        count_node.error(format!("{count}, which is {bytes} bytes"), "small enough for the machine's memory")
    })?;
    Ok((count, memory))
}

/// `{ "valueCount": 4, "value": 0 }`
fn constant(values: &Node, data_type: TensorDataType) -> Result<Vec<u8>> {
    let element = element_bytes(&values.require("value")?, data_type)?;
    let (count, mut bytes) = reserve(values, data_type)?;
    (0..count).for_each(|_| bytes.extend_from_slice(&element));
    Ok(bytes)
}

/// `{ "valueCount": 4, "valueStart": 1, "valueDelta": 2.5 }`: a running sum in the arithmetic of the type, as in DxDispatch.
fn sequence(values: &Node, data_type: TensorDataType) -> Result<Vec<u8>> {
    let start = element_bytes(&values.require("valueStart")?, data_type)?;
    let delta = match values.get("valueDelta")? {
        Some(delta) => element_bytes(&delta, data_type)?,
        None => vec![0; start.len()],
    };
    let (count, mut bytes) = reserve(values, data_type)?;
    macro_rules! run {
        ($type:ty, $add:expr) => {{
            let value = |bytes: &[u8]| bytemuck::pod_read_unaligned::<$type>(bytes);
            let (mut sum, delta) = (value(&start), value(&delta));
            for _ in 0..count {
                bytes.extend_from_slice(bytemuck::bytes_of(&sum));
                sum = $add(sum, delta);
            }
        }};
    }
    use TensorDataType as T;
    match data_type {
        T::Float16 => run!(f16, |a: f16, b: f16| truncated(a.to_f32() + b.to_f32())),
        T::Float32 => run!(f32, |a, b| a + b),
        T::Float64 => run!(f64, |a, b| a + b),
        T::UInt64 | T::Int64 => run!(u64, u64::wrapping_add),
        T::UInt32 | T::Int32 => run!(u32, u32::wrapping_add),
        T::UInt16 | T::Int16 => run!(u16, u16::wrapping_add),
        // `element_bytes` rejects types of less than a byte.
        T::UInt8 | T::Int8 | T::UInt4 | T::Int4 => run!(u8, u8::wrapping_add),
    }
    Ok(bytes)
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
        return Err(source.error(format!("\"{name}\", an image"), "another file: this runner reads no images"));
    }
    let regular = |path: &Path| match fs::metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(std::io::Error::other("it is no regular file")),
    };
    let bytes = regular(&path)
        .map_err(|error| source.error(format!("\"{name}\", which cannot be read ({error})"), "a file"))?;
    Ok((path, bytes))
}

/// `{ "sourcePath": "input.npy" }`
fn file(
    values: &Node,
    declared: Option<TensorDataType>,
    typed: impl FnOnce() -> Result<TensorDataType>,
    model_directory: &Path,
) -> Result<(Option<TensorDataType>, Vec<u8>, Option<PathBuf>)> {
    let source = values.require("sourcePath")?;
    let name = source.string()?;
    let (path, bytes) = read_file(&source, model_directory)?;
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    if extension.as_deref() != Some("npy") {
        let data_type = typed()?;
        let element = (data_type.size_in_bits() / 8).max(1) as usize;
        if bytes.len() % element != 0 {
            let found = format!("\"{name}\", a file of {} bytes", bytes.len());
            return Err(source.error(found, format!("a file of whole elements of {data_type}, {element} bytes each")));
        }
        return Ok((Some(data_type), bytes, Some(path)));
    }
    let (data_type, bytes) = npy::read(&bytes)
        .map_err(|why| source.error(format!("\"{name}\", but {why}"), "a .npy file this runner can read"))?;
    match declared {
        Some(declared) if declared != data_type => Err(source.error(
            format!("\"{name}\", a file of {data_type}"),
            format!("one of {declared}, the initialValuesDataType"),
        )),
        _ => Ok((Some(data_type), bytes, Some(path))),
    }
}
