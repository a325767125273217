//! Memory and a stream of another library: cudarc's on a GPU, a vector's on the CPU.
#![allow(unsafe_code)]

use cudarc::driver::{CudaContext, DevicePtr};
use dml_cuda::{
    Address, BufferTensorDesc, Device, RawStream, ReverseSubsequencesDesc, TensorDataType,
};

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::cuda_or_cpu()?;
    println!("runs on {}", device.name());
    let tensor = BufferTensorDesc::packed(TensorDataType::UInt8, &[1, 4]);
    let operator =
        device.compile_operator(&device.create_operator(ReverseSubsequencesDesc {
            input_tensor: tensor.clone(),
            sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[1, 1]),
            output_tensor: tensor,
            axis: 1,
        })?)?;
    let (mut data, lengths) = (vec![1u8, 2, 3, 4], vec![3u32]);
    if let Some(ordinal) = device.ordinal() {
        let stream = CudaContext::new(ordinal)?.default_stream();
        let (on_gpu, lengths) = (stream.clone_htod(&data)?, stream.clone_htod(&lengths)?);
        let [address, lengths] =
            [on_gpu.device_ptr(&stream).0, lengths.device_ptr(&stream).0].map(Address);
        // SAFETY: both arrays have the descriptor's sizes and live on this GPU until the stream has finished.
        unsafe {
            operator.dispatch_raw(
                &[address, lengths],
                address,
                RawStream(stream.cu_stream().cast()),
            )?
        };
        data = stream.clone_dtoh(&on_gpu)?;
    } else {
        let address = Address::from(data.as_mut_ptr());
        // SAFETY: both vectors have the descriptor's sizes, and nothing else uses them.
        unsafe {
            operator.dispatch_raw(
                &[address, lengths.as_ptr().into()],
                address,
                RawStream::NULL,
            )?
        };
    }
    println!("3 of 4 reversed in place: {data:?}");
    assert_eq!(data, [3, 2, 1, 4]);
    Ok(())
}
