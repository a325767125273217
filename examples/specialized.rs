//! A reversal by a generic kernel, and by one that the driver compiles for its sizes: for fixed shapes of little work.
//! On the CPU both are the same; the first one waits for new memory.

use dml_cuda::{
    BufferBinding, BufferTensorDesc, CompileOptions, Device, Specialize, TensorDataType,
};

pub(crate) fn main() -> Result<(), dml_cuda::Error> {
    let device = Device::cuda_or_cpu()?;
    println!("runs on {}", device.name());
    let tensor = BufferTensorDesc::packed(TensorDataType::UInt8, &[256, 100]);
    let operator = device.create_operator(dml_cuda::ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[256, 1]),
        output_tensor: tensor,
        axis: 1,
    })?;
    let input =
        device.create_buffer_from(&(0..=255).cycle().take(256 * 100).collect::<Vec<u8>>())?;
    let lengths = device.create_buffer_from(&[99u32; 256])?;
    let mut found = Vec::new();
    for specialize in [Specialize::Never, Specialize::Always] {
        let options = CompileOptions::default().with_specialize(specialize);
        let operator = device.compile_operator_with(&operator, options)?;
        let output = device.create_buffer(input.size_in_bytes())?;
        let table = operator.bind(
            &[BufferBinding::whole(&input), BufferBinding::whole(&lengths)],
            &output,
        )?;
        let (mut graph, stream) = (device.record_graph([&table; 100])?, device.create_stream()?);
        let start = std::time::Instant::now();
        graph.launch(&stream)?;
        stream.synchronize()?;
        println!("{specialize:?}: {:?} for 100 dispatches", start.elapsed());
        found.push(output.to_vec::<u8>()?);
    }
    assert_eq!(found[0], found[1]);
    Ok(())
}
