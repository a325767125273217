//! Runs kernels without a GPU: the host's C++ compiler compiles the `.cu` files with its address and
//! undefined-behaviour sanitizers (tests/emulator).

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{check, report, work, Machine, Wanted};
use crate::cuda::parameters::clusters::CLUSTER;
use crate::cuda::{GpuTarget, Launch};
use crate::dml_cuda_testing::cases::{self, Case};
use crate::dml_cuda_testing::POISON;

/// Sent as the size of an input that is also the output.
const IN_PLACE: u32 = u32::MAX;

/// Builds the emulator. `None` if there is no C++ compiler with sanitizers.
fn build(folder: &Path) -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    // -O1 takes twice as long to compile, and does not run faster.
    let flags = [
        "-std=c++17",
        "-Og",
        "-g1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ];
    let compile = |arguments: &[&str]| {
        Command::new(&compiler)
            .args(flags)
            .args(["-I", "tests/emulator"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
    };
    // Compiles a trivial program first, so that an error in the real sources is not mistaken for a missing compiler.
    let (probe, probed) = (folder.join("probe.cpp"), folder.join("probe"));
    std::fs::write(&probe, "int main() {}").expect("a folder of our own");
    let probing = compile(&[&probe.to_string_lossy(), "-o", &probed.to_string_lossy()]).ok()?;
    if !probing
        .wait_with_output()
        .expect("it was started")
        .status
        .success()
    {
        return None;
    }
    let mut objects = vec![];
    let mut compiling = vec![];
    for file in std::fs::read_dir("kernels")
        .expect("the kernels")
        .map(|file| file.expect("an entry").path())
    {
        if file.extension().is_some_and(|extension| extension == "cu") {
            let object = folder
                .join(file.file_stem().expect("a name"))
                .with_extension("o");
            let (from, to) = (file.to_string_lossy(), object.to_string_lossy());
            compiling.push(compile(&[
                "-include", "shim.hpp", "-x", "c++", "-c", &from, "-o", &to,
            ]));
            objects.push(to.into_owned());
        }
    }
    let finish = |child: std::io::Result<Child>| {
        let output = child
            .and_then(Child::wait_with_output)
            .expect("the compiler was started before");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    compiling.into_iter().for_each(finish);
    let program = folder.join("emulator");
    let to = program.to_string_lossy();
    let mut arguments = vec!["-rdynamic", "tests/emulator/emulator.cpp", "-o", &to];
    arguments.extend(objects.iter().map(String::as_str));
    arguments.push("-ldl");
    finish(compile(&arguments));
    Some(program)
}

struct Emulator {
    child: Child,
    /// The number of the launch: threads run from the last to the first if it is odd, and thread blocks in a random
    /// order that depends on it.
    order: u32,
}

impl Emulator {
    fn new(program: &Path) -> Self {
        let child = Command::new(program)
            .env(
                "ASAN_OPTIONS",
                "detect_leaks=0:detect_stack_use_after_return=0",
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        Self { child, order: 0 }
    }
}

impl Machine for Emulator {
    fn run(&mut self, case: &Case, launch: &Launch, past: u32) -> Result<Vec<u8>, String> {
        let name = launch.entry.name.as_bytes();
        let parameters = bytemuck::cast_slice(&launch.params);
        let poison = vec![POISON; case.desc.output_tensor().total_tensor_size_in_bytes as usize];
        let output = if case.in_place {
            &case.inputs[0]
        } else {
            &poison
        };
        self.order += 1;
        // In the order of `Header` in tests/emulator/emulator.cpp.
        let header = [
            name.len() as u32,
            parameters.len() as u32,
            case.inputs.len() as u32,
            output.len() as u32,
            launch.grid.blocks,
            if is_of_clusters(launch) { CLUSTER } else { 1 },
            launch.grid.threads,
            launch.grid.shared,
            past,
            self.order,
        ];
        let mut message = [bytemuck::bytes_of(&header), name, parameters].concat();
        for (n, bytes) in case.inputs.iter().enumerate() {
            let (size, bytes) = if n == 0 && case.in_place {
                (IN_PLACE, &[][..])
            } else {
                (bytes.len() as u32, bytes.as_slice())
            };
            message.extend_from_slice(&size.to_le_bytes());
            message.extend_from_slice(bytes);
        }
        message.extend_from_slice(output);
        let mut found = vec![0; output.len()];
        let sent = self
            .child
            .stdin
            .as_mut()
            .expect("piped")
            .write_all(&message);
        let received = sent.and_then(|()| {
            self.child
                .stdout
                .as_mut()
                .expect("piped")
                .read_exact(&mut found)
        });
        received.map(|()| found).map_err(|error| {
            let mut report = String::new();
            let _ = self
                .child
                .stderr
                .as_mut()
                .expect("piped")
                .read_to_string(&mut report);
            format!("{error}\n{report}")
        })
    }
}

fn is_of_clusters(launch: &Launch) -> bool {
    launch.entry.name.starts_with("reverse_clusters")
}

/// The smallest GPU; and for clusters, one with so little shared memory that strips of both widths are chosen.
const TARGETS: &[Wanted] = &[
    (GpuTarget::with_typical_speed(48 << 10, 1, false), |_| true),
    (
        GpuTarget::with_typical_speed(12 << 10, 1, true),
        is_of_clusters,
    ),
];

#[test]
fn every_kernel_is_right_and_clean_on_the_host() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(program) = build(folder.path()) else {
        let required = std::env::var_os("REQUIRE_EMULATOR").is_some_and(|value| value == "1");
        assert!(
            !required,
            "REQUIRE_EMULATOR=1, but there is no C++ compiler with sanitizers"
        );
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: there is no C++ compiler with sanitizers to run the kernels on"
        );
        return;
    };
    let mut table = cases::all();
    table.extend(cases::float64_sequences());
    let all = std::env::var_os("EMULATE").is_some_and(|value| value == "all");
    let mut work = work(
        table.iter(),
        TARGETS,
        if all { |is_small| is_small } else { |_| false },
    );
    // The two at the ends of a kernel's variants: a GPU runs all.
    for (_, launches) in &mut work {
        let kinds: Vec<_> = launches
            .iter()
            .map(|launch| (launch.entry.name, launch.alignment))
            .collect();
        let mut place = 0..;
        launches.retain(|_| {
            let n = place.next().unwrap_or(0);
            !kinds[..n].contains(&kinds[n]) || !kinds[n + 1..].contains(&kinds[n])
        });
    }
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let run: Vec<Vec<&str>> = std::thread::scope(|scope| {
        let worker = |n: usize| {
            let (program, work) = (&program, &work);
            scope.spawn(move || {
                check(
                    work.iter().skip(n).step_by(threads),
                    &mut Emulator::new(program),
                )
            })
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("every case is right"))
            .collect()
    });
    report(&run.concat(), "the host", true);
}
