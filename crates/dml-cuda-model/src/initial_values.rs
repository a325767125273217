//! Reads the `initialValues` of a resource, in one of four forms:
//!
//! ```text
//! [1, 2, 3]                                             each value
//! { "value": 1, "valueCount": 9 }                       one value, repeated
//! { "valueStart": 0, "valueDelta": 1, "valueCount": 9 } values that count up
//! { "sourcePath": "input.npy" }                         a file: an array, or raw bytes
//! ```

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use dml_cuda::TensorDataType;

use crate::dispatchable::data_type;
use crate::initial::Values;
use crate::json::{Kind, Result};
use crate::node::Node;
use crate::value::bits;
use crate::{file, npy};

/// What a .npy file says about its elements.
pub struct Array {
    pub data_type: TensorDataType,
    pub shape: Vec<u64>,
    pub is_bool: bool,
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

/// Values, with what they say about themselves.
pub struct Initial {
    /// None for a list of mixed types.
    pub data_type: Option<TensorDataType>,
    pub values: Values,
    pub file: Option<PathBuf>,
    /// What the file says, if it is an array.
    pub array: Option<Array>,
}

impl Initial {
    /// Values that the model itself has.
    fn without_file(data_type: Option<TensorDataType>, values: Values) -> Self {
        Self {
            data_type,
            values,
            file: None,
            array: None,
        }
    }
}

/// Reads the values of the resource `node`. `declared` is the type that it names for them.
pub fn read(
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
        return list(node, values, declared);
    }
    values.walk(&["values"])?;
    match form(values)? {
        "sourcePath" => of_file(node, &values.require("sourcePath")?, declared, folder),
        form => computed(node, values, form, declared),
    }
}

/// The member that tells which form an object has.
fn form<'a>(values: &Node<'a>) -> Result<&'a str> {
    // Each of these members is a form of its own.
    const FORMS: [&str; 3] = ["value", "valueStart", "sourcePath"];
    let mut given = values.members()?;
    given.retain(|(name, _)| FORMS.contains(name));
    if given.len() > 1 {
        // A member that is null counts as absent, unless it is the only one.
        given.retain(|(_, value)| !value.is_null());
    }
    if let [(form, _)] = given[..] {
        return Ok(form);
    }
    if given.is_empty() {
        if let Some(misspelt) = values.misspelt(&FORMS) {
            return Err(misspelt);
        }
    }
    let required = "an object with exactly one of value, valueStart and sourcePath";
    Err(values.error(values.kind(), required))
}

/// The type of values that do not name their type.
fn typed(node: &Node, declared: Option<TensorDataType>) -> Result<TensorDataType> {
    let required = "an object that has it, as its values have no type of their own";
    declared.ok_or_else(|| {
        node.misspelt(&["initialValuesDataType"])
            .unwrap_or_else(|| node.error("without the member initialValuesDataType", required))
    })
}

/// Reads each value of a list. A value may name its type if the resource does not.
fn list(node: &Node, values: &Node, declared: Option<TensorDataType>) -> Result<Initial> {
    let mut all = Vec::new();
    values.each(|element| {
        let (value, data_type) = match declared {
            // `{ "type": "INT8", "value": 1 }` in a list of mixed types.
            None if matches!(element.kind(), Kind::Object(_)) => {
                element.walk(&["typedValue"])?;
                let value = element.require("value")?;
                (value, data_type(&element.require("type")?)?)
            }
            _ => (element.clone(), typed(node, declared)?),
        };
        let width = data_type.size_in_bits() as usize / 8;
        if width == 0 {
            return Err(value.error(format!("of type {data_type}"), "of a type of whole bytes"));
        }
        all.extend_from_slice(&bits(&value, data_type)?.to_le_bytes()[..width]);
        Ok(())
    })?;
    // There may be gigabytes, and a growing list has up to twice as much.
    all.shrink_to_fit();
    Ok(Initial::without_file(declared, Values::Bytes(all)))
}

/// One value that is repeated, or the first one of values that count up.
fn computed(
    node: &Node,
    values: &Node,
    form: &str,
    declared: Option<TensorDataType>,
) -> Result<Initial> {
    let first = values.require(form)?;
    let data_type = typed(node, declared)?;
    let first = bits(&first, data_type)?;
    let mut delta = None;
    if form == "valueStart" {
        delta = Some(match values.get("valueDelta") {
            Some(delta) => bits(&delta, data_type)?,
            None => {
                values.refuse("without valueDelta", "an object that has it");
                0
            }
        });
    }
    let count_node = values.require("valueCount")?;
    let count: u32 = count_node.unsigned()?;
    if count == 0 {
        return Err(count_node.error(0, "at least 1"));
    }
    let values = Values::Computed {
        data_type,
        first,
        delta,
        count: count.into(),
    };
    Ok(Initial::without_file(declared, values))
}

/// `{ "sourcePath": "input.npy" }`, relative to the folder, else to the current directory.
fn of_file(
    node: &Node,
    source: &Node,
    declared: Option<TensorDataType>,
    folder: &Path,
) -> Result<Initial> {
    let name = source.kind();
    let mut path = PathBuf::from(file::separated(source.string()?));
    // A file next to the model comes before one in the current folder.
    let beside_model = folder.join(&path);
    if beside_model.exists() {
        path = beside_model;
    }
    if file::is_image(source.string()?) {
        return Err(source.error(
            format!("{name}, an image"),
            "another file: dml-cuda reads no images",
        ));
    }
    let bytes = read_regular(&path).map_err(|error| {
        source.error(format!("{name}, which cannot be read ({error})"), "a file")
    })?;
    if npy::is_npy(&path) {
        return of_array(source, path, &bytes, declared);
    }
    let data_type = typed(node, declared)?;
    let width = data_type.size_in_bits() as usize / 8;
    if bytes.len() % width != 0 {
        let found = format!("{name}, a file of {} bytes", bytes.len());
        return Err(source.error(
            found,
            format!("a file of whole elements of {data_type}, {width} bytes each"),
        ));
    }
    Ok(Initial {
        file: Some(path),
        ..Initial::without_file(declared, Values::Bytes(bytes))
    })
}

/// All bytes of a file. Unlike a model's own file, it may have any size.
fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file::open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The elements of a .npy file, whose type must be the declared one.
fn of_array(
    source: &Node,
    path: PathBuf,
    bytes: &[u8],
    declared: Option<TensorDataType>,
) -> Result<Initial> {
    let name = source.kind();
    let read = npy::read(bytes).map_err(|why| format!("{} is {name}: {why}", source.place()))?;
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
    match declared {
        Some(declared) if declared != array.data_type => {
            let required = format!("one of {declared}, the initialValuesDataType");
            Err(source.error(format!("{name}, a file of {array}"), required))
        }
        _ => Ok(Initial {
            data_type: Some(array.data_type),
            values: Values::Bytes(read.elements),
            file: Some(path),
            array: Some(array),
        }),
    }
}
