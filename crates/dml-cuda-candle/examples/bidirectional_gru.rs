//! A bidirectional GRU over padded sequences: the backward direction runs over the sequences reversed, each by its own
//! length, and its states are reversed back, so that padding never comes before what is real.

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::rnn::{gru, GRUConfig, GRU, RNN};
use candle_nn::VarBuilder;
use dml_cuda_candle::reverse_subsequences;

const BATCH: usize = 4;
const STEPS: usize = 7;
const FEATURES: usize = 3;
const STATE: usize = 5;

/// Weights that need no file: the same on every device.
fn direction(name: &str, device: &Device) -> Result<GRU> {
    let wave = |rows: usize, columns: usize, phase: f64| {
        dml_cuda_candle::arange(0f32, (rows * columns) as f32, device)?
            .affine(0.7, phase)?
            .sin()?
            .reshape((rows, columns))
    };
    let phase = name.len() as f64;
    let tensors = [
        (format!("{name}.weight_ih_l0"), wave(3 * STATE, FEATURES, phase)?),
        (format!("{name}.weight_hh_l0"), wave(3 * STATE, STATE, phase + 1.0)?),
        (format!("{name}.bias_ih_l0"), wave(1, 3 * STATE, phase + 2.0)?.squeeze(0)?),
        (format!("{name}.bias_hh_l0"), wave(1, 3 * STATE, phase + 3.0)?.squeeze(0)?),
    ];
    let weights = VarBuilder::from_tensors(tensors.into_iter().collect(), DType::F32, device);
    gru(FEATURES, STATE, GRUConfig::default(), weights.pp(name))
}

/// The states of both directions, [batch, steps, 2 × state].
fn bidirectional(x: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let run = |gru: GRU, x: &Tensor| -> Result<Tensor> {
        let states: Vec<Tensor> = gru.seq(x)?.iter().map(|state| state.h().clone()).collect();
        Tensor::stack(&states, 1)
    };
    let forward = run(direction("forward", x.device())?, x)?;
    let backward = run(direction("backward", x.device())?, &reverse_subsequences(x, lengths, 1)?)?;
    Tensor::cat(&[forward, reverse_subsequences(&backward, lengths, 1)?], 2)
}

fn run(device: &Device) -> Result<Tensor> {
    let x = dml_cuda_candle::arange_step(0f32, 2.1, 0.025, device)?.sin()?.reshape((BATCH, STEPS, FEATURES))?;
    let lengths = Tensor::new(&[7u32, 4, 1, 5], device)?.reshape((BATCH, 1, 1))?;
    bidirectional(&x, &lengths)
}

fn main() -> Result<()> {
    let states = run(&Device::Cpu)?;
    println!("states {:?} on the CPU, their sum {}", states.dims(), states.sum_all()?.to_scalar::<f32>()?);
    // The backward state of a sequence's last step has seen that step alone, whatever the padding holds.
    let last = states.get(2)?.get(0)?.narrow(0, STATE, STATE)?.to_vec1::<f32>()?;
    println!("backward state of the sequence of length 1: {last:?}");
    if cfg!(feature = "cuda") {
        let on_gpu = run(&Device::new_cuda(0)?)?.to_device(&Device::Cpu)?;
        let difference = (on_gpu - states)?.abs()?.max_all()?.to_scalar::<f32>()?;
        println!("largest difference on the GPU, by other matrix products: {difference:e}");
        assert!(difference < 1e-4);
    }
    Ok(())
}
