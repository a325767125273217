//! Which kernel comes first where thresholds meet. tests/selection.rs has the whole table.

use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc};
use crate::TensorDataType::{self, Float16, Float32, Int64, UInt32, UInt8};
use crate::{Device, ExplainedLaunch, GpuTarget};

const T4: GpuTarget = GpuTarget::NAMED[0].1;
const A100: GpuTarget = GpuTarget::NAMED[2].1;
const H100: GpuTarget = GpuTarget::NAMED[3].1;

/// The first launches, copying and in place, along axis 1.
fn first(tensor: BufferTensorDesc, lengths: BufferTensorDesc, target: GpuTarget) -> [ExplainedLaunch; 2] {
    let desc = ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor: lengths,
        output_tensor: tensor,
        axis: 1,
    };
    let operator = Device::cpu().create_operator(desc).expect("a valid layout");
    let modes = operator.explain(&target).modes;
    assert_eq!(modes.len(), 2, "equal strides run in place");
    [0, 1].map(|mode| modes[mode].launches[0].clone())
}

/// Their kernels, without the width of the element.
fn kernels(tensor: BufferTensorDesc, lengths: BufferTensorDesc, target: GpuTarget) -> [String; 2] {
    first(tensor, lengths, target)
        .map(|launch| launch.kernel.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit()).to_owned())
}

/// Lanes along axis 1 of a packed tensor, each with a length of its own.
fn lanes(data_type: TensorDataType, sizes: [u32; 3]) -> (BufferTensorDesc, BufferTensorDesc) {
    (BufferTensorDesc::packed(data_type, &sizes), BufferTensorDesc::packed(UInt32, &[sizes[0], 1, sizes[2]]))
}

/// One length for all that lies behind axis 1.
fn one_length(data_type: TensorDataType, sizes: [u32; 3]) -> BufferTensorDesc {
    BufferTensorDesc::strided(data_type, &[sizes[0], 1, sizes[2]], &[1, 0, 0])
}

#[test]
fn clusters_take_lanes_that_no_block_holds() {
    let kernels = |data_type, rows, row, target| {
        let (tensor, lengths) = lanes(data_type, [8, rows, row]);
        kernels(tensor, lengths, target)
    };
    assert_eq!(kernels(Float32, 7264, 64, H100), ["reverse_strips", "reverse_strips_in_place"]);
    assert_eq!(kernels(Float32, 7265, 64, H100), ["reverse_clusters", "reverse_clusters_in_place"]);
    assert_eq!(kernels(Float32, 7265, 63, H100), ["reverse_elementwise", "reverse_clusters_in_place"]);
    assert_eq!(kernels(Float16, 7265, 63, H100), ["reverse_clusters", "reverse_clusters_in_place"]);
    assert_eq!(kernels(Float32, 7265, 7, H100), ["reverse_elementwise", "reverse_elementwise_in_place"]);
    let no_clusters = GpuTarget { clusters: false, ..H100 };
    assert_eq!(kernels(Float32, 7265, 64, no_clusters), ["reverse_elementwise", "reverse_elementwise_in_place"]);
    assert_eq!(kernels(Float32, 5216, 64, A100), ["reverse_strips", "reverse_strips_in_place"]);
    assert_eq!(kernels(Float32, 5217, 64, A100), ["reverse_elementwise", "reverse_elementwise_in_place"]);
}

#[test]
fn rows_apart_are_moved_in_tiles_where_they_are_long() {
    let in_place = |row: u32, apart: u32| {
        let tensor = BufferTensorDesc::strided(Float32, &[64, 2048, row], &[2048 * apart, apart, 1]);
        let [_, in_place] = kernels(tensor, one_length(UInt32, [64, 2048, row]), T4);
        in_place
    };
    assert_eq!(in_place(257, 257), "reverse_row_tiles_in_place");
    assert_eq!(in_place(257, 259), "reverse_elementwise_in_place");
    assert_eq!(in_place(1001, 1003), "reverse_row_tiles_in_place");
}

#[test]
fn small_work_is_scattered_unless_lanes_lie_side_by_side() {
    let each = |sizes| {
        let (tensor, lengths) = lanes(Float32, sizes);
        kernels(tensor, lengths, T4)
    };
    assert_eq!(each([16, 256, 1]), ["reverse_small", "reverse_small_in_place"]);
    assert_eq!(each([16, 64, 8]), ["reverse_small", "reverse_small_in_place"]);
    assert_eq!(each([1, 1 << 19, 1])[0], "reverse_long_lanes");
    let blocks = first(BufferTensorDesc::packed(Float32, &[16, 64, 8]), one_length(UInt32, [16, 64, 8]), T4);
    assert_eq!(blocks.map(|launch| launch.kernel), ["reverse_small_16", "reverse_small_in_place_16"]);
}

#[test]
fn strips_are_narrow_where_there_are_few_and_wide_where_there_are_many() {
    // Bytes of a strip's row, of lanes of 512 elements, 768 side by side.
    let strips = |data_type, batch| {
        let (tensor, lengths) = lanes(data_type, [batch, 512, 768]);
        first(tensor, lengths, H100).map(|launch| {
            assert!(launch.kernel.starts_with("reverse_strips"), "{}", launch.kernel);
            launch.shared_memory / 512
        })
    };
    assert_eq!(strips(UInt8, 1), [32, 32]);
    assert_eq!(strips(UInt8, 8), [32, 64]);
    assert_eq!(strips(Float16, 8), [64, 128]);
    assert_eq!(strips(Float32, 8), [128, 128]);
    assert_eq!(strips(Int64, 1), [32, 64]);
    assert_eq!(strips(UInt8, 64), [128, 128]);
}
