//! Runs a model with the crate `ort`, whose ReverseSequence node dml-cuda replaces:
//! `cargo run -- libonnxruntime.so libdml_cuda.so`.

use ort::session::Session;
use ort::value::Tensor;

/// `y = ReverseSequence(x, lengths, batch_axis=0, time_axis=1)`.
const MODEL: &[u8] = include_bytes!("reverse_sequence.onnx");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(onnxruntime), Some(library)) = (arguments.next(), arguments.next()) else {
        return Err("usage: ort-example libonnxruntime.so libdml_cuda.so".into());
    };
    let environment = ort::init_from(onnxruntime)?.build()?;
    let mut session = Session::builder(&environment)?
        .with_config_entry("dml_cuda.replace_onnx", "1")?
        .with_operator_library(library)?
        .commit_from_memory(MODEL)?;
    let x = Tensor::from_array(([2, 4], vec![1f32, 2., 3., 4., 5., 6., 7., 8.]))?;
    let lengths = Tensor::from_array(([2], vec![3i64, 2]))?;
    let outputs = session.run(ort::inputs!["x" => x, "lengths" => lengths])?;
    let (_, y) = outputs["y"].try_extract_tensor::<f32>()?;
    println!("{y:?}"); // [3.0, 2.0, 1.0, 4.0, 6.0, 5.0, 7.0, 8.0]
    Ok(())
}
