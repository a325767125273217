//! Resources: buffers and their initial values.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use dml_cuda::TensorDataType;

use crate::dispatchable::data_type;
use crate::initial::Values;
use crate::json::{Kind, Result};
use crate::node::Node;
use crate::value::bits;
use crate::{file, npy};

/// A buffer as the model describes it.
pub struct Resource {
    /// The element type for printing and writing. `None` for a list of mixed types.
    pub data_type: Option<TensorDataType>,
    pub initial_values: Values,
    pub initial_values_offset: u64,
    pub size_in_bytes: u64,
    /// The file of `sourcePath`.
    pub file: Option<PathBuf>,
    /// What the file says, if it is an array.
    pub array: Option<Array>,
    /// The model gives `sizeInBytes`. Else the size is that of `initial_values`, rounded up.
    pub explicit_size: bool,
}

/// What a .npy file says about its elements.
pub struct Array {
    pub data_type: TensorDataType,
    pub shape: Vec<u64>,
    is_bool: bool,
}

/// Writes the type of the elements.
impl fmt::Display for Array {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_bool {
            true => write!(f, "bool, which is read as {}", self.data_type),
            false => self.data_type.fmt(f),
        }
    }
}

/// Reads a resource. `is_output` says whether a dispatch writes it.
pub fn read(node: &Node, folder: &Path, is_output: bool) -> Result<Resource> {
    node.walk(&["resource"])?;
    let named = node.get("initialValuesDataType").filter(|name| {
        !matches!(
            name.string(),
            Ok("UNKNOWN" | "DML_TENSOR_DATA_TYPE_UNKNOWN")
        )
    });
    let declared = named.as_ref().map(data_type).transpose()?;
    if let (Some(name), Some(found)) = (
        &named,
        declared.filter(|data_type| data_type.size_in_bits() < 8),
    ) {
        return Err(name.error(found, "a type of whole bytes"));
    }
    let values = node.require("initialValues")?;
    let (data_type, initial_values, file, array) = initial_values(node, &values, declared, folder)?;
    let length = initial_values.length();
    if length == 0 {
        return Err(values.error("empty", "at least one value"));
    }
    let initial_values_offset: u64 = node.optional("initialValuesOffsetInBytes")?.unwrap_or(0);
    if let Some(offset) = node
        .get("initialValuesOffsetInBytes")
        .filter(|_| initial_values_offset > 0)
    {
        let required = "0, because DxDispatch writes the values at byte 0 all the same";
        // What a dispatch writes does not depend on the values before it.
        match is_output {
            true => offset.differs(offset.kind(), required),
            false => offset.refuse(offset.kind(), required),
        }
    }
    let size = node.get("sizeInBytes");
    let size_in_bytes = node
        .optional("sizeInBytes")?
        .unwrap_or(length.next_multiple_of(4));
    if initial_values_offset
        .checked_add(length)
        .is_none_or(|end| end > size_in_bytes)
    {
        let place = size.as_ref().unwrap_or(node);
        let required = format!(
            "enough for the {length} bytes of initialValues at offset {initial_values_offset}"
        );
        return Err(place.error(format!("{size_in_bytes} bytes"), required));
    }
    let explicit_size = size.is_some();
    Ok(Resource {
        data_type,
        initial_values,
        initial_values_offset,
        size_in_bytes,
        file,
        array,
        explicit_size,
    })
}

/// Whether the values come later, from an ONNX model.
pub fn is_deferred(node: &Node) -> bool {
    node.get("initialValues")
        .is_some_and(|values| values.string() == Ok("deferred"))
}

/// The type of values that do not name their type.
fn typed(node: &Node, declared: Option<TensorDataType>) -> Result<TensorDataType> {
    let required = "an object that has it, as its values have no type of their own";
    declared.ok_or_else(|| {
        let absent = || node.error("without the member initialValuesDataType", required);
        node.misspelt(&["initialValuesDataType"])
            .unwrap_or_else(absent)
    })
}

/// The type of the values, themselves, the file that they are from, and what it says.
type Initial = (
    Option<TensorDataType>,
    Values,
    Option<PathBuf>,
    Option<Array>,
);

fn initial_values(
    node: &Node,
    values: &Node,
    declared: Option<TensorDataType>,
    folder: &Path,
) -> Result<Initial> {
    if matches!(values.kind(), Kind::Text(_)) {
        let required = "an array or an object: only ONNX models fill deferred resources";
        return Err(values.error(values.kind(), required));
    }
    if values.is_array() {
        let mut all = Vec::new();
        values.each(|element| {
            let (element, data_type) = match declared {
                None if matches!(element.kind(), Kind::Object(_)) => {
                    element.walk(&["typedValue"])?;
                    (
                        element.require("value")?,
                        data_type(&element.require("type")?)?,
                    )
                }
                _ => (element.clone(), typed(node, declared)?),
            };
            if data_type.size_in_bits() < 8 {
                return Err(
                    element.error(format!("of type {data_type}"), "of a type of whole bytes")
                );
            }
            all.extend_from_slice(
                &bits(&element, data_type)?.to_le_bytes()[..data_type.size_in_bits() as usize / 8],
            );
            Ok(())
        })?;
        all.shrink_to_fit();
        return Ok((declared, Values::Bytes(all), None, None));
    }
    values.walk(&["values"])?;
    let mut given = values.members()?;
    given.retain(|(name, _)| ["value", "valueStart", "sourcePath"].contains(name));
    if given.len() > 1 {
        given.retain(|(_, value)| !matches!(value.kind(), Kind::Null));
    }
    let [(kind, _)] = given[..] else {
        let misspelt = given
            .is_empty()
            .then(|| values.misspelt(&["value", "valueStart", "sourcePath"]))
            .flatten();
        let required = "an object with exactly one of value, valueStart and sourcePath";
        return Err(misspelt.unwrap_or_else(|| values.error(values.kind(), required)));
    };
    let (first, is_sequence) = (values.require(kind)?, kind == "valueStart");
    if kind == "sourcePath" {
        return of_file(node, &first, declared, folder);
    }
    let data_type = typed(node, declared)?;
    let first = bits(&first, data_type)?;
    let delta = values
        .get("valueDelta")
        .filter(|_| is_sequence)
        .map(|delta| bits(&delta, data_type))
        .transpose()?;
    if is_sequence && delta.is_none() {
        values.refuse("without valueDelta", "an object that has it");
    }
    let delta = is_sequence.then_some(delta.unwrap_or(0));
    let count = values.require("valueCount")?;
    match count.unsigned::<u32>()? {
        0 => Err(count.error(0, "at least 1")),
        elements => Ok((
            declared,
            Values::Computed {
                data_type,
                first,
                delta,
                count: elements.into(),
            },
            None,
            None,
        )),
    }
}

/// A path of a model with this system's separators. The model may come from Windows.
pub fn separated(path: &str) -> String {
    path.replace('\\', std::path::MAIN_SEPARATOR_STR)
}

/// Whether DxDispatch takes a file of this name for an image. Files of other names are arrays or raw bytes.
pub fn is_image(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [".png", ".jpg"].iter().any(|ending| name.ends_with(ending))
}

/// Whether a file is an array that names its type. Others are raw bytes.
pub fn is_npy(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

/// `{ "sourcePath": "input.npy" }`, relative to the folder, else to the current directory.
fn of_file(
    node: &Node,
    source: &Node,
    declared: Option<TensorDataType>,
    folder: &Path,
) -> Result<Initial> {
    let name = source.kind();
    let path = PathBuf::from(separated(source.string()?));
    let path = Some(folder.join(&path))
        .filter(|beside_model| beside_model.exists())
        .unwrap_or(path);
    if is_image(source.string()?) {
        return Err(source.error(
            format!("{name}, an image"),
            "another file: dml-cuda reads no images",
        ));
    }
    let regular = || {
        let mut bytes = Vec::new();
        file::open_regular(&path)?
            .read_to_end(&mut bytes)
            .map(|_| bytes)
    };
    let bytes = regular().map_err(|error| {
        source.error(format!("{name}, which cannot be read ({error})"), "a file")
    })?;
    if !is_npy(&path) {
        let data_type = typed(node, declared)?;
        let width = data_type.size_in_bits() as usize / 8;
        if bytes.len() % width != 0 {
            let found = format!("{name}, a file of {} bytes", bytes.len());
            return Err(source.error(
                found,
                format!("a file of whole elements of {data_type}, {width} bytes each"),
            ));
        }
        return Ok((declared, Values::Bytes(bytes), Some(path), None));
    }
    let read = npy::read(&bytes).map_err(|why| format!("{} is {name}: {why}", source.place()))?;
    // DxDispatch takes bytes after the array for elements, and does not swap those of a big-endian array.
    if read.behind > 0 {
        source.refuse(
            format!("{name}, with {} bytes after its array", read.behind),
            "a file that ends there",
        );
    }
    if read.is_big_endian {
        source.refuse(format!("{name}, a big-endian array"), "a little-endian one");
    }
    if read.is_fortran {
        source.refuse(format!("{name}, in Fortran order"), "a file in C order");
    }
    let array = Array {
        data_type: read.data_type,
        shape: read.shape,
        is_bool: read.is_bool,
    };
    match declared.filter(|declared| *declared != array.data_type) {
        Some(declared) => {
            let required = format!("one of {declared}, the initialValuesDataType");
            Err(source.error(format!("{name}, a file of {array}"), required))
        }
        None => Ok((
            Some(array.data_type),
            Values::Bytes(read.elements),
            Some(path),
            Some(array),
        )),
    }
}
