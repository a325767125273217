//! The numbers printed on Microsoft's pages of the two operators, literally.

use dml_cuda::{fill_value_sequence, reverse_subsequences, Error};
use dml_cuda_testing::devices;

#[test]
fn fill_value_sequence_examples() {
    for device in devices("fill_value_sequence_examples") {
        assert_eq!(fill_value_sequence(&device, &[1, 1, 1, 3], 3f32, 2f32), Ok(vec![3.0, 5.0, 7.0]));
        assert_eq!(fill_value_sequence(&device, &[1, 1, 2, 2], 10u8, -2i8), Ok(vec![10, 8, 6, 4]));
    }
}

const INPUT: [f32; 12] = [1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.];

#[test]
fn reverse_subsequences_examples() {
    for device in devices("reverse_subsequences_examples") {
        let output = reverse_subsequences(&device, &INPUT, &[1, 1, 3, 4], 3, &[2u32, 4, 3]);
        assert_eq!(output, Ok(vec![2., 1., 3., 4., 8., 7., 6., 5., 11., 10., 9., 12.]));
        let output = reverse_subsequences(&device, &INPUT, &[1, 1, 3, 4], 2, &[2u64, 3, 1, 0]);
        assert_eq!(output, Ok(vec![5., 10., 3., 4., 1., 6., 7., 8., 9., 2., 11., 12.]));
    }
}

#[test]
fn the_short_paths_refuse_slices_that_do_not_fit() {
    for device in devices("the_short_paths_refuse_slices_that_do_not_fit") {
        let error = reverse_subsequences(&device, &INPUT, &[3, 4], 1, &[2u32, 4]).expect_err("two lengths");
        assert_eq!(
            error.to_string(),
            "the slice of SequenceLengthsTensor is 2 elements, but must be 3, the product of its sizes (slice.length)"
        );
        assert!(matches!(reverse_subsequences(&device, &INPUT, &[3, 4], 2, &[2u32]), Err(Error::Validation(_))));
        assert!(matches!(fill_value_sequence(&device, &[65536, 65536], 0u8, 1u8), Err(Error::Validation(_))));
    }
}
