//! A bidirectional GRU over padded sequences: the backward direction runs over the sequences reversed, each by its own
//! length, and its states are reversed back, so that padding never comes before what is real.

use candle_core::{DType, Device, IndexOp, Result, Tensor};
use candle_nn::rnn::{gru, GRUConfig, GRU, RNN};
use candle_nn::{VarBuilder, VarMap};
use dml_cuda_candle::reverse_subsequences;

const LENGTHS: [u32; 4] = [7, 4, 1, 5];
const STEPS: usize = 7;
const FEATURES: usize = 3;
const STATE: usize = 5;

/// The states of both directions, [batch, steps, 2 × state].
fn bidirectional([forward, backward]: &[GRU; 2], x: &Tensor, lengths: &Tensor) -> Result<Tensor> {
    let run = |gru: &GRU, x: &Tensor| -> Result<Tensor> {
        let states: Vec<Tensor> = gru.seq(x)?.iter().map(|state| state.h().clone()).collect();
        Tensor::stack(&states, 1)
    };
    let backward = run(backward, &reverse_subsequences(x, lengths, 1)?)?;
    Tensor::cat(
        &[
            run(forward, x)?,
            reverse_subsequences(&backward, lengths, 1)?,
        ],
        2,
    )
}

fn main() -> Result<()> {
    let device = Device::cuda_if_available(0)?;
    let variables = VarMap::new();
    let weights = VarBuilder::from_varmap(&variables, DType::F32, &device);
    let direction = |name| gru(FEATURES, STATE, GRUConfig::default(), weights.pp(name));
    let directions = [direction("forward")?, direction("backward")?];
    let x = Tensor::randn(0f32, 1., (LENGTHS.len(), STEPS, FEATURES), &device)?;
    let lengths = Tensor::new(&LENGTHS, &device)?.reshape((LENGTHS.len(), 1, 1))?;
    let states = bidirectional(&directions, &x, &lengths)?;
    println!("states {:?} on {:?}", states.dims(), device.location());
    // A sequence alone, without its padding, has the same states.
    for (n, length) in LENGTHS.into_iter().enumerate() {
        let real = (n..n + 1, ..length as usize);
        let alone = bidirectional(
            &directions,
            &x.i(real.clone())?,
            &Tensor::new(&[length], &device)?,
        )?;
        let difference = (alone - states.i(real)?)?
            .abs()?
            .max_all()?
            .to_scalar::<f32>()?;
        println!("length {length}: largest difference to the sequence alone {difference:e}");
        assert!(difference < 1e-4);
    }
    Ok(())
}
