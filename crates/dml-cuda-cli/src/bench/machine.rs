//! Describes the machine that a bench runs on, for a reader who asks months later what was timed.
//!
//! Everything is optional: a fact that this machine does not tell is empty or general, such as `x86_64` for a processor.
//! On Linux the facts come from files, on Windows from its own commands, and those about an NVIDIA GPU from nvidia-smi if
//! it is installed.
//!
//! The clocks of a GPU are read while it works, because an idle GPU lowers them:
//!
//! ```text
//! a thread      works on the GPU ───────────────────> ends
//! this thread   nvidia-smi, nvidia-smi, nvidia-smi    the highest clocks count
//! ```

use std::process::Command;
use std::time::Duration;

use super::process;
use super::results::Machine;

/// The machine as this process sees it, and the command line without folders.
pub fn host() -> Machine {
    let words: Vec<String> = std::env::args_os()
        .map(|word| file_name(&word.to_string_lossy()))
        .collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Machine {
        host: format!("{}, {cores} cores", processor()),
        operating_system: operating_system(),
        date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        command: words.join(" "),
        ..Machine::default()
    }
}

/// A word of the command line without its folders, in quotes if it would look like several words.
fn file_name(word: &str) -> String {
    match word.rsplit(['/', '\\']).next().unwrap_or_default() {
        name if name.contains(' ') || name.is_empty() => format!("\"{name}\""),
        name => name.to_owned(),
    }
}

/// The processor's name as Linux or Windows knows it, or else its architecture.
fn processor() -> String {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    for line in processors.lines() {
        if let Some((_, name)) = line
            .strip_prefix("model name")
            .and_then(|rest| rest.split_once(": "))
        {
            return name.to_owned();
        }
    }
    std::env::var("PROCESSOR_IDENTIFIER").unwrap_or(std::env::consts::ARCH.to_owned())
}

/// The name and version of the operating system, or else its name.
fn operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let mut name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"').to_owned());
    if name.is_none() && cfg!(windows) {
        // Such as `Microsoft Windows [Version 10.0.20348.4]`.
        let version = printed(Command::new("cmd").args(["/c", "ver"]));
        name = version.map(|version| version.trim().to_owned());
    }
    match name {
        Some(name) if !name.is_empty() => name,
        _ => std::env::consts::OS.to_owned(),
    }
}

/// A GPU as NVIDIA's own tool describes it.
pub struct NvidiaGpu {
    pub name: String,
    pub driver: String,
    /// The highest clocks that were seen while it worked.
    pub clocks: String,
}

/// Describes the GPU at a PCI address while it does `work`. None if NVIDIA's tool is not installed or does not know it.
pub fn nvidia(pci: &str, work: impl FnOnce() + Send) -> Option<NvidiaGpu> {
    let query = [
        "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,driver_version,name",
        "--format=csv,noheader",
    ];
    if pci.is_empty() {
        return None;
    }
    let ask = || printed(Command::new("nvidia-smi").args(query).args(["-i", pci]));
    let mut said = vec![ask()?];
    std::thread::scope(|scope| {
        // Without a thread, the clocks are those of an idle GPU.
        let Ok(work) = std::thread::Builder::new().spawn_scoped(scope, work) else {
            return;
        };
        while !work.is_finished() {
            said.extend(ask());
        }
    });
    let highest = said.iter().max_by_key(|text| megahertz(text))?;
    let values: Vec<&str> = highest.trim().splitn(5, ", ").collect();
    let [sm, memory, most, driver, name] = values[..] else {
        return None;
    };
    Some(NvidiaGpu {
        name: name.to_owned(),
        driver: driver.to_owned(),
        clocks: format!("SM {sm} of at most {most}, memory {memory}"),
    })
}

/// The clock at the beginning of a line such as `1980 MHz, 2619 MHz, …`.
fn megahertz(text: &str) -> Option<u32> {
    text.split(' ').next()?.parse().ok()
}

/// The adapters that Windows names, with their drivers.
pub fn windows_adapters() -> Option<String> {
    let query = "Get-CimInstance Win32_VideoController | ForEach-Object { $_.Name + ', driver ' + $_.DriverVersion }";
    let text = printed(Command::new("powershell").args(["-NoProfile", "-Command", query]))
        .filter(|text| cfg!(windows) && !text.trim().is_empty())?;
    Some(text.lines().map(str::trim).collect::<Vec<_>>().join("; "))
}

/// What a program prints, if it is there and succeeds.
fn printed(command: &mut Command) -> Option<String> {
    let ended = process::run_to_end(command, Duration::from_secs(60))
        .ok()
        .filter(|ended| ended.status.success())?;
    Some(ended.stdout)
}
