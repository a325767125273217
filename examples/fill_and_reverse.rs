//! Slices in, a vector out: the shortest use, on the first GPU or on the CPU.

use dml_cuda::{Device, Error};

pub(crate) fn main() -> Result<(), Error> {
    let device = Device::cuda_or_cpu()?;
    println!("runs on {}", device.name());

    let countdown = dml_cuda::fill_value_sequence(&device, &[1, 1, 1, 4], 10u8, -2i8)?;
    println!("10, then 2 less each: {countdown:?}");
    assert_eq!(countdown, [10, 8, 6, 4]);

    // Two rows of 4, of which the first 3 and the first 2 elements change places.
    let rows = [1f32, 2., 3., 4., 5., 6., 7., 8.];
    let reversed = dml_cuda::reverse_subsequences(&device, &rows, &[2, 4], 1, &[3u32, 2])?;
    println!("3 and 2 reversed: {reversed:?}");
    assert_eq!(reversed, [3., 2., 1., 4., 6., 5., 7., 8.]);
    Ok(())
}
