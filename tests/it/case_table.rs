//! Runs the case table on every device through the safe API: the bytes equal the oracle's, and guards and gaps are
//! untouched.

use std::collections::BTreeSet;

use dml_cuda::TensorDataType::{Float16, UInt32, UInt8};
use dml_cuda::{BufferTensorDesc, Device, GpuTarget, ReverseSubsequencesDesc};
use dml_cuda_testing::{assert_same, cases, devices, run};

#[test]
fn the_case_table_is_right_on_every_device() {
    let table = cases::all();
    assert_eq!(table.len(), 5128);
    let expected: Vec<Vec<u8>> = table.iter().map(cases::Case::expected).collect();
    for device in devices("the_case_table_is_right_on_every_device") {
        for (case, expected) in table.iter().zip(&expected) {
            assert_same(&device, &case.desc, &run(&device, &case.desc, &case.inputs(), case.in_place), expected);
        }
        eprintln!("{} cases are right on {device}", table.len());
    }
}

/// A launch for fewer pointers may be another variant of the same kernel.
#[test]
fn an_explanation_has_the_estimates_of_all_launches() {
    let mut variants = 0;
    for (data_type, sizes) in [(Float16, [2, 1024, 255]), (Float16, [2, 4096, 1023]), (UInt8, [3, 1000, 999])] {
        let tensor = BufferTensorDesc::packed(data_type, &sizes);
        let sequence_lengths_tensor = BufferTensorDesc::packed(UInt32, &[1, sizes[1], sizes[2]]);
        let (input_tensor, output_tensor) = (tensor.clone(), tensor);
        let desc = ReverseSubsequencesDesc { input_tensor, sequence_lengths_tensor, output_tensor, axis: 0 };
        let operator = Device::cpu().create_operator(desc).expect("a valid operator");
        for mode in operator.explain(&"h100".parse().expect("a target")).modes {
            assert!(mode.kernels.is_sorted_by_key(|kernel| kernel.estimate), "{mode:?}");
            for launch in &mode.launches {
                // Launches with other stores are of other variants.
                let alike = mode.launches.iter().filter(|of| of.kernel == launch.kernel);
                let stores: BTreeSet<u32> = alike.map(|of| of.access_bytes).collect();
                let estimates = mode.kernels.iter().filter(|kernel| kernel.kernel == launch.kernel).count();
                assert!(stores.len() <= estimates, "{mode:?}");
                variants += usize::from(stores.len() > 1);
            }
        }
        // No GPU has none of them, but the fields are public.
        let mut target: GpuTarget = "h100".parse().expect("a target");
        for figure in [&mut target.multiprocessors, &mut target.bandwidth, &mut target.clock, &mut target.threads] {
            *figure = 0;
        }
        assert!(!operator.explain(&target).modes[0].launches.is_empty());
    }
    assert!(variants > 0);
}
