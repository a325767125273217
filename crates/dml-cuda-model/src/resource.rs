//! Resources: buffers and their initial values.
//!
//! ```text
//! { "initialValues": [1, 2, 3], "initialValuesDataType": "UINT16", "initialValuesOffsetInBytes": 4, "sizeInBytes": 16 }
//!
//!   0         4           10        16
//!   ┌─────────┬───────────┬─────────┐
//!   │ 0       │ 1   2   3 │ 0       │    without a size: the values, rounded up to 4 bytes
//!   └─────────┴───────────┴─────────┘
//! ```

use std::path::{Path, PathBuf};

use dml_cuda::TensorDataType;

use crate::dispatchable::data_type;
use crate::initial::Values;
use crate::initial_values::{self, Array, Initial};
use crate::json::Result;
use crate::node::Node;

/// A buffer as the model describes it.
pub struct Resource {
    /// The element type for printing and writing. `None` for a list of mixed types.
    pub data_type: Option<TensorDataType>,
    pub initial_values: Values,
    /// The byte at which the values begin. Bytes before and after them are zeros.
    pub initial_values_offset: u64,
    /// At least the end of the values.
    pub size_in_bytes: u64,
    /// The file of `sourcePath`.
    pub file: Option<PathBuf>,
    /// What the file says, if it is an array.
    pub array: Option<Array>,
    /// The model gives `sizeInBytes`. Else the size is that of `initial_values`, rounded up.
    pub explicit_size: bool,
}

/// Reads a resource. `is_output` says whether a dispatch writes it.
pub fn read(node: &Node, folder: &Path, is_output: bool) -> Result<Resource> {
    node.walk(&["resource"])?;
    let declared = declared_type(node)?;
    let given = node.require("initialValues")?;
    let Initial {
        data_type,
        values: initial_values,
        file,
        array,
    } = initial_values::read(node, &given, declared, folder)?;
    let length = initial_values.length();
    if length == 0 {
        return Err(given.error("empty", "at least one value"));
    }
    let initial_values_offset: u64 = node.optional("initialValuesOffsetInBytes")?.unwrap_or(0);
    if let (Some(offset), 1..) = (
        node.get("initialValuesOffsetInBytes"),
        initial_values_offset,
    ) {
        let required = "0, because DxDispatch writes the values at byte 0 all the same";
        // What a dispatch writes does not depend on the values before it.
        if is_output {
            offset.differs(offset.kind(), required);
        } else {
            offset.refuse(offset.kind(), required);
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

/// The type that the resource names for its values.
fn declared_type(node: &Node) -> Result<Option<TensorDataType>> {
    let Some(name) = node.get("initialValuesDataType") else {
        return Ok(None);
    };
    if let Ok("UNKNOWN" | "DML_TENSOR_DATA_TYPE_UNKNOWN") = name.string() {
        return Ok(None);
    }
    let declared = data_type(&name)?;
    if declared.size_in_bits() < 8 {
        return Err(name.error(declared, "a type of whole bytes"));
    }
    Ok(Some(declared))
}

/// Whether the values come later, from an ONNX model.
pub fn is_deferred(node: &Node) -> bool {
    node.get("initialValues")
        .is_some_and(|values| values.string() == Ok("deferred"))
}
