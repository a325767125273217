//! Whether the resources of a model fit, before any of them is filled.

use dml_cuda::Device;

use crate::model::resource::Resource;

/// Fails if the resources together need more memory than the device has, or the host has free.
pub fn check(resources: &[(String, Resource)], device: &Device) -> Result<(), String> {
    let needed = resources.iter().fold(0u64, |sum, (_, resource)| sum.saturating_add(resource.size_in_bytes));
    let (most, place) = match device.cuda_properties() {
        Some(properties) => (properties.total_memory, format!("the memory of {}", device.name())),
        // What was read is freed resource by resource.
        None => (free(needed), "what this machine has free".to_owned()),
    };
    if needed > most {
        return Err(format!("the resources are {needed} bytes together, must be at most {most}, {place}"));
    }
    Ok(())
}

/// Bytes that the host can hand out, as far as they are wanted.
fn free(wanted: u64) -> u64 {
    let known = available().unwrap_or(u64::MAX);
    // A limit of the process, which no file tells.
    let fits = |bytes: u64| usize::try_from(bytes).is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if wanted > known || fits(wanted) {
        return known;
    }
    // A power of two that fits.
    (20..63).rev().map(|bit| 1 << bit).find(|&bytes| fits(bytes)).unwrap_or(0).min(known)
}

/// What Linux says is available, to the machine and to this process's group.
fn available() -> Option<u64> {
    let number = |path: &str| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let machine = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kibibytes = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = kibibytes.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10;
    let group = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    Some(machine.min(group.map_or(u64::MAX, |(most, now)| most.saturating_sub(now))))
}
