//! Any bytes as a .npy file: an answer, and what was read is read again from what is written.
#![no_main]

use dml_cuda_cli::model::npy;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok((data_type, elements)) = npy::read(bytes) {
        assert!(elements.len() <= bytes.len());
        let count = elements.len() as u64 / u64::from(data_type.size_in_bits() / 8);
        let written = npy::write(data_type, &[count], &elements).expect("whole bytes");
        assert_eq!(npy::read(&written), Ok((data_type, elements)));
    }
});
