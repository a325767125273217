//! Every kernel without a GPU: the `.cu` files compiled by the host's C++ compiler under its address and
//! undefined-behaviour sanitizers (tests/emulator), run over the case table, every launch that a plan lists, for pointers at
//! multiples of 16 and at the least alignment that it takes, bit for bit against the oracle.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bytemuck::{Pod, Zeroable};

use super::fill_value_sequence::{self, Kernel};
use super::reverse_launches::clusters::CLUSTER;
use super::{reverse_subsequences, Launch, Module, Target};
use crate::common::{self, cases, oracle, output_of, POISON};
use crate::OperatorDesc;

/// What a launch looks like on the wire; tests/emulator/emulator.cpp says what the fields are.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Header {
    name: u32,
    parameters: u32,
    tensors: [u32; 3],
    blocks: u32,
    blocks_of_cluster: u32,
    threads: u32,
    shared: u32,
    past: u32,
    pointers: [u32; 3],
    order: u32,
}

const NONE: u32 = u32::MAX;

/// Builds the emulator; `None` where there is no C++ compiler with sanitizers.
fn build(folder: &Path) -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let flags = ["-std=c++17", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let compile = |arguments: &[&str]| {
        Command::new(&compiler)
            .args(flags)
            .args(["-I", "tests/emulator"])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
    };
    // Whether there is such a compiler is asked of the least program, so that an error in the sources is one.
    let (probe, probed) = (folder.join("probe.cpp"), folder.join("probe"));
    std::fs::write(&probe, "int main() {}").expect("a folder of our own");
    let probing = compile(&[&probe.to_string_lossy(), "-o", &probed.to_string_lossy()]).ok()?;
    if !probing.wait_with_output().expect("it was started").status.success() {
        return None;
    }
    let mut objects = vec![];
    let mut compiling = vec![];
    for file in std::fs::read_dir("kernels").expect("the kernels").map(|file| file.expect("an entry").path()) {
        if file.extension().is_some_and(|extension| extension == "cu") {
            let object = folder.join(file.file_stem().expect("a name")).with_extension("o");
            let (from, to) = (file.to_string_lossy(), object.to_string_lossy());
            compiling.push(compile(&["-include", "shim.hpp", "-x", "c++", "-c", &from, "-o", &to]));
            objects.push(to.into_owned());
        }
    }
    let finish = |child: std::io::Result<Child>| {
        let output = child.and_then(Child::wait_with_output).expect("the compiler was started before");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
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
    launches: u64,
}

impl Emulator {
    fn run<P: Pod>(
        &mut self,
        launch: &Launch<P>,
        pointers: [u32; 3],
        (past, backwards): (u32, bool),
        (input, lengths, output): (Option<&[u8]>, &[u8], &[u8]),
    ) -> Result<Vec<u8>, String> {
        let name = launch.entry.name().to_bytes();
        let parameters = bytemuck::bytes_of(&launch.params);
        let header = Header {
            name: name.len() as u32,
            parameters: parameters.len() as u32,
            tensors: [input.map_or(NONE, |bytes| bytes.len() as u32), lengths.len() as u32, output.len() as u32],
            blocks: launch.blocks,
            blocks_of_cluster: if launch.entry.module == Module::ReverseClusters { CLUSTER } else { 1 },
            threads: launch.threads,
            shared: launch.shared,
            past,
            pointers,
            order: backwards.into(),
        };
        let mut message = bytemuck::bytes_of(&header).to_vec();
        for bytes in [name, parameters, input.unwrap_or_default(), lengths, output] {
            message.extend_from_slice(bytes);
        }
        let mut found = vec![0; output.len()];
        let sent = self.child.stdin.as_mut().expect("piped").write_all(&message);
        let received = sent.and_then(|()| self.child.stdout.as_mut().expect("piped").read_exact(&mut found));
        self.launches += 1;
        received.map(|()| found).map_err(|error| {
            let mut report = String::new();
            let _ = self.child.stderr.as_mut().expect("piped").read_to_string(&mut report);
            format!("{} failed: {error}\n{report}", launch.entry.name().to_string_lossy())
        })
    }
}

/// The offsets of the parameters' pointers.
fn offsets<P: Zeroable>(fields: &[fn(&P) -> *const u64]) -> [u32; 3] {
    let params = P::zeroed();
    let base = std::ptr::from_ref(&params) as usize;
    let mut offsets = [NONE; 3];
    for (offset, field) in offsets.iter_mut().zip(fields) {
        *offset = (field(&params) as usize - base) as u32;
    }
    offsets
}

/// Pointers as they come: aligned to all that a kernel may ask for, or to what this one asks for and no more.
pub(crate) fn alignments(alignment: u32) -> impl Iterator<Item = u32> {
    [0, alignment].into_iter().take(if alignment < 16 { 2 } else { 1 })
}

#[test]
fn every_kernel_is_right_and_clean_on_the_host() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(program) = build(folder.path()) else {
        let required = std::env::var_os("REQUIRE_EMULATOR").is_some_and(|value| value == "1");
        assert!(!required, "REQUIRE_EMULATOR=1, but there is no C++ compiler with sanitizers");
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no C++ compiler with sanitizers to run the kernels on");
        return;
    };
    let table = cases::all();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    let launched: Vec<(u64, Vec<&str>)> = std::thread::scope(|scope| {
        let worker = |n: usize| {
            let (program, table) = (&program, &table);
            scope.spawn(move || run_cases(program, table.iter().skip(n).step_by(threads)))
        };
        let workers: Vec<_> = (0..threads).map(worker).collect();
        workers.into_iter().map(|worker| worker.join().expect("every case is right")).collect()
    });
    let mut entries: Vec<&str> = launched.iter().flat_map(|(_, entries)| entries).copied().collect();
    entries.sort_unstable();
    entries.dedup();
    let all = Module::ALL.into_iter().flat_map(Module::entries).map(|name| name.to_str().expect("ASCII"));
    let missing: Vec<&str> = all.filter(|name| !entries.contains(name)).collect();
    let _ = writeln!(
        std::io::stderr(),
        "{} launches of {} kernels are right and clean on the host",
        launched.iter().map(|(launches, _)| launches).sum::<u64>(),
        entries.len()
    );
    assert!(missing.is_empty(), "kernels that no case launches: {missing:?}");
}

fn run_cases<'a>(program: &Path, table: impl Iterator<Item = &'a cases::Case>) -> (u64, Vec<&'static str>) {
    let child = Command::new(program)
        .env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it was built");
    let mut emulator = Emulator { child, launches: 0 };
    let mut entries = std::collections::BTreeSet::new();
    let mut backwards = false;
    for case in table {
        let expected = oracle::expected(&case.desc, &case.inputs(), case.in_place);
        let mut check = |name: &'static str, past: u32, found: Result<Vec<u8>, String>| {
            let found = found.unwrap_or_else(|report| panic!("{report}\n{past} bytes past: {:?}", case.desc));
            if let Some(difference) = common::difference(&case.desc, &found, &expected) {
                panic!("{name}, pointers {past} bytes past a multiple of 16: {difference}\n{:?}", case.desc);
            }
            entries.insert(name);
        };
        let poison = vec![POISON; output_of(&case.desc).total_tensor_size_in_bytes as usize];
        match &case.desc {
            OperatorDesc::FillValueSequence(desc) => {
                let plan = fill_value_sequence::Plan::new(desc).expect("the cases are valid");
                let tensors = (Some(&[][..]), &[][..], &poison[..]);
                for way in &plan.launches {
                    for past in alignments(way.alignment()) {
                        backwards = !backwards;
                        let how = (past, backwards);
                        match way {
                            Kernel::Packed(launch) => {
                                let out = offsets::<fill_value_sequence::Packed>(&[|p| &raw const p.out])[0];
                                let found = emulator.run(launch, [NONE, NONE, out], how, tensors);
                                check(launch.entry.name().to_str().expect("ASCII"), past, found);
                            }
                            Kernel::Rows(launch) | Kernel::Dense(launch) | Kernel::Elements(launch) => {
                                let out = offsets::<fill_value_sequence::Strided>(&[|p| &raw const p.out])[0];
                                let found = emulator.run(launch, [NONE, NONE, out], how, tensors);
                                check(launch.entry.name().to_str().expect("ASCII"), past, found);
                            }
                        }
                    }
                }
            }
            OperatorDesc::ReverseSubsequences(desc) => {
                let launches = |target: Target| {
                    let plan =
                        reverse_subsequences::Plan::with_every_launch(desc, &target).expect("the cases are valid");
                    if case.in_place { plan.in_place.expect("equal strides") } else { plan.copy }.launches
                };
                // So little shared memory makes strips of both widths.
                let clusters =
                    launches(Target { clusters: true, shared_memory: 12 << 10, ..Target::default() }).into_iter();
                let clusters = clusters.filter(|launch| launch.entry.module == Module::ReverseClusters);
                let pointers = offsets::<reverse_subsequences::Params>(&[
                    |p| &raw const p.input,
                    |p| &raw const p.lengths,
                    |p| &raw const p.out,
                ]);
                let [input, lengths] = &case.inputs[..] else { unreachable!("two inputs") };
                let tensors = if case.in_place {
                    (None, &lengths[..], &input[..])
                } else {
                    (Some(&input[..]), &lengths[..], &poison[..])
                };
                for launch in launches(Target::default()).iter().chain(&clusters.collect::<Vec<_>>()) {
                    for past in alignments(launch.alignment) {
                        backwards = !backwards;
                        let found = emulator.run(launch, pointers, (past, backwards), tensors);
                        check(launch.entry.name().to_str().expect("ASCII"), past, found);
                    }
                }
            }
        }
    }
    (emulator.launches, entries.into_iter().collect())
}
