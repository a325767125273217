//! Checks whether the resources of a model fit, before any of them is filled.
//!
//! On the CPU device, Linux may hand out more memory than there is, and end the process when it is used. A model with
//! too large resources would then be killed after minutes, without a message. On a GPU the sum of all sizes is compared with
//! its memory. On the CPU it must be below each of these:
//!
//! - what the machine has available,
//! - what the cgroups of this process leave (`cgroup`),
//! - what the allocator can have, which a limit such as `ulimit -v` lowers.

mod cgroup;

use dml_cuda::Device;

use crate::model::resource::Resource;

/// Bytes of a resource that are printed or written at a time.
pub const PART: u64 = 1 << 20;

/// How a message names the machine's memory.
const MACHINE: &str = "what this machine has free";

/// Bytes that can be used at most, and what limits them, as a message names it.
pub struct Limit {
    bytes: u64,
    place: String,
}

/// Fails if the resources together need more memory than the device has, or the host has free.
pub fn check(resources: &[(String, Resource)], device: &Device) -> Result<(), String> {
    let mut needed = 0u64;
    for (_, resource) in resources {
        needed = needed.saturating_add(resource.size_in_bytes);
    }
    let Limit { bytes: most, place } = match device.cuda_properties() {
        Some(properties) => Limit {
            bytes: properties.total_memory,
            place: format!("the memory of {}", device.name()),
        },
        // What was read is freed resource by resource. A command has one part beside the resources.
        None => {
            let free = free_on_host(needed.saturating_add(PART));
            Limit {
                bytes: free.bytes.saturating_sub(PART),
                ..free
            }
        }
    };
    if needed > most {
        return Err(format!(
            "the resources are {needed} bytes together, but must be at most {most}, {place}"
        ));
    }
    Ok(())
}

/// The memory that the host can hand out, as far as it is wanted.
fn free_on_host(wanted: u64) -> Limit {
    let known = cgroup::available("").unwrap_or(Limit {
        bytes: u64::MAX,
        place: MACHINE.to_owned(),
    });
    // The process may have a limit that no file tells (`ulimit -v`).
    if wanted > known.bytes || can_allocate(wanted) {
        return known;
    }
    // The largest power of two that fits is good enough for a message.
    let mut powers = (20..63).rev().map(|bit| 1 << bit);
    let largest = powers.find(|&bytes| can_allocate(bytes));
    Limit {
        bytes: largest.unwrap_or(0).min(known.bytes),
        place: MACHINE.to_owned(),
    }
}

/// Whether the allocator has a range of addresses of this size. It is not written, and freed at once.
fn can_allocate(bytes: u64) -> bool {
    match usize::try_from(bytes) {
        Ok(bytes) => Vec::<u8>::new().try_reserve_exact(bytes).is_ok(),
        Err(_) => false,
    }
}
