//! The device that `-a` names, and what `-s` and `-S` print about devices and versions.
//!
//! | `-a` | device |
//! | --- | --- |
//! | not given | the first GPU, or the CPU if there is no GPU |
//! | `cpu` | the CPU |
//! | a number | the GPU with this ordinal |
//! | a text | the first GPU that has it in its name |

use dml_cuda::{Adapter, Device, DeviceError, DirectMlVersion, Properties};
use serde_json::json;

use crate::options::Format;
use crate::out::shown;
use crate::run::events::{cuda_version, tell};

/// The device that `adapter` names, with the compile options of the environment.
pub fn choose_device(adapter: &Option<String>) -> Result<Device, String> {
    let ordinal = match adapter.as_deref().unwrap_or_default() {
        "" => match Device::cuda_status() {
            Ok(count) => (count > 0).then_some(0),
            Err(DeviceError::NoDriver) => None,
            // A GPU may be there, which the right library would drive.
            Err(error @ DeviceError::Stub { .. }) => return Err(error.to_string()),
            Err(error) => return Err(format!("{error}; -a cpu runs on the CPU")),
        },
        name if name.eq_ignore_ascii_case("cpu") => None,
        name => Some(name.parse().or_else(|_| ordinal_of(name))?),
    };
    let device = match ordinal {
        Some(ordinal) => Device::cuda(ordinal).map_err(|error| error.to_string())?,
        None => Device::cpu(),
    };
    device.with_environment().map_err(|error| error.to_string())
}

/// The GPU of a command that times kernels. Its errors do not advise to use the CPU. Without a GPU, the error of the first
/// one says why.
pub fn choose_gpu(adapter: &Option<String>) -> Result<Device, String> {
    let device = choose_device(&adapter.clone().or(Some("0".to_owned()))).map_err(|error| {
        error
            .replace(", or use the CPU device", "")
            .replace(", or cpu", "")
    })?;
    match device.ordinal() {
        Some(_) => Ok(device),
        None => Err(format!(
            "kernels can be timed only on a GPU, but the device is {device}"
        )),
    }
}

/// The first GPU that has this text in its name.
fn ordinal_of(name: &str) -> Result<usize, String> {
    let adapters = Device::cuda_adapters().map_err(|error| error.to_string())?;
    let mut names = Vec::new();
    for adapter in &adapters {
        if adapter.name.to_lowercase().contains(&name.to_lowercase()) {
            return Ok(adapter.ordinal);
        }
        names.push(adapter.name.as_str());
    }
    let list = if names.is_empty() {
        "this machine has none".to_owned()
    } else {
        names.join(", ")
    };
    Err(format!(
        "the adapter is '{}', but must be a number, part of the name of a GPU ({list}), or cpu",
        shown(name)
    ))
}

/// Prints the GPUs and the CPU.
pub fn show_adapters(format: Format) -> Result<(), String> {
    for Adapter {
        name,
        ordinal,
        properties,
        ..
    } in Device::cuda_adapters().map_err(|error| error.to_string())?
    {
        let driver = cuda_version(&properties);
        let Properties {
            compute_capability: (major, minor),
            multiprocessors,
            total_memory,
            ..
        } = properties;
        // Units of 2³⁰ bytes.
        let gigabytes = total_memory as f64 / f64::from(1 << 30);
        let text = format!(
            "{name}\n-Ordinal: {ordinal}\n-Hardware: true\n-Driver: {driver}\n-Compute Capability: {major}.{minor}\n\
             -Multiprocessors: {multiprocessors}\n-Dedicated Adapter Memory: {gigabytes:.2} GB\n"
        );
        let event = json!({
            "event": "adapter",
            "name": name,
            "ordinal": ordinal,
            "hardware": true,
            "driver": driver,
            "compute_capability": format!("{major}.{minor}"),
            "multiprocessors": multiprocessors,
            "memory_bytes": total_memory,
        });
        tell(format, &event, text)?;
    }
    tell(
        format,
        &json!({ "event": "adapter", "name": "CPU", "hardware": false }),
        "CPU\n-Hardware: false",
    )
}

/// Prints the versions of what the answers depend on.
pub fn show_dependencies(format: Format) -> Result<(), String> {
    let recorded: Vec<String> = DirectMlVersion::recorded()
        .map(|version| version.to_string())
        .collect();
    let driver = match Device::cuda_status() {
        Ok(1) => "1 GPU".to_owned(),
        Ok(count) => format!("{count} GPUs"),
        Err(error) => error.to_string(),
    };
    let (version, answered) = (env!("CARGO_PKG_VERSION"), recorded.join(", "));
    let text = format!(
        "dml-cuda {version}\n-DirectML versions it answers for: {answered}\n-CUDA driver: {driver}"
    );
    let event = json!({ "event": "dependencies", "version": version, "directml": recorded, "driver": driver });
    tell(format, &event, text)
}
