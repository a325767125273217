//! The operators on the CPU and, with the feature `cuda`, on the first GPU: against a plain loop.

use candle_core::{DType, Device, IndexOp, Result, Tensor, Var, D};
use dml_cuda_candle::{
    arange, arange_step, reverse_subsequences, reverse_subsequences_inplace, ReverseSubsequences,
};
use half::{bf16, f16};

fn devices() -> Vec<Device> {
    let mut devices = vec![Device::Cpu];
    if cfg!(feature = "cuda") {
        devices.push(Device::new_cuda(0).expect("a GPU is there"));
    }
    devices
}

const TYPES: [DType; 10] = {
    use DType::*;
    [U8, U32, I16, I32, I64, BF16, F16, F32, F64, F8E4M3]
};

/// x reversed along an axis by a plain loop over single elements, as F64 on the CPU.
fn plain(x: &Tensor, lengths: &Tensor, axis: usize) -> Result<Vec<f64>> {
    let mut lengths_sizes = x.dims().to_vec();
    lengths_sizes[axis] = 1;
    let lengths = values(
        &lengths
            .broadcast_as(lengths_sizes.as_slice())?
            .contiguous()?,
    );
    let x_values = values(x);
    let (outer, size): (usize, usize) = (x.dims()[..axis].iter().product(), x.dims()[axis]);
    let inner: usize = x.dims()[axis + 1..].iter().product();
    let mut reversed = x_values.clone();
    for o in 0..outer {
        for i in 0..inner {
            let length = (lengths[o * inner + i] as usize).min(size);
            for t in 0..length {
                reversed[(o * size + t) * inner + i] =
                    x_values[(o * size + length - 1 - t) * inner + i];
            }
        }
    }
    Ok(reversed)
}

fn values(x: &Tensor) -> Vec<f64> {
    let cpu = x.to_device(&Device::Cpu).expect("on the CPU");
    // candle's way from F8E4M3 to F64 overflows the stack.
    let cpu = if cpu.dtype() == DType::F8E4M3 {
        cpu.to_dtype(DType::F32).expect("cast")
    } else {
        cpu
    };
    let x = cpu.to_dtype(DType::F64).and_then(|x| x.flatten_all());
    x.and_then(|x| x.to_vec1()).expect("values")
}

/// 0, 1, … of a shape; small enough for every type.
fn counted(shape: &[usize], dtype: DType, device: &Device) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| (i % 113) as f32).collect();
    let x = Tensor::from_vec(values, shape, &Device::Cpu).and_then(|x| x.to_dtype(dtype));
    x.and_then(|x| x.to_device(device)).expect("a tensor")
}

fn lengths(shape: &[usize], most: usize, device: &Device) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<u32> = (0..count).map(|i| (i * 7 % (most + 2)) as u32).collect();
    Tensor::from_vec(values, shape, device).expect("lengths")
}

#[test]
fn every_type_axis_and_layout_is_reversed() {
    for device in devices() {
        for dtype in TYPES {
            for axis in 0..3 {
                let shape = [3, 10, 5];
                let x = counted(&shape, dtype, &device);
                // Packed, transposed, a view that begins inside, and broadcast.
                let narrow = counted(&[4, 10, 9], dtype, &device)
                    .i((1.., .., 2..7))
                    .expect("a view");
                let broadcast = counted(&[1, 10, 1], dtype, &device)
                    .broadcast_as(&shape)
                    .expect("a view");
                let transposed = counted(&[5, 3, 10], dtype, &device)
                    .permute((1, 2, 0))
                    .expect("a view");
                for x in [x, narrow, broadcast, transposed] {
                    let mut full = shape;
                    full[axis] = 1;
                    for lengths_sizes in [
                        full.to_vec(),
                        vec![1, 1, 1],
                        if axis == 2 { vec![10, 1] } else { vec![1] },
                    ] {
                        let on_cpu = lengths(&lengths_sizes, shape[axis], &Device::Cpu);
                        for length_type in [DType::U32, DType::I32, DType::I64] {
                            let lengths = on_cpu
                                .to_dtype(length_type)
                                .and_then(|lengths| lengths.to_device(&device));
                            let lengths = lengths.expect("lengths");
                            let reversed = reverse_subsequences(&x, &lengths, axis).expect("right");
                            assert!(reversed.dtype() == dtype && reversed.is_contiguous());
                            let required = plain(&x, &lengths, axis).expect("plain");
                            assert_eq!(
                                values(&reversed),
                                required,
                                "{device:?} {dtype:?} {axis} {lengths_sizes:?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn in_place_changes_the_view_and_nothing_else() {
    for device in devices() {
        for dtype in TYPES {
            let whole = counted(&[4, 10, 9], dtype, &device);
            let before = values(&whole);
            let view = whole.i((1..3, .., 2..7)).expect("a view");
            let lengths = lengths(&[2, 1, 1], 10, &device);
            let required = plain(&view, &lengths, 1).expect("plain");
            reverse_subsequences_inplace(&view, &lengths, 1).expect("right");
            assert_eq!(values(&view), required);
            let outside = |n: usize| !(1..3).contains(&(n / 90)) || !(2..7).contains(&(n % 9));
            let after = values(&whole);
            assert!(
                (0..before.len())
                    .filter(|&n| outside(n))
                    .all(|n| before[n] == after[n]),
                "{dtype:?}"
            );
        }
    }
}

#[test]
fn a_gradient_is_reversed_by_the_same_lengths() {
    for device in devices() {
        let x = Var::from_tensor(&counted(&[2, 4], DType::F32, &device)).expect("a variable");
        let lengths = Tensor::new(&[[3u32], [2]], &device).expect("lengths");
        let weights =
            Tensor::new(&[[1f32, 2., 3., 4.], [5., 6., 7., 8.]], &device).expect("weights");
        let loss = (reverse_subsequences(&x, &lengths, D::Minus1).expect("right") * weights)
            .expect("product");
        let gradients = loss
            .sum_all()
            .and_then(|loss| loss.backward())
            .expect("gradients");
        assert_eq!(
            values(gradients.get(&x).expect("of x")),
            [3., 2., 1., 4., 6., 5., 7., 8.]
        );
    }
}

#[test]
fn many_dimensions_fold_and_tensors_without_elements_pass() {
    for device in devices() {
        let x = counted(&[2, 1, 2, 1, 2, 2, 3, 1, 2, 2], DType::F32, &device);
        let lengths = lengths(&[2, 1, 2, 1, 2, 2, 1, 1, 2, 2], 3, &device);
        let reversed = reverse_subsequences(&x, &lengths, 6).expect("it folds");
        assert_eq!(values(&reversed), plain(&x, &lengths, 6).expect("plain"));
        for shape in [[0, 3], [3, 0]] {
            let x = Tensor::zeros(&shape, DType::F32, &device).expect("no elements");
            let lengths = Tensor::zeros((1, 1), DType::I64, &device).expect("lengths");
            assert_eq!(
                reverse_subsequences(&x, &lengths, 1).expect("right").dims(),
                shape
            );
            reverse_subsequences_inplace(&x, &lengths, 1).expect("right");
        }
        assert_eq!(arange(5u8, 5, &device).expect("nothing").dims(), [0]);
    }
}

#[test]
fn sequences_are_rounded_once_and_do_not_drift() {
    for device in devices() {
        let floats = arange_step(0f32, 1e5, 0.1, &device)
            .expect("right")
            .to_vec1::<f32>()
            .expect("values");
        assert_eq!(floats.len(), 1_000_000);
        assert!(floats
            .iter()
            .enumerate()
            .all(|(i, &value)| value == (i as f32).mul_add(0.1, 0.0)));
        let doubles = arange_step(1f64, -1e3, -0.3, &device)
            .expect("right")
            .to_vec1::<f64>()
            .expect("values");
        assert_eq!(doubles.len(), 3337);
        assert!(doubles
            .iter()
            .enumerate()
            .all(|(i, &value)| value == (i as f64).mul_add(-0.3, 1.0)));
        let halves =
            arange_step(f16::ONE, f16::from_f32(2.), f16::from_f32(0.25), &device).expect("right");
        assert_eq!(
            (halves.dtype(), values(&halves)),
            (DType::F16, vec![1., 1.25, 1.5, 1.75])
        );
        let brain = arange(bf16::ZERO, bf16::from_f32(3.), &device).expect("right");
        assert_eq!(
            (brain.dtype(), values(&brain)),
            (DType::BF16, vec![0., 1., 2.])
        );
        let bytes = arange_step(250u8, 255, 2, &device).expect("right");
        assert_eq!(bytes.to_vec1::<u8>().expect("values"), [250, 252, 254]);
        let down = arange_step(5i16, -2, -3, &device).expect("right");
        assert_eq!(down.to_vec1::<i16>().expect("values"), [5, 2, -1]);
        let far = arange_step(i64::MIN, i64::MIN + 5, 4, &device).expect("right");
        assert_eq!(
            far.to_vec1::<i64>().expect("values"),
            [i64::MIN, i64::MIN + 4]
        );
        assert_eq!(
            arange(3u32, 6, &device)
                .expect("right")
                .to_vec1::<u32>()
                .expect("values"),
            [3, 4, 5]
        );
        assert_eq!(
            arange(-1i32, 2, &device)
                .expect("right")
                .to_vec1::<i32>()
                .expect("values"),
            [-1, 0, 1]
        );
    }
}

#[test]
fn wrong_arguments_are_said_and_change_nothing() {
    for device in devices() {
        let x = counted(&[2, 3], DType::F32, &device);
        let before = values(&x);
        let refused = |lengths: &Tensor, axis: usize, words: &str| {
            let operator = ReverseSubsequences { axis };
            for error in [
                reverse_subsequences(&x, lengths, axis).map(drop),
                reverse_subsequences_inplace(&x, lengths, axis),
                x.apply_op2(lengths, operator).map(drop),
                x.inplace_op2(lengths, &operator),
            ] {
                let found = error.expect_err("wrong").to_string();
                assert!(found.contains(words), "{found}");
            }
        };
        let tensor = |shape: &[usize], dtype| Tensor::ones(shape, dtype, &device).expect("lengths");
        refused(
            &tensor(&[2], DType::U32),
            1,
            "lengths has shape [2], but must broadcast to [2, 1], x's with 1 at axis",
        );
        refused(
            &tensor(&[2, 1], DType::F32),
            1,
            "lengths has F32, but must have integers of 32 or 64 bits",
        );
        if device.is_cpu() {
            let negative = Tensor::new(&[[1i32], [-4]], &device).expect("lengths");
            for dtype in [DType::I32, DType::I64] {
                let negative = negative.to_dtype(dtype).expect("integers");
                refused(&negative, 1, "lengths[1, 0] is -4, but must be at least 0");
            }
        } else {
            refused(
                &Tensor::new(&[[1u32], [2]], &Device::Cpu).expect("lengths"),
                1,
                "device mismatch",
            );
            let negative = Tensor::new(&[[-1i64], [-4]], &device).expect("lengths");
            let reversed =
                reverse_subsequences(&x, &negative, 1).expect("it counts as the axis size");
            assert_eq!(values(&reversed), [2., 1., 0., 5., 4., 3.]);
        }
        assert_eq!(values(&x), before);
        let broadcast = counted(&[2, 1], DType::F32, &device)
            .broadcast_as((2, 3))
            .expect("a view");
        assert!(reverse_subsequences_inplace(&broadcast, &tensor(&[2, 1], DType::U32), 1).is_err());
        let said = |result: Result<Tensor>| result.expect_err("wrong").to_string();
        let one = tensor(&[1], DType::U32);
        assert!(said(reverse_subsequences(&x, &one, 2)).contains("dimension index 2 out of range"));
        for axis in [2, usize::MAX] {
            let words = said(x.apply_op2(&one, ReverseSubsequences { axis }));
            assert!(
                words.contains("must be from -2 to 1, the dimensions of x"),
                "{words}"
            );
        }
        let empty = Tensor::zeros((2, 0), DType::F32, &device).expect("no elements");
        let words = said(reverse_subsequences(
            &empty,
            &tensor(&[0, 1], DType::U32),
            1,
        ));
        assert!(
            words.contains("lengths has shape [0, 1], but must broadcast to [2, 1]"),
            "{words}"
        );
        assert!(reverse_subsequences_inplace(&empty, &tensor(&[3], DType::U32), 1).is_err());
        let tracked = Var::from_tensor(&x).expect("a variable");
        for x in [
            tracked.as_tensor().clone(),
            (tracked.as_tensor() * 2.).expect("doubles"),
        ] {
            let found = reverse_subsequences_inplace(&x, &tensor(&[2, 1], DType::U32), 1)
                .expect_err("tracked");
            assert!(
                found
                    .to_string()
                    .contains("x is tracked by backpropagation"),
                "{found}"
            );
        }
        let eighth = float8::F8E4M3::from_f32(1.);
        assert!(said(arange_step(eighth, eighth, eighth, &device))
            .contains("the dtype of arange is F8E4M3, but must be u8"));
        assert!(said(arange_step(0i32, 5, 0, &device)).contains("the step of arange is 0"));
        assert!(said(arange(0f32, f32::INFINITY, &device))
            .contains("the end of arange is inf, but must be finite"));
        assert!(said(arange(0i64, 1 << 32, &device))
            .contains("has 4294967296 elements, but must have fewer than 2³²"));
    }
}
