//! Small work whose outputs are compared: every type of a fill, every width of a reversal, both types of lengths.

use dml_cuda::{BufferTensorDesc, FillValueSequenceDesc, ReverseSubsequencesDesc, ScalarUnion, TensorDataType};

use super::cases::{fill_types, WIDTHS};
use super::job::{Job, Task};

pub fn jobs() -> Vec<Job> {
    use TensorDataType as T;
    let mut jobs = Vec::new();
    for &data_type in fill_types() {
        let (value_start, value_delta) = match data_type {
            T::Float32 => (ScalarUnion::Float32(-3.7), ScalarUnion::Float32(0.1)),
            // −3.5 and 0.125: adapters differ in how they round FLOAT16, and these need no rounding.
            T::Float16 => (ScalarUnion::UInt16(0xC300), ScalarUnion::UInt16(0x3000)),
            _ => (ScalarUnion::UInt64(100), ScalarUnion::UInt64(u64::MAX - 2)),
        };
        let output_tensor = BufferTensorDesc::packed(data_type, &[4, 3, 5]);
        let desc = FillValueSequenceDesc { output_tensor, value_data_type: data_type, value_start, value_delta };
        let name = format!("check.fill.{}", data_type.name().to_ascii_lowercase());
        jobs.push(Job::of_output(name, Task::Output { desc: desc.into(), over_long: false }));
    }
    for data_type in WIDTHS {
        for length_type in [T::UInt32, T::UInt64] {
            for shape in [[6, 9, 1], [4, 7, 5]] {
                jobs.push(reversal(data_type, length_type, shape, false));
            }
        }
    }
    // Lengths above the axis size. DirectML does not clamp them as its page says.
    jobs.extend(WIDTHS.map(|data_type| reversal(data_type, T::UInt32, [4, 7, 5], true)));
    jobs
}

/// Along the middle axis.
fn reversal(data_type: TensorDataType, length_type: TensorDataType, shape: [u32; 3], over_long: bool) -> Job {
    let tensor = BufferTensorDesc::packed(data_type, &shape);
    let [before, axis, behind] = shape;
    let desc = ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor: BufferTensorDesc::packed(length_type, &[before, 1, behind]),
        output_tensor: tensor,
        axis: 1,
    };
    let types = [data_type, length_type].map(|data_type| data_type.name().to_ascii_lowercase()).join(".");
    let begin = if over_long { "over_long" } else { "check" };
    let name = format!("{begin}.reverse_{before}x{axis}x{behind}.{types}");
    Job::of_output(name, Task::Output { desc: desc.into(), over_long })
}
