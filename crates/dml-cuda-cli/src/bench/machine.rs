//! Describes the machine of a run.

use std::process::Command;
use std::time::Duration;

use super::process;
use super::results::Machine;

/// The machine as this process sees it, and the command line without folders.
pub fn host() -> Machine {
    let file_name = |word: String| match word.rsplit(['/', '\\']).next().unwrap_or_default() {
        name if name.contains(' ') || name.is_empty() => format!("\"{name}\""),
        name => name.to_owned(),
    };
    let words: Vec<String> = std::env::args_os()
        .map(|word| file_name(word.to_string_lossy().into_owned()))
        .collect();
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let (processors, release) = (read("/proc/cpuinfo"), read("/etc/os-release"));
    let processor = processors.lines().find_map(|line| {
        line.strip_prefix("model name")?
            .split_once(": ")
            .map(|(_, name)| name)
    });
    let windows = std::env::var("PROCESSOR_IDENTIFIER").ok();
    let processor = processor
        .or(windows.as_deref())
        .unwrap_or(std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let system = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="))
        .map(|name| name.trim_matches('"'));
    // Such as `Microsoft Windows [Version 10.0.20348.4]`.
    let version = cfg!(windows)
        .then(|| printed(Command::new("cmd").args(["/c", "ver"])))
        .flatten();
    let system = system
        .or(version.as_deref().map(str::trim))
        .filter(|name| !name.is_empty());
    Machine {
        host: format!("{processor}, {cores} cores"),
        operating_system: system.unwrap_or(std::env::consts::OS).to_owned(),
        date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        command: words.join(" "),
        ..Machine::default()
    }
}

/// The name, driver and highest clocks of the GPU at a PCI address while it works, as NVIDIA's own tool tells them, if
/// it is installed.
pub fn nvidia(pci: &str, work: impl FnOnce() + Send) -> Option<[String; 3]> {
    let query = [
        "--query-gpu=clocks.sm,clocks.mem,clocks.max.sm,driver_version,name",
        "--format=csv,noheader",
    ];
    let ask = || {
        printed(Command::new("nvidia-smi").args(query).args(["-i", pci]))
            .filter(|_| !pci.is_empty())
    };
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
    let clock = |text: &String| {
        text.split(' ')
            .next()
            .and_then(|megahertz| megahertz.parse::<u32>().ok())
    };
    let highest = said.iter().max_by_key(|text| clock(text))?;
    let [sm, memory, most, driver, name] = highest
        .trim()
        .splitn(5, ", ")
        .collect::<Vec<_>>()
        .try_into()
        .ok()?;
    Some([
        name.to_owned(),
        driver.to_owned(),
        format!("SM {sm} of at most {most}, memory {memory}"),
    ])
}

/// The adapters that Windows names, with their drivers.
pub fn windows_adapters() -> Option<String> {
    let query = "Get-CimInstance Win32_VideoController | ForEach-Object { $_.Name + ', driver ' + $_.DriverVersion }";
    let text = printed(Command::new("powershell").args(["-NoProfile", "-Command", query]))
        .filter(|text| cfg!(windows) && !text.trim().is_empty())?;
    Some(text.lines().map(str::trim).collect::<Vec<_>>().join("; "))
}

fn printed(command: &mut Command) -> Option<String> {
    let ended = process::run_to_end(command, Duration::from_secs(60))
        .ok()
        .filter(|ended| ended.status.success())?;
    Some(ended.stdout)
}
