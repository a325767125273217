use super::*;
use crate::{Device, TensorDataType};

fn packed(sizes: &[i64]) -> ForeignTensor<'_> {
    ForeignTensor { sizes, strides_in_bytes: None }
}

fn strided<'a>(sizes: &'a [i64], strides: &'a [i64]) -> ForeignTensor<'a> {
    ForeignTensor { sizes, strides_in_bytes: Some(strides) }
}

/// Lowers packed tensors of 4-byte elements with lengths of 8 bytes. Returns the sizes, the strides of the lengths, and
/// the axis.
fn lower(shape: &[i64], lengths: &[i64], axis: i64) -> Result<(Vec<u32>, Vec<u32>, u32), LoweringError> {
    let (input, lengths) = (packed(shape), packed(lengths));
    let desc = LoweredReversal::new(input, lengths, None, axis, 4, TensorDataType::UInt64, 0)?.desc();
    Device::cpu().create_operator(desc.clone()).expect("DirectML takes it");
    let strides = desc.sequence_lengths_tensor.strides.expect("written out");
    Ok((desc.input_tensor.sizes, strides, desc.axis))
}

#[test]
fn dimensions_fold_to_outer_axis_and_inner() {
    for (shape, lengths, axis, required) in [
        // ONNX's [T, B, F, G] along time 0, and [B, T, F, G] along time 1.
        (&[5, 3, 7, 2][..], &[1, 3, 1, 1][..], 0, (vec![5, 3, 14], vec![0, 1, 0], 0)),
        (&[3, 5, 7, 2], &[3, 1, 1, 1], 1, (vec![3, 5, 14], vec![1, 0, 0], 1)),
        // A length for every lane; a scalar; lengths of lower rank; the axis alone, also counted from the end.
        (&[3, 2, 5, 7], &[3, 2, 1, 7], 2, (vec![6, 5, 7], vec![7, 0, 1], 1)),
        (&[3, 5], &[], 1, (vec![3, 5], vec![0, 0], 1)),
        (&[2, 3, 4], &[4], 1, (vec![2, 3, 4], vec![0, 0, 1], 1)),
        (&[5], &[1], -1, (vec![5], vec![0], 0)),
        (&[1, 1, 1], &[], 1, (vec![1], vec![0], 0)),
        // Ten dimensions become three.
        (&[2; 10], &[2, 2, 2, 1, 2, 2, 2, 2, 2, 2], 3, (vec![8, 2, 64], vec![64, 0, 1], 1)),
    ] {
        assert_eq!(lower(shape, lengths, axis).expect("fits"), required, "{shape:?} {lengths:?} {axis}");
    }
}

#[test]
fn elements_move_as_the_largest_aligned_integers() {
    let lengths = packed(&[]);
    for (size, strides, addresses, unit, sizes) in [
        (4, [12, 4], 0, TensorDataType::UInt32, &[2, 3][..]),
        (16, [48, 16], 0, TensorDataType::UInt64, &[2, 3, 2]),
        (12, [36, 12], 0, TensorDataType::UInt32, &[2, 3, 3]),
        (3, [9, 3], 0, TensorDataType::UInt8, &[2, 3, 3]),
        // Rows of 26 bytes; an address at 2.
        (4, [26, 4], 0, TensorDataType::UInt16, &[2, 3, 2]),
        (8, [24, 8], 0x7002, TensorDataType::UInt16, &[2, 3, 4]),
    ] {
        let input = strided(&[2, 3], &strides);
        let lowered = LoweredReversal::new(input, lengths, Some(&strides), 1, size, TensorDataType::UInt32, addresses);
        let desc = lowered.expect("fits").desc();
        assert_eq!((desc.input_tensor.data_type, &desc.input_tensor.sizes[..]), (unit, sizes), "{size} {strides:?}");
    }
}

#[test]
fn errors_name_what_does_not_fit() {
    let refused = |shape: &[i64], lengths: &[i64], axis| lower(shape, lengths, axis).expect_err("refused").to_string();
    for (shape, lengths, axis, required) in
        [(&[2, 3][..], &[3, 1][..], 1, [2, 1].as_slice()), (&[2, 3], &[2, 3], 1, &[2, 1]), (&[2], &[1, 2], 0, &[1])]
    {
        let words = format!("has shape {lengths:?}, must broadcast to {required:?}, InputTensor's with 1 at axis");
        assert_eq!(refused(shape, lengths, axis), format!("SequenceLengthsTensor {words}"));
    }
    let names = Names { input: "x", lengths: "lengths", output: "out", axis: "dim" };
    let error = lower(&[2, 3], &[4], 1).expect_err("refused");
    assert_eq!(error.message(&names), "lengths has shape [4], must broadcast to [2, 1], x's with 1 at dim");
    assert_eq!(refused(&[1 << 32, 3], &[], 1), "dimension 0 of InputTensor is 4294967296, must be below 2³²");
    assert_eq!(refused(&[2, -3], &[], 0), "dimension 1 of InputTensor is -3, must be at least 0");
    assert_eq!(refused(&[2], &[], 1), "axis is 1, must be from -1 to 0, of an InputTensor of 1 dimensions");
    assert_eq!(refused(&[], &[], 0), "axis is 0, must be a dimension of InputTensor, which has none");
    let striped: Vec<i64> = (0..20).map(|d| if d % 2 == 0 { 2 } else { 1 }).collect();
    assert!(refused(&[2; 20], &striped, 19).ends_with("must fold into 8 dimensions for these strides and lengths"));

    let strides = |of_input: &[i64], of_lengths: &[i64]| {
        let (input, lengths) = (strided(&[2, 3], of_input), strided(&[2, 1], of_lengths));
        let lowered = LoweredReversal::new(input, lengths, None, 1, 4, TensorDataType::UInt32, 0);
        lowered.expect_err("refused").to_string()
    };
    assert_eq!(strides(&[-12, 4], &[4, 4]), "stride 0 of InputTensor is -12 bytes, must be at least 0");
    assert_eq!(
        strides(&[1 << 40, 4], &[4, 4]),
        "stride 0 of InputTensor is 1099511627776 bytes, must be below 17179869184"
    );
    let odd = "stride 0 of SequenceLengthsTensor is 6 bytes, must be a multiple of 4, the bytes of an element";
    assert_eq!(strides(&[12, 4], &[6, 4]), odd);
    assert_eq!(strides(&[12], &[4, 4]), "InputTensor has 1 strides, must have 2, one for each dimension");
}
