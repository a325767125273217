//! Which run a bench goes on with: samples of one run are of one program on one machine, and one process writes them.

use std::path::Path;
use std::process::{Command, Stdio};

use super::child::{Device, Runner};
use super::Options;
use crate::bench::record::{Machine, Run, SCHEMA};
use crate::bench::suite::manifest::{Manifest, Work};

/// The file of a run, with the bytes that this process knows of.
pub struct RunFile<'a> {
    path: &'a Path,
    bytes: Option<Vec<u8>>,
}

impl RunFile<'_> {
    /// Writes the run, unless another process has written there meanwhile, whose samples would be lost.
    pub fn write(&mut self, run: &Run) -> Result<(), String> {
        if std::fs::read(self.path).ok() != self.bytes {
            return Err(format!(
                "{} was changed by another process, must be written by one bench at a time; it stays as that left it",
                self.path.display()
            ));
        }
        self.bytes = Some(run.write(self.path)?);
        Ok(())
    }
}

/// The run so far, where an earlier call was interrupted, or a new one.
pub fn begin<'a>(options: &'a Options, manifest: &Manifest, runner: &Runner) -> Result<(Run, RunFile<'a>), String> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let machine = Machine {
        tool: runner.tool.clone(),
        commit: if runner.own { option_env!("DML_CUDA_COMMIT").unwrap_or_default().to_owned() } else { String::new() },
        host: host(),
        operating_system: operating_system(),
        date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
        command: words.join(" "),
        ..Machine::default()
    };
    let mut now =
        Run { schema: SCHEMA, suite: manifest.id.clone(), machine, samples: options.samples, ..Run::default() };
    if now.machine.commit.is_empty() {
        now.machine.program = runner.hash()?;
    }
    if runner.own {
        set_device(&mut now, runner.own_device()?);
    }
    // A link that leads nowhere is no file either, which writing says.
    if !options.to.exists() {
        return Ok((now, RunFile { path: &options.to, bytes: None }));
    }
    // Reading a pipe of our own would never end.
    if !options.to.is_file() {
        return Err(format!("{} is not a regular file, must be one to hold a run", options.to.display()));
    }
    let file = RunFile { path: &options.to, bytes: std::fs::read(&options.to).ok() };
    let mut run = Run::read(&options.to)?;
    if run.suite != manifest.id {
        return Err(format!(
            "{} is a run of the suite '{}', must be of '{}' to go on with, or a new file",
            options.to.display(),
            run.suite,
            manifest.id
        ));
    }
    agree(&run, &now, manifest, options)?;
    run.machine.command = now.machine.command;
    Ok((run, file))
}

/// An error that says what differs, unless samples of both can be in one run. Of another runner the device is known later.
fn agree(run: &Run, now: &Run, manifest: &Manifest, options: &Options) -> Result<(), String> {
    let (there, here) = (&run.machine, &now.machine);
    let mut fields = vec![
        ("tool", there.tool.clone(), here.tool.clone()),
        ("commit", there.commit.clone(), here.commit.clone()),
        ("program", there.program.clone(), here.program.clone()),
        ("host", there.host.clone(), here.host.clone()),
        ("operating system", there.operating_system.clone(), here.operating_system.clone()),
        ("samples", run.samples.to_string(), now.samples.to_string()),
    ];
    if !here.device.is_empty() {
        fields.extend([
            ("device", there.device.clone(), here.device.clone()),
            ("driver", there.driver.clone(), here.driver.clone()),
            ("timing", run.timing.clone(), now.timing.clone()),
        ]);
    }
    // The suites have one name; the work may have changed in between.
    for timing in &run.cases {
        let entry = manifest.cases.iter().find(|entry| entry.work.key() == timing.work.key());
        if let Some(entry) = entry.filter(|entry| entry.work.bytes != timing.work.bytes) {
            let bytes = |work: &Work| format!("{} bytes", work.bytes);
            fields.push(("a case", format!("{}, {}", entry.name, bytes(&timing.work)), bytes(&entry.work)));
        }
    }
    let differences: Vec<String> = fields
        .into_iter()
        .filter(|(_, there, here)| there != here)
        .map(|(name, there, here)| format!("{name} was '{there}', is '{here}'"))
        .collect();
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} is a run of {} on {} and cannot go on, it needs a file of its own: {}",
        options.to.display(),
        there.tool,
        there.device,
        differences.join("; ")
    ))
}

fn set_device(run: &mut Run, found: Device) {
    run.label = format!("{} on {}", run.machine.tool, found.name);
    (run.machine.driver, run.machine.clocks) = driver_and_clocks(&found);
    run.machine.device = found.name;
    run.timing = found.timing;
}

/// All models must run on one device.
pub fn check_device(run: &mut Run, found: Device, options: &Options) -> Result<(), String> {
    // Clocks are read behind the first model: a GPU that waits lowers them.
    if run.machine.device.is_empty() || (run.cases.is_empty() && run.outputs.is_empty()) {
        set_device(run, found);
    } else if run.machine.device != found.name {
        return Err(format!(
            "{} is a run of {} on {}, this is {}: it needs a file of its own",
            options.to.display(),
            run.machine.tool,
            run.machine.device,
            found.name
        ));
    }
    Ok(())
}

/// The driver and the clocks now, as NVIDIA's own tool says them of this GPU, where the tool is there.
fn driver_and_clocks(device: &Device) -> (String, String) {
    let unknown = || (device.driver.clone(), String::new());
    if device.pci.is_empty() {
        return unknown();
    }
    let query = ["--query-gpu=driver_version,clocks.sm,clocks.mem,clocks.max.sm", "--format=csv,noheader"];
    let output = Command::new("nvidia-smi").args(query).args(["-i", &device.pci]).stdin(Stdio::null()).output();
    let text = output.ok().filter(|output| output.status.success()).map(|output| output.stdout).unwrap_or_default();
    queried(&String::from_utf8_lossy(&text), &device.driver).unwrap_or_else(unknown)
}

/// What the tool answers for one GPU.
fn queried(text: &str, cuda: &str) -> Option<(String, String)> {
    match text.trim().splitn(4, ", ").collect::<Vec<_>>().as_slice() {
        [driver, sm, memory, most] => {
            Some((format!("{driver} ({cuda})"), format!("SM {sm} of at most {most}, memory {memory}")))
        }
        _ => None,
    }
}

/// The processor, where the system says it.
fn host() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{}, {cores} cores", model.unwrap_or(std::env::consts::ARCH))
}

fn operating_system() -> String {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).map(|name| name.trim_matches('"'));
    name.unwrap_or(std::env::consts::OS).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_described_by_its_own_line() {
        let (driver, clocks) = queried("580.159.04, 1980 MHz, 3201 MHz, 1980 MHz\n", "CUDA 13.0").expect("a line");
        assert_eq!(
            (driver.as_str(), clocks.as_str()),
            ("580.159.04 (CUDA 13.0)", "SM 1980 MHz of at most 1980 MHz, memory 3201 MHz")
        );
        assert_eq!(queried("No devices were found", "CUDA 13.0"), None);
        let device = |pci: &str| Device {
            name: "GPU".into(),
            driver: "CUDA 13.0".into(),
            pci: pci.into(),
            timing: String::new(),
        };
        // No tool is asked of a device that it cannot name, and the first GPU's clocks are not another's.
        assert_eq!(driver_and_clocks(&device("")), ("CUDA 13.0".to_owned(), String::new()));
    }
}
