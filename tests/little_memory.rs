//! A process with little memory: an allocation as large as a tensor that fails is an error, and nothing aborts.
#![cfg(unix)]

use std::process::Command;

use dml_cuda::{fill_value_sequence, reverse_subsequences, BufferError, Device, Error};

/// KiB of addresses that the process may have, and bytes of a tensor of which two do not fit.
const LIMIT: usize = 1 << 20;
const TENSOR: usize = 600 << 20;

/// Whether this is the process with the limit. Otherwise starts it for the same test, which must pass there.
fn has_little(test: &str) -> bool {
    if std::env::var_os("LITTLE_MEMORY").is_some() {
        return true;
    }
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        &format!("ulimit -v {LIMIT}; exec \"$0\" --exact {test} --nocapture"),
    ]);
    let output = shell
        .arg(std::env::current_exe().expect("this program"))
        .env("LITTLE_MEMORY", "1")
        .output()
        .expect("sh");
    let [out, err] =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{test}: {}\n{out}{err}",
        output.status
    );
    false
}

#[test]
fn results_that_do_not_fit_are_errors() {
    if !has_little("results_that_do_not_fit_are_errors") {
        return;
    }
    let device = Device::cpu();
    let refused = |error: BufferError| {
        assert!(
            matches!(error, BufferError::OutOfMemory { backend: "cpu", .. }),
            "{error}"
        );
    };
    let buffer = device.create_buffer(TENSOR as u64).expect("one fits");
    refused(buffer.to_vec::<u8>().expect_err("too little"));
    refused(
        buffer
            .read_elements::<u64>(TENSOR / 8)
            .expect_err("too little"),
    );
    refused(device.create_buffer(TENSOR as u64).expect_err("too little"));
    drop(buffer);
    let sizes = [TENSOR as u32];
    let Err(Error::Buffer(error)) = fill_value_sequence(&device, &sizes, 0u8, 1u8) else {
        panic!("it fits")
    };
    refused(error);
    let input = vec![0u8; TENSOR];
    let Err(Error::Buffer(error)) = reverse_subsequences(&device, &input, &sizes, 0, &[5u32])
    else {
        panic!("it fits")
    };
    refused(error);
}
