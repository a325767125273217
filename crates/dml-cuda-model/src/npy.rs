//! NumPy's .npy files.
//!
//! ```text
//! 93 4E 55 4D 50 59   "\x93NUMPY"
//! 01 00               the version
//! 76 00               the length of the header: 2 bytes in version 1, 4 bytes since version 2
//! {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//!                     the header, a Python dictionary, with spaces up to a multiple of 64 bytes
//! …                   the elements
//! ```
//!
//! A file may come from anywhere: no figure in it is believed before the bytes are there, and nothing is allocated for a claim.

use std::path::Path;

use dml_cuda::TensorDataType;

use crate::json;
use crate::node::Node;
use crate::text::shown;

/// Whether a file is an array that names its type. Others are raw bytes.
pub fn is_npy(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("npy"))
}

/// The array in a file.
#[derive(Debug, PartialEq)]
pub struct Array {
    pub data_type: TensorDataType,
    /// Whether the file says `b1`. Its elements are bytes.
    pub is_bool: bool,
    pub shape: Vec<u64>,
    /// Little endian, in C order.
    pub elements: Vec<u8>,
    /// Whether the file's elements are big endian. Those here are not.
    pub is_big_endian: bool,
    /// The header says so, although an array of one dimension has only one order.
    pub is_fortran: bool,
    /// Bytes of the file after the elements.
    pub behind: usize,
}

/// The entries of a header.
struct Header {
    /// The order of bytes and the type, such as `<f4`.
    dtype: String,
    is_fortran: bool,
    /// The sizes of the dimensions. A scalar has none.
    shape: Vec<u64>,
}

/// Reads a whole file.
pub fn read(file: &[u8]) -> Result<Array, String> {
    let have = file.len();
    let Parts { header, rest } = split(file)?;
    let Header {
        dtype,
        is_fortran,
        shape,
    } = entries(&json_of(header))
        .map_err(|error| format!("it is not a .npy file, by its header: {error}"))?;
    // With one dimension both orders are the same.
    if is_fortran && shape.len() > 1 {
        return Err(
            "it is in Fortran order, but must be in C order (numpy.ascontiguousarray)".to_owned(),
        );
    }
    let (order, name) = dtype.split_at_checked(1).unwrap_or_default();
    let is_bool = name == "b1";
    // As in DxDispatch, a bool is a byte.
    let data_type = type_named(if is_bool { "i1" } else { name });
    let Some(data_type) = data_type.filter(|_| matches!(order, "<" | ">" | "|" | "=")) else {
        let dtype = shown(&dtype);
        return Err(format!(
            "its dtype is {dtype}, but must be a float of 2, 4 or 8 bytes, an integer of 1, 2, 4 or 8, or a bool"
        ));
    };
    let width = (data_type.size_in_bits() / 8) as usize;
    // The product may overflow.
    let claimed = shape.iter().try_fold(width, |bytes, &size| {
        bytes.checked_mul(size.try_into().ok()?)
    });
    let Some((elements, behind)) = claimed.and_then(|claimed| rest.split_at_checked(claimed))
    else {
        return Err(format!(
            "its header promises a shape of {shape:?}, more than the file's {have} bytes hold"
        ));
    };
    let mut elements = joined(&[elements])?;
    if order == ">" {
        // Turns each element into little endian.
        elements.chunks_exact_mut(width).for_each(<[u8]>::reverse);
    }
    Ok(Array {
        data_type,
        is_bool,
        shape,
        elements,
        is_big_endian: order == ">",
        is_fortran,
        behind: behind.len(),
    })
}

/// The header of a file, and what comes after it.
struct Parts<'a> {
    header: &'a [u8],
    rest: &'a [u8],
}

/// Finds the end of the header.
fn split(file: &[u8]) -> Result<Parts<'_>, String> {
    let (claimed, rest) = match file.strip_prefix(b"\x93NUMPY") {
        Some([1, _, a, b, rest @ ..]) => (u16::from_le_bytes([*a, *b]).into(), rest),
        Some([2 | 3, _, a, b, c, d, rest @ ..]) => (u32::from_le_bytes([*a, *b, *c, *d]), rest),
        _ => return Err("it is not a .npy file of version 1, 2 or 3".to_owned()),
    };
    match rest.split_at_checked(claimed as usize) {
        Some((header, rest)) => Ok(Parts { header, rest }),
        None => {
            let (version, have) = (file[6], file.len());
            Err(format!(
                "its header (version {version}) claims {claimed} bytes, more than the file's {have}"
            ))
        }
    }
}

/// A header as JSON. Except for its quotes, brackets and names, Python's dictionary is JSON with a trailing comma.
fn json_of(header: &[u8]) -> String {
    String::from_utf8_lossy(header)
        .replace('\'', "\"")
        .replace('(', "[")
        .replace(')', "]")
        .replace("False", "false")
        .replace("True", "true")
}

/// Reads a header.
fn entries(header: &str) -> json::Result<Header> {
    let document = json::parse(header)?;
    let root = Node::root(&document);
    let entries = root.members()?.len();
    if entries > 3 {
        return Err(format!(
            "{entries} entries, but must be descr, fortran_order and shape"
        ));
    }
    let shape = root.require("shape")?.each(|size| size.unsigned())?;
    Ok(Header {
        dtype: root.require("descr")?.string()?.to_owned(),
        is_fortran: root.require("fortran_order")?.boolean()?,
        shape,
    })
}

/// The name of a type of whole bytes in a dtype, such as `f4`.
fn type_name(data_type: TensorDataType) -> String {
    format!(
        "{}{}",
        data_type.name()[..1].to_ascii_lowercase(),
        data_type.size_in_bits() / 8
    )
}

/// The type of whole bytes with this name in a dtype.
fn type_named(name: &str) -> Option<TensorDataType> {
    let mut types = TensorDataType::ALL.iter().copied();
    types.find(|data_type| data_type.size_in_bits() >= 8 && type_name(*data_type) == name)
}

/// A .npy file with these elements of a type of whole bytes, little endian, in C order.
pub fn write(data_type: TensorDataType, shape: &[u64], elements: &[u8]) -> Result<Vec<u8>, String> {
    joined(&[&start(data_type, shape)?, elements])
}

/// The bytes of a .npy file before its elements.
pub fn start(data_type: TensorDataType, shape: &[u64]) -> Result<Vec<u8>, String> {
    let order = if data_type.size_in_bits() == 8 {
        '|'
    } else {
        '<'
    };
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let header = format!(
        "{{'descr': '{order}{}', 'fortran_order': False, 'shape': ({sizes}), }}",
        type_name(data_type)
    );
    // The elements begin at a multiple of 64, after 10 bytes, the header and a line's end.
    let length = (10 + header.len() + 1).next_multiple_of(64) - 10;
    let claimed = u16::try_from(length)
        .map_err(|_| format!("{} dimensions are too many for a .npy file", shape.len()))?;
    let magic = b"\x93NUMPY\x01\0".as_slice();
    let header = format!("{header:width$}\n", width = length - 1);
    Ok([magic, &claimed.to_le_bytes(), header.as_bytes()].concat())
}

/// The parts, one after another. They may be too large for the memory.
fn joined(parts: &[&[u8]]) -> Result<Vec<u8>, String> {
    let (length, mut whole) = (parts.iter().map(|part| part.len()).sum(), Vec::new());
    whole
        .try_reserve_exact(length)
        .map_err(|error| format!("no memory for its {length} bytes: {error}"))?;
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::{read, write};
    use dml_cuda::TensorDataType;

    fn with_header(header: &str) -> Vec<u8> {
        [
            b"\x93NUMPY\x01\0".as_slice(),
            &(header.len() as u16).to_le_bytes(),
            header.as_bytes(),
        ]
        .concat()
    }

    /// Found by fuzzing: a product above 2⁶⁴ next to a size of 0, sizes in any notation, and brackets in brackets.
    #[test]
    fn headers_past_all_files_are_refused_at_once() {
        for (shape, error) in [
            ("(15708555501140711634, 5, )", "its header promises a shape of [15708555501140711634, 5], more than the"),
            (
                "(99999999999999999999, )",
                "it is not a .npy file, by its header: line 1: shape[0] is 99999999999999999999",
            ),
            (
                "(4, ), 'x': 1",
                "it is not a .npy file, by its header: 4 entries, but must be descr, fortran_order and shape",
            ),
            ("(0xFFFFFFFFFFFFFFFF, 9)", "it is not a .npy file, by its header: line 1, column "),
            (&"(".repeat(60), "it is not a .npy file, by its header: line 1, column "),
            (&"{".repeat(60), "it is not a .npy file, by its header: line 1, column "),
        ] {
            let file = with_header(&format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n"));
            let found = read(&file).expect_err("no file is so large");
            assert!(found.starts_with(error), "{found}");
        }
        let empty = with_header(
            "{'shape': (0, 4294967296, 4294967296), 'fortran_order': False, \"descr\": '<f4'}",
        );
        assert!(read(&empty).is_ok_and(|array| array.elements.is_empty()));
        assert!(write(TensorDataType::UInt8, &[1; 30_000], &[1]).is_err());
    }
}
