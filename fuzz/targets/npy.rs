//! Any bytes as a .npy file: an answer, and what was read is read again from what is written.
#![no_main]

use dml_cuda_model::npy;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(read) = npy::read(bytes) {
        assert!(read.elements.len() <= bytes.len());
        let count = read.elements.len() as u64 / u64::from(read.data_type.size_in_bits() / 8);
        let written = npy::write(read.data_type, &[count], &read.elements).expect("whole bytes");
        assert_eq!(
            npy::read(&written),
            Ok(npy::Array {
                is_bool: false,
                shape: vec![count],
                is_big_endian: false,
                is_fortran: false,
                behind: 0,
                ..read
            })
        );
    }
});
