//! Random descriptors, strides, alignments and lengths, copying and in place, compared with the oracle.
//!
//! `RANDOM_CASES=n` sets the number of descriptors. The test prints what it ran.

use dml_cuda_testing::descriptors::{check, Bytes};
use dml_cuda_testing::{devices, Random};

#[test]
fn random_descriptors_have_the_oracles_verdicts_and_bytes() {
    let asked = std::env::var("RANDOM_CASES")
        .ok()
        .and_then(|n| n.parse().ok());
    for device in devices("random_descriptors_have_the_oracles_verdicts_and_bytes") {
        let count = asked.unwrap_or(if device.ordinal().is_some() {
            10_000
        } else {
            40_000
        });
        let (mut accepted, mut rejected) = (0, 0);
        for seed in 0..count {
            match check(&device, &Bytes(&Random(seed).bytes(512)).desc(), seed) {
                Some(true) => accepted += 1,
                Some(false) => rejected += 1,
                None => {}
            }
        }
        eprintln!(
            "{device}: {accepted} of {count} random descriptors run, and {rejected} are rejected, as the oracle says"
        );
        assert!(
            accepted * 5 > count && rejected * 5 > count,
            "{accepted} {rejected}"
        );
    }
}
