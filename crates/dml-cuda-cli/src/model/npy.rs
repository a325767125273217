//! NumPy's .npy files.

use dml_cuda::TensorDataType;
use half::f16;
use npyz::{DType, Deserialize, NpyFile, Order, TypeChar, WriteOptions, WriterBuilder};

/// The data type and the elements, little endian, of a .npy file in C order.
pub fn read(bytes: &[u8]) -> Result<(TensorDataType, Vec<u8>), String> {
    check_header(bytes)?;
    let file = NpyFile::new(bytes).map_err(|error| format!("it is not a .npy file: {error}"))?;
    let DType::Plain(type_str) = file.dtype() else {
        return Err("its dtype is structured, must be one of plain numbers".to_owned());
    };
    if file.order() == Order::Fortran && file.shape().len() > 1 {
        return Err("it is in Fortran order, must be in C order (numpy.ascontiguousarray)".to_owned());
    }
    // Checked first, because npyz allocates before it reads.
    let element_size = usize::try_from(type_str.size_field()).unwrap_or(0);
    let claimed = file.shape().iter().try_fold(element_size as u64, |bytes, &size| bytes.checked_mul(size));
    let have = bytes.len() as u64;
    if claimed.is_none_or(|claimed| claimed > have) {
        return Err(format!(
            "its header promises a shape of {:?}, more than the file's {have} bytes hold",
            file.shape()
        ));
    }
    use TensorDataType as T;
    match (type_str.type_char(), type_str.size_field()) {
        (TypeChar::Float, 2) => elements::<f16>(T::Float16, file),
        (TypeChar::Float, 4) => elements::<f32>(T::Float32, file),
        (TypeChar::Float, 8) => elements::<f64>(T::Float64, file),
        (TypeChar::Uint, 1) => elements::<u8>(T::UInt8, file),
        (TypeChar::Uint, 2) => elements::<u16>(T::UInt16, file),
        (TypeChar::Uint, 4) => elements::<u32>(T::UInt32, file),
        (TypeChar::Uint, 8) => elements::<u64>(T::UInt64, file),
        (TypeChar::Int, 1) => elements::<i8>(T::Int8, file),
        (TypeChar::Int, 2) => elements::<i16>(T::Int16, file),
        (TypeChar::Int, 4) => elements::<i32>(T::Int32, file),
        (TypeChar::Int, 8) => elements::<i64>(T::Int64, file),
        _ => Err(format!("its dtype is {type_str}, must be a float of 2, 4 or 8 bytes or an integer of 1, 2, 4 or 8")),
    }
}

/// Where the dictionary of a header begins, and how many bytes the file claims for it.
fn dictionary(bytes: &[u8]) -> Option<(usize, u64)> {
    match *bytes {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => Some((10, u16::from_le_bytes([a, b]).into())),
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2..=255, _, a, b, c, d, ..] => {
            Some((12, u32::from_le_bytes([a, b, c, d]).into()))
        }
        _ => None,
    }
}

/// The bytes before the elements.
pub fn header(bytes: &[u8]) -> Option<&[u8]> {
    let (begin, claimed) = dictionary(bytes)?;
    bytes.get(..begin + claimed as usize)
}

/// Checks a header before npyz reads it. npyz allocates as many bytes as the header claims, takes twice as long for each nested bracket,
/// and multiplies the shape without a check for overflow.
fn check_header(bytes: &[u8]) -> Result<(), String> {
    let Some((begin, claimed)) = dictionary(bytes) else { return Ok(()) }; // npyz reports the error
    let have = bytes.len() as u64;
    if claimed > have {
        return Err(format!("its header (version {}) claims {claimed} bytes, more than the file's {have}", bytes[6]));
    }
    let header = &bytes[begin..(begin + claimed as usize).min(bytes.len())];
    let count = |bracket: u8| header.iter().filter(|&&byte| byte == bracket).count();
    // A valid header has one dictionary with one tuple, the shape.
    if count(b'[') > 0 {
        return Err("its dtype is structured, must be one of plain numbers".to_owned());
    }
    if count(b'{') > 1 || count(b'(') > 1 {
        return Err(format!(
            "its header has {} braces and {} parentheses that open, must have one of each",
            count(b'{'),
            count(b'(')
        ));
    }
    let header = String::from_utf8_lossy(header);
    let shape = header.split_once('(').and_then(|(_, shape)| shape.split_once(')')).map_or("", |(shape, _)| shape);
    let sizes = shape.split(',').map(|size| size.trim().trim_end_matches('L')).filter(|size| !size.is_empty());
    // Strides multiply sizes even if another size is 0. An element has at most 16 bytes.
    let mut most = 16u64;
    for size in sizes {
        let Some(product) = size.parse::<u64>().ok().and_then(|size| most.checked_mul(size.max(1))) else {
            return Err(format!("its header promises a shape of ({}), more than a file can hold", shape.trim()));
        };
        most = product;
    }
    Ok(())
}

fn elements<T: Deserialize + bytemuck::Pod>(
    data_type: TensorDataType,
    file: NpyFile<&[u8]>,
) -> Result<(TensorDataType, Vec<u8>), String> {
    let values = file.into_vec::<T>().map_err(|error| format!("its elements cannot be read: {error}"))?;
    Ok((data_type, bytemuck::cast_slice(&values).to_vec()))
}

/// A .npy file with these elements, little endian, in C order.
pub fn write(data_type: TensorDataType, shape: &[u64], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let kind = match data_type {
        TensorDataType::Float16 | TensorDataType::Float32 | TensorDataType::Float64 => 'f',
        TensorDataType::UInt8 | TensorDataType::UInt16 | TensorDataType::UInt32 | TensorDataType::UInt64 => 'u',
        TensorDataType::Int8 | TensorDataType::Int16 | TensorDataType::Int32 | TensorDataType::Int64 => 'i',
        TensorDataType::UInt4 | TensorDataType::Int4 => {
            return Err(format!("the data type is {data_type}, must be one of whole bytes"));
        }
    };
    let width = data_type.size_in_bits() / 8;
    let order = if width == 1 { '|' } else { '<' };
    let dtype = format!("{order}{kind}{width}").parse().map(DType::Plain).map_err(|error| format!("{error}"))?;
    let mut file = Vec::new();
    WriteOptions::new_header_only()
        .dtype(dtype)
        .shape(shape)
        .writer(&mut file)
        .write_header_only()
        .map_err(|error| error.to_string())?;
    file.extend_from_slice(bytes);
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::read;

    /// Found by fuzzing: a product above 2⁶⁴, also with a size of 0, and in any notation.
    #[test]
    fn a_shape_past_all_files_is_refused() {
        for shape in
            ["15708555501140711634, 5", "0, 4294967296, 4294967296", "99999999999999999999,", "0xFFFFFFFFFFFFFFFF, 9"]
        {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
            let mut file = b"\x93NUMPY\x01\0".to_vec();
            file.extend_from_slice(&(header.len() as u16).to_le_bytes());
            file.extend_from_slice(header.as_bytes());
            let error = read(&file).expect_err("no file is so large");
            assert_eq!(error, format!("its header promises a shape of ({shape}), more than a file can hold"));
        }
    }

    /// Found by fuzzing: each nested brace doubles the parser's time, up to minutes.
    #[test]
    fn brackets_in_brackets_are_refused_at_once() {
        for nested in ["{", "("] {
            let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {}", nested.repeat(60));
            let mut file = b"\x93NUMPY\x01\0".to_vec();
            file.extend_from_slice(&(header.len() as u16).to_le_bytes());
            file.extend_from_slice(header.as_bytes());
            let error = read(&file).expect_err("no header");
            assert!(error.starts_with("its header has ") && error.ends_with("must have one of each"), "{error}");
        }
    }
}
