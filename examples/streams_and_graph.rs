//! Two operators in a row on one stream, one by one and then as a graph: on a GPU, one launch for both.

use dml_cuda::{
    BufferBinding, BufferTensorDesc, Device, ReverseSubsequencesDesc, ScalarUnion, TensorDataType,
};

pub(crate) fn main() -> Result<(), dml_cuda::Error> {
    let device = Device::cuda_or_cpu()?;
    println!("runs on {}", device.name());
    let tensor = BufferTensorDesc::packed(TensorDataType::Int32, &[1, 4]);
    let fill = dml_cuda::FillValueSequenceDesc {
        output_tensor: tensor.clone(),
        value_data_type: TensorDataType::Int32,
        value_start: ScalarUnion::Int32(1),
        value_delta: ScalarUnion::Int32(1),
    };
    let reversal = ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor: BufferTensorDesc::packed(TensorDataType::UInt32, &[1, 1]),
        output_tensor: tensor,
        axis: 1,
    };
    let fill = device.compile_operator(&device.create_operator(fill)?)?;
    let reversal = device.compile_operator(&device.create_operator(reversal)?)?;

    let data = device.create_buffer_from(&[0i32; 4])?;
    let lengths = device.create_buffer_from(&[3u32])?;
    let fill = fill.bind(&[], &data)?;
    let reversal = reversal.bind(
        &[BufferBinding::whole(&data), BufferBinding::whole(&lengths)],
        &data,
    )?; // in place

    let stream = device.create_stream()?;
    fill.dispatch(&stream)?;
    reversal.dispatch(&stream)?;
    stream.synchronize()?;
    println!("one by one: {:?}", data.to_vec::<i32>()?);

    lengths.write(0, &4u32.to_ne_bytes())?;
    let mut graph = device.record_graph([&fill, &reversal])?;
    graph.launch(&stream)?;
    stream.synchronize()?;
    println!(
        "as a graph, with another length: {:?}",
        data.to_vec::<i32>()?
    );
    assert_eq!(data.to_vec::<i32>()?, [4, 3, 2, 1]);
    Ok(())
}
