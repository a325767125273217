#![allow(unsafe_code)]

use super::*;
use crate::{Address, CompileOptions, Device, RawStream, ScalarUnion, TensorDataType, TensorRole};

fn packed(sizes: &[i64]) -> ForeignTensor<'_> {
    ForeignTensor::packed(Address(0), sizes)
}

fn strided<'a>(sizes: &'a [i64], strides: &'a [i64]) -> ForeignTensor<'a> {
    ForeignTensor {
        strides_in_bytes: Some(strides),
        ..packed(sizes)
    }
}

/// Lowers a reversal into a tensor of the input's sizes and the given strides, or packed.
fn reversal(
    input: ForeignTensor<'_>,
    lengths: ForeignTensor<'_>,
    output_strides: Option<&[i64]>,
    axis: i64,
    element_size: usize,
    length_type: TensorDataType,
    address: u64,
) -> Result<LoweredReversal, LoweringError> {
    let output = ForeignTensor {
        address: Address(address),
        strides_in_bytes: output_strides,
        ..input
    };
    LoweredReversal::new(&ReversalArrays {
        input,
        lengths,
        output,
        axis,
        element_size,
        length_type,
    })
}

/// Lowers packed tensors of 4-byte elements with lengths of 8 bytes. Returns the sizes, the strides of the lengths, and
/// the axis.
fn lower(
    shape: &[i64],
    lengths: &[i64],
    axis: i64,
) -> Result<(Vec<u32>, Vec<u32>, u32), LoweringError> {
    let (input, lengths) = (packed(shape), packed(lengths));
    let desc = reversal(input, lengths, None, axis, 4, TensorDataType::UInt64, 0)?.desc();
    Device::cpu()
        .create_operator(desc.clone())
        .expect("DirectML takes it");
    let strides = desc.sequence_lengths_tensor.strides.expect("written out");
    Ok((desc.input_tensor.sizes, strides, desc.axis))
}

#[test]
fn dimensions_fold_to_outer_axis_and_inner() {
    for (shape, lengths, axis, required) in [
        // ONNX's [T, B, F, G] along time 0, and [B, T, F, G] along time 1.
        (
            &[5, 3, 7, 2][..],
            &[1, 3, 1, 1][..],
            0,
            (vec![5, 3, 14], vec![0, 1, 0], 0),
        ),
        (
            &[3, 5, 7, 2],
            &[3, 1, 1, 1],
            1,
            (vec![3, 5, 14], vec![1, 0, 0], 1),
        ),
        // A length for every lane; a scalar; lengths of lower rank; the axis alone, also counted from the end.
        (
            &[3, 2, 5, 7],
            &[3, 2, 1, 7],
            2,
            (vec![6, 5, 7], vec![7, 0, 1], 1),
        ),
        (&[3, 5], &[], 1, (vec![3, 5], vec![0, 0], 1)),
        (&[2, 3, 4], &[4], 1, (vec![2, 3, 4], vec![0, 0, 1], 1)),
        (&[5], &[1], -1, (vec![5], vec![0], 0)),
        (&[1, 1, 1], &[], 1, (vec![1], vec![0], 0)),
        // Ten dimensions become three.
        (
            &[2; 10],
            &[2, 2, 2, 1, 2, 2, 2, 2, 2, 2],
            3,
            (vec![8, 2, 64], vec![64, 0, 1], 1),
        ),
    ] {
        assert_eq!(
            lower(shape, lengths, axis).expect("fits"),
            required,
            "{shape:?} {lengths:?} {axis}"
        );
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
        // One row: its stride has no meaning.
        (4, [13, 4], 0, TensorDataType::UInt32, &[3]),
    ] {
        let shape = [if sizes.len() > 1 { 2 } else { 1 }, 3];
        let input = strided(&shape, &strides);
        let lowered = reversal(
            input,
            lengths,
            Some(&strides),
            1,
            size,
            TensorDataType::UInt32,
            addresses,
        );
        let desc = lowered.expect("fits").desc();
        assert_eq!(
            (desc.input_tensor.data_type, &desc.input_tensor.sizes[..]),
            (unit, sizes),
            "{size} {strides:?}"
        );
    }
}

#[test]
fn errors_name_what_does_not_fit() {
    let refused = |shape: &[i64], lengths: &[i64], axis| {
        lower(shape, lengths, axis)
            .expect_err("refused")
            .to_string()
    };
    for (shape, lengths, axis, required) in [
        (&[2, 3][..], &[3, 1][..], 1, [2, 1].as_slice()),
        (&[2, 3], &[2, 3], 1, &[2, 1]),
        (&[2], &[1, 2], 0, &[1]),
    ] {
        let words = format!("has shape {lengths:?}, but must broadcast to {required:?}, InputTensor's with 1 at axis");
        assert_eq!(
            refused(shape, lengths, axis),
            format!("SequenceLengthsTensor {words}")
        );
    }
    let names = Names::new(
        "dim",
        &[
            (TensorRole::Input, "x"),
            (TensorRole::SequenceLengths, "lengths"),
            (TensorRole::Output, "out"),
        ],
    );
    let error = lower(&[2, 3], &[4], 1).expect_err("refused");
    assert_eq!(
        error.message(&names),
        "lengths has shape [4], but must broadcast to [2, 1], x's with 1 at dim"
    );
    assert_eq!(
        refused(&[1 << 32, 3], &[], 1),
        "dimension 0 of InputTensor is 4294967296, but must be below 2³²"
    );
    assert_eq!(
        refused(&[2, -3], &[], 0),
        "dimension 1 of InputTensor is -3, but must be at least 0"
    );
    assert_eq!(
        refused(&[2], &[], 1),
        "axis is 1, but must be from -1 to 0, the dimensions of InputTensor"
    );
    assert_eq!(
        refused(&[], &[], 0),
        "InputTensor has 0 dimensions, but must have at least 1"
    );
    let striped: Vec<i64> = (0..20).map(|d| if d % 2 == 0 { 2 } else { 1 }).collect();
    let words = "2), but must fold into 8 dimensions for these strides and lengths";
    assert_eq!(
        refused(&[2; 20], &striped, 19),
        format!("InputTensor has shape ({}{words}", "2, ".repeat(19))
    );

    let lower = |element_size, length_type| {
        let lowered = reversal(
            packed(&[2]),
            packed(&[]),
            None,
            0,
            element_size,
            length_type,
            0,
        );
        lowered.expect_err("refused").to_string()
    };
    for found in [
        TensorDataType::UInt4,
        TensorDataType::Int16,
        TensorDataType::Float32,
    ] {
        let words = format!(
            "SequenceLengthsTensor has type {found}, but must have integers of 32 or 64 bits"
        );
        assert_eq!(lower(4, found), words);
    }
    let words = "an element of InputTensor is 34359738376 bytes, but must be from 1 to 34359738360";
    assert_eq!(lower((1 << 35) + 8, TensorDataType::UInt32), words);

    let strides = |input_strides: &[i64], lengths_strides: &[i64]| {
        let (input, lengths) = (
            strided(&[2, 3], input_strides),
            strided(&[2, 1], lengths_strides),
        );
        let lowered = reversal(input, lengths, None, 1, 4, TensorDataType::UInt32, 0);
        lowered.expect_err("refused").to_string()
    };
    assert_eq!(
        strides(&[-12, 4], &[4, 4]),
        "stride 0 of InputTensor is -12 bytes, but must be at least 0"
    );
    assert_eq!(
        strides(&[1 << 40, 4], &[4, 4]),
        "stride 0 of InputTensor is 1099511627776 bytes, but must be below 17179869184"
    );
    let odd = "stride 0 of SequenceLengthsTensor is 6 bytes, but must be a multiple of 4, the bytes of an element";
    assert_eq!(strides(&[12, 4], &[6, 4]), odd);
    assert_eq!(
        strides(&[12], &[4, 4]),
        "the number of strides of InputTensor is 1, but must be 2, one for each dimension"
    );
}

/// Tensors that DirectML cannot describe pass through the rules of sizes as well.
#[test]
fn no_way_to_a_compiled_operator_accepts_a_size_of_0() {
    let device = Device::cpu();
    let broken = |lowered: Lowered| match device
        .compile_lowered(&lowered, crate::CompileOptions::default())
    {
        Err(crate::Error::Validation(errors)) => {
            let is_broken = errors
                .errors()
                .iter()
                .any(|error| error.rule == crate::Rule::TensorSizesNonzero);
            assert!(is_broken, "{lowered:?}: {errors}");
        }
        other => panic!("{lowered:?}: {other:?}"),
    };
    for sizes in [&[0][..], &[0, 3], &[3, 0], &[0, 0], &[2, 0, 3]] {
        for &data_type in TensorDataType::ALL {
            broken(Lowered::Sequence(LoweredSequence::packed(
                data_type, 0, 1, 1,
            )));
            if let Ok(sequence) = LoweredSequence::strided(data_type, packed(sizes), 1, 1) {
                broken(Lowered::Sequence(sequence));
            }
        }
        for axis in 0..sizes.len() as i64 {
            let lowering = reversal(
                packed(sizes),
                packed(&[]),
                None,
                axis,
                4,
                TensorDataType::UInt32,
                0,
            );
            broken(Lowered::Reversal(
                lowering.expect("sizes of 0 can be lowered"),
            ));
        }
        let sizes: Vec<u32> = sizes.iter().map(|&size| size as u32).collect();
        assert!(
            crate::fill_value_sequence(&device, &sizes, 1f32, 1f32).is_err(),
            "{sizes:?}"
        );
        assert!(
            crate::reverse_subsequences(&device, &[0u8; 0], &sizes, 0, &[0u32; 0]).is_err(),
            "{sizes:?}"
        );
    }
}

proptest::proptest! {
    /// No arguments panic, and a descriptor has all bytes of the input, at their places.
    #[test]
    fn a_reversal_is_refused_or_lowered_whole(
        dimensions in proptest::collection::vec((edge(), edge(), edge(), edge()), 0..11),
        (rank_of_lengths, strided, axis) in (0usize..12, 0u8..8, -12i64..12),
        element_size in proptest::sample::select(
            vec![0, 1, 2, 3, 4, 8, 12, 1 << 31, 1 << 35, (1 << 35) + 8, 1 << 40, usize::MAX],
        ),
        length_type in proptest::sample::select(TensorDataType::ALL.to_vec()),
        addresses in proptest::prelude::any::<u64>(),
    ) {
        let column = |of: fn(&(i64, i64, i64, i64)) -> i64| dimensions.iter().map(of).collect::<Vec<i64>>();
        let (sizes, input_strides) = (column(|d| d.0), column(|d| d.1));
        let (lengths_strides, output_strides) = (column(|d| d.2), column(|d| d.3));
        let rank = rank_of_lengths.min(sizes.len());
        let mut lanes = sizes.clone();
        if let Some(size) = usize::try_from(axis).ok().and_then(|axis| lanes.get_mut(axis)) {
            *size = 1;
        }
        let given = |bit: u8, strides| if strided & bit > 0 { Some(strides) } else { None };
        let input = ForeignTensor { strides_in_bytes: given(1, &input_strides[..]), ..packed(&sizes) };
        let (lanes, lanes_strides) = (&lanes[sizes.len() - rank..], &lengths_strides[sizes.len() - rank..]);
        let lengths = ForeignTensor { strides_in_bytes: given(2, lanes_strides), ..packed(lanes) };
        let output = given(4, &output_strides[..]);
        if let Ok(lowered) = reversal(input, lengths, output, axis, element_size, length_type, addresses) {
            let desc = lowered.desc();
            let (described, size_of_element) = (&desc.input_tensor, element_size as u128);
            let unit = u128::from(described.data_type.size_in_bits() / 8);
            let bytes = |unit: u128, sizes: Vec<u128>| match sizes.contains(&0) {
                true => 0,
                false => sizes.into_iter().fold(unit, u128::saturating_mul),
            };
            let required = bytes(size_of_element, sizes.iter().map(|&size| size as u128).collect());
            let found = bytes(unit, described.sizes.iter().map(|&size| size.into()).collect());
            proptest::prop_assert_eq!(found, required);
            if let (Some(strides), false) = (input.strides_in_bytes, sizes.contains(&0)) {
                let last = |(&size, &stride): (&i64, &i64)| (size as u128 - 1) * stride.max(0) as u128;
                let last: u128 = sizes.iter().zip(strides).map(last).sum();
                let span = described.span().expect("as many strides as sizes") * unit;
                proptest::prop_assert_eq!(span, last + size_of_element);
            }
        }
    }
}

/// Sizes and strides that are small, or around a limit.
fn edge() -> impl proptest::strategy::Strategy<Value = i64> {
    let edges = [
        -1,
        0,
        1,
        2,
        3,
        4,
        8,
        24,
        (1 << 32) - 1,
        1 << 32,
        (1 << 35) - 8,
        1 << 35,
        i64::MAX,
        i64::MIN,
    ];
    proptest::prop_oneof![4 => 1i64..4, 1 => proptest::sample::select(edges.to_vec())]
}

#[test]
fn a_sequence_keeps_the_strides_that_are_not_packed() {
    for (sizes, strides, expected) in [
        (&[2, 3][..], &[12, 4][..], (vec![6], None)),
        (&[2, 3], &[16, 4], (vec![2, 3], Some(vec![4, 1]))),
        (&[2, 3], &[4, 8], (vec![2, 3], Some(vec![1, 2]))),
        (&[2, 1], &[4, 400], (vec![2], None)), // the stride of one element has no meaning
        (
            &[2, 1, 3],
            &[16, 6, 4],
            (vec![2, 1, 3], Some(vec![4, 3, 1])),
        ),
        (&[], &[], (vec![1], None)),
    ] {
        let sequence =
            LoweredSequence::strided(TensorDataType::Int32, strided(sizes, strides), 5, 1)
                .expect("right");
        let tensor = sequence.desc().output_tensor;
        assert_eq!(
            (tensor.sizes, tensor.strides),
            expected,
            "{sizes:?} {strides:?}"
        );
    }
    let apart = |data_type, rank, stride| {
        let (mut sizes, mut strides) = (vec![1; rank], vec![8; rank]);
        (sizes[0], strides[0]) = (2, stride);
        LoweredSequence::strided(data_type, strided(&sizes, &strides), 5, 1)
            .map(|sequence| sequence.desc())
    };
    assert!(
        apart(TensorDataType::Int32, 8, 16).is_ok() && apart(TensorDataType::Float64, 9, 8).is_ok()
    );
    assert!(matches!(
        apart(TensorDataType::Int32, 9, 16),
        Err(LoweringError::Fold { .. })
    ));
    let gaps = Lowered::Sequence(
        LoweredSequence::strided(TensorDataType::Float64, strided(&[2], &[16]), 5, 1)
            .expect("right"),
    );
    let error = Device::cpu()
        .compile_lowered(&gaps, CompileOptions::default())
        .expect_err("kernels fill packed FLOAT64 only");
    assert!(
        error.to_string().ends_with(
            "Strides is [2], but must be none, because FLOAT64 is filled packed (fill.packed)"
        ),
        "{error}"
    );
}

#[test]
fn bits_above_those_of_the_type_are_no_part_of_a_scalar() {
    let sequence = |start, delta| LoweredSequence::packed(TensorDataType::Int16, 3, start, delta);
    assert_eq!(sequence(0xABCD_8001, 0x1_0002), sequence(0x8001, 2));
    assert_ne!(sequence(0x8001, 2), sequence(1, 2));
    let desc = sequence(0xABCD_8001, 0x1_0002).desc();
    let scalars = [desc.value_start, desc.value_delta];
    assert_eq!(
        scalars,
        [0x8001u64, 2].map(|scalar| ScalarUnion::Bytes(scalar.to_le_bytes()))
    );
}

/// What an operator writes to memory that begins `past` bytes after an aligned address, as its inputs do.
fn written(lowered: &Lowered, inputs: &[&[u8]], in_place: bool, past: usize) -> Vec<u8> {
    let moved = |bytes: &[u8]| -> Vec<u64> {
        let mut memory = vec![0; bytes.len() / 8 + 2];
        bytemuck::cast_slice_mut::<u64, u8>(&mut memory)[past..][..bytes.len()]
            .copy_from_slice(bytes);
        memory
    };
    let mut memory: Vec<Vec<u64>> = inputs
        .iter()
        .copied()
        .chain([&[7; 512][..]])
        .map(moved)
        .collect();
    let at = |memory: &mut Vec<u64>| Address(memory.as_mut_ptr() as u64 + past as u64);
    let mut addresses: Vec<Address> = memory.iter_mut().map(at).collect();
    let output = addresses.pop().expect("an output");
    let output = if in_place { addresses[0] } else { output };
    // SAFETY: memory of this function, as large as the tensors.
    unsafe { Device::cpu().run_lowered(lowered, &addresses, output, RawStream::NULL) }
        .expect("it runs");
    let output_at = if in_place { 0 } else { inputs.len() };
    bytemuck::cast_slice::<u64, u8>(&memory[output_at])[past..][..512].to_vec()
}

#[test]
fn tensors_on_the_host_need_not_be_aligned() {
    use TensorDataType::*;
    let values: Vec<u8> = (0..512).map(|n| (n * 7 % 251) as u8).collect();
    // Lanes, interleaved lanes, small and large blocks.
    for (sizes, lengths_sizes) in [
        ([4, 8, 1], [4, 1, 1]),
        ([1, 8, 4], [1, 1, 4]),
        ([4, 4, 2], [4, 1, 1]),
        ([1, 2, 16], [1, 1, 1]),
    ] {
        for (element_size, (length_type, width)) in [1, 2, 4, 8, 16]
            .into_iter()
            .flat_map(|size| [(UInt32, 4), (UInt64, 8)].map(|of_lengths| (size, of_lengths)))
        {
            let lengths: Vec<u8> = (0..64)
                .map(|n| if n % width == 0 { 2 + n / width % 3 } else { 0 })
                .collect();
            let lowered = reversal(
                packed(&sizes),
                packed(&lengths_sizes),
                None,
                1,
                element_size,
                length_type,
                0,
            );
            let reversal = Lowered::Reversal(lowered.expect("right"));
            for in_place in [false, true] {
                let at = |past| written(&reversal, &[&values, &lengths], in_place, past);
                assert!(
                    at(0) == at(3),
                    "{element_size} {sizes:?} {length_type} {in_place}"
                );
            }
        }
    }
    for data_type in [UInt8, Float16, Float32, Int64, Float64] {
        let width = i64::from(data_type.size_in_bits() / 8);
        let strides = [16 * width, 2 * width];
        let gaps = LoweredSequence::strided(data_type, strided(&[3, 5], &strides), 0x3c01, 0x3401);
        let gaps = gaps.ok().filter(|_| data_type != Float64);
        let packed = LoweredSequence::packed(data_type, 60, 0x3c01, 0x3401);
        for sequence in [packed].into_iter().chain(gaps).map(Lowered::Sequence) {
            assert!(
                written(&sequence, &[], false, 0) == written(&sequence, &[], false, 3),
                "{sequence:?}"
            );
        }
    }
}

#[test]
fn the_first_wrong_length_is_named_by_its_place() {
    let names = Names::new("the time axis", &[(TensorRole::SequenceLengths, "l")]);
    let lengths = [4i32, 1, 0, -2, 5, -7];
    let check = |most, sizes: &[i64], strides_in_bytes, data_type| {
        let tensor = ForeignTensor {
            address: lengths.as_ptr().into(),
            sizes,
            strides_in_bytes,
        };
        // SAFETY: every tensor below is in this array.
        unsafe { tensor.check_lengths(data_type, most) }
            .map_or_else(|error| error.message(&names), |()| String::new())
    };
    let signed = |most, sizes: &[i64], strides| check(most, sizes, strides, TensorDataType::Int32);
    let negative = "l[1, 1] is -2, but must be at least 0";
    assert_eq!(signed(None, &[3, 2], None), negative);
    assert_eq!(signed(None, &[2, 3], Some(&[4, 8])), negative);
    assert_eq!(
        signed(Some(4), &[2], Some(&[16])),
        "l[1] is 5, but must be from 0 to 4, the size of the time axis"
    );
    assert_eq!(
        signed(Some(3), &[], None),
        "l is 4, but must be from 0 to 3, the size of the time axis"
    );
    for right in [&[3][..], &[0, 7], &[i64::MAX, 0, 3]] {
        assert_eq!(signed(Some(4), right, None), "");
    }
    assert_eq!(
        signed(None, &[2], Some(&[])),
        "the number of strides of l is 0, but must be 1, one for each dimension"
    );
    assert_eq!(check(None, &[6], None, TensorDataType::UInt32), "");
    let most = "but must be from 0 to 5, the size of the time axis";
    assert_eq!(
        check(Some(5), &[6], None, TensorDataType::UInt32),
        format!("l[3] is 4294967294, {most}")
    );
    assert_eq!(
        check(None, &[3], None, TensorDataType::Int64),
        format!("l[1] is {}, but must be at least 0", -2i64 << 32)
    );
    assert_eq!(
        check(Some(5), &[1], None, TensorDataType::UInt64),
        format!("l[0] is 4294967300, {most}")
    );
}

#[test]
fn signed_lengths_run_and_negative_ones_are_refused_on_the_host() {
    let reversed = |lengths: [i64; 2]| {
        let (x, mut output) = ([1u8, 2, 3, 4, 5, 6], [0u8; 6]);
        let arrays = ReversalArrays {
            input: ForeignTensor::packed(x.as_ptr(), &[2, 3]),
            lengths: ForeignTensor::packed(lengths.as_ptr(), &[2, 1]),
            output: ForeignTensor::packed(output.as_mut_ptr(), &[2, 3]),
            axis: 1,
            element_size: 1,
            length_type: TensorDataType::Int64,
        };
        // SAFETY: arrays of this function.
        unsafe { Device::cpu().reverse_arrays(&arrays, RawStream::NULL) }
            .map_err(|error| error.to_string())?;
        Ok(output)
    };
    assert_eq!(reversed([2, 9]), Ok([2, 1, 3, 6, 5, 4]));
    let words = "SequenceLengthsTensor[1, 0] is -1, but must be at least 0";
    assert_eq!(reversed([2, -1]), Err(words.to_owned()));
}
