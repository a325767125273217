//! Every kernel on the GPU: all launches that the plans of the case table list, also those that a dispatch would pass
//! over for a faster one, for pointers at multiples of 16 and at the least alignment that each takes.

use std::collections::BTreeSet;
use std::io::Write;

use super::{functions, queue, Module, Pointers, Stream};
use crate::common::{self, cases, output_of, GUARD, POISON};
use crate::plan::{emulated::alignments, reverse_subsequences, Plan, Target};
use crate::{Buffer, Device, OperatorDesc};

/// A plan for each launch of a plan, with the alignment that the launch asks for, and its kernel.
fn one_by_one(plan: &Plan, in_place: bool) -> Vec<(Plan, u32, &'static str)> {
    let name = |entry: crate::plan::Entry| entry.name().to_str().expect("ASCII");
    match plan {
        Plan::FillValueSequence(plan) => {
            let alone = |&way: &_| crate::plan::fill_value_sequence::Plan { launches: vec![way], ..plan.clone() };
            let launches = plan.launches.iter();
            launches.map(|way| (Plan::FillValueSequence(alone(way)), way.alignment(), name(way.entry()))).collect()
        }
        Plan::ReverseSubsequences(plan) => {
            let ways = if in_place { plan.in_place.as_ref().expect("equal strides") } else { &plan.copy };
            let alone = |launch| {
                let mut plan = plan.clone();
                let ways = if in_place { plan.in_place.as_mut().expect("equal strides") } else { &mut plan.copy };
                ways.launches = vec![launch];
                Plan::ReverseSubsequences(plan)
            };
            ways.launches.iter().map(|&launch| (alone(launch), launch.alignment, name(launch.entry))).collect()
        }
    }
}

/// The plans of a case: for this GPU, and for one so small that its blocks of threads have as much to do as they can.
fn plans(device: &Device, desc: &OperatorDesc) -> Vec<Plan> {
    match desc {
        OperatorDesc::FillValueSequence(_) => vec![common::compile(device, desc).plan().clone()],
        OperatorDesc::ReverseSubsequences(desc) => {
            let targets = [device.target(), Target { multiprocessors: 1, ..device.target() }];
            let plan =
                |target: &_| reverse_subsequences::Plan::with_every_launch(desc, target).expect("the cases are valid");
            targets.iter().map(plan).map(Plan::ReverseSubsequences).collect()
        }
    }
}

/// A tensor between guards, in a buffer that is used again and again.
struct Tensor {
    buffer: Buffer,
    offset: u64,
    bytes: Vec<u8>,
}

impl Tensor {
    fn new(buffer: &Buffer, past: u32, bytes: &[u8]) -> Self {
        let offset = GUARD as u64 + u64::from(past);
        let mut memory = vec![POISON; offset as usize + bytes.len() + GUARD];
        memory[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        buffer.write(0, &memory).expect("it is large enough");
        Self { buffer: buffer.clone(), offset, bytes: bytes.to_vec() }
    }

    fn address(&self) -> u64 {
        self.buffer.cuda_memory().expect("on the GPU").address() + self.offset
    }

    /// What it holds now; its guards must hold what they did.
    fn read(&self, what: &str) -> Vec<u8> {
        let mut memory = vec![0; self.offset as usize + self.bytes.len() + GUARD];
        self.buffer.read(0, &mut memory).expect("it is large enough");
        let tensor = self.offset as usize..self.offset as usize + self.bytes.len();
        let mut guards = memory[..tensor.start].iter().chain(&memory[tensor.end..]);
        assert!(guards.all(|&byte| byte == POISON), "{what}: a guard was written");
        memory[tensor].to_vec()
    }
}

#[test]
fn every_launch_is_right_on_the_gpu() {
    let Some(device) = common::cuda("every_launch_is_right_on_the_gpu") else { return };
    let context = device.cuda_context().expect("a CUDA device");
    let stream = Stream::new(context).expect("streams are to be had");
    let table = cases::all();
    let tensors = table.iter().flat_map(|case| case.inputs.iter().map(Vec::len).chain([case.expected().len()]));
    let largest = tensors.max().expect("cases") + 2 * GUARD + 16;
    let buffers: Vec<Buffer> =
        (0..3).map(|_| device.create_buffer(largest as u64).expect("enough device memory")).collect();

    let mut launched = 0;
    let mut entries = BTreeSet::new();
    for case in &table {
        let expected = case.expected();
        let poison = vec![POISON; output_of(&case.desc).total_tensor_size_in_bytes as usize];
        let mut seen = BTreeSet::new();
        for (plan, alignment, name) in
            plans(&device, &case.desc).iter().flat_map(|plan| one_by_one(plan, case.in_place))
        {
            if !seen.insert(format!("{plan:?}")) {
                continue; // the same on both
            }
            let functions = functions(context, &plan).expect("kernels load");
            for past in alignments(alignment) {
                let what = format!("{name}, pointers {past} bytes past a multiple of 16: {:?}", case.desc);
                let inputs: Vec<Tensor> = case
                    .inputs
                    .iter()
                    .zip(&buffers)
                    .enumerate()
                    .map(|(n, (bytes, buffer))| Tensor::new(buffer, if n == 0 { past } else { 0 }, bytes))
                    .collect();
                let output = (!case.in_place).then(|| Tensor::new(&buffers[2], past, &poison));
                let output = output.as_ref().unwrap_or_else(|| &inputs[0]);
                let address = |n: usize| inputs.get(n).map_or(0, Tensor::address);
                let (input, lengths) = (address(0), address(1));
                let pointers = Pointers { input, lengths, output: output.address(), in_place: case.in_place };
                queue(&plan, &functions, pointers, stream.handle()).expect("queued");
                stream.synchronize().unwrap_or_else(|error| panic!("{what}: {error}"));
                if let Some(difference) = common::difference(&case.desc, &output.read(&what), &expected) {
                    panic!("{what}: {difference}");
                }
                for input in inputs.iter().skip(case.in_place.into()) {
                    assert!(input.read(&what) == input.bytes, "{what}: an input was written");
                }
                launched += 1;
            }
            entries.insert(name);
        }
    }
    let _ = writeln!(std::io::stderr(), "{launched} launches of {} kernels are right on {device}", entries.len());
    let all = Module::ALL.into_iter().flat_map(Module::entries).map(|name| name.to_str().expect("ASCII"));
    let missing: Vec<&str> = all.filter(|name| !entries.contains(name)).collect();
    assert!(missing.is_empty(), "kernels that no case launches: {missing:?}");
}
