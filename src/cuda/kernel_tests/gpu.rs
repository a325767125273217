//! Runs kernels on the GPU, with guard bytes around every tensor.

use super::{check, report, work, Machine, Wanted};
use crate::cuda::{load, load_briefly, Addresses, GpuTarget, Launch, Launcher, Placement, Stream};
use crate::desc::MAX_INPUTS;
use crate::dml_cuda_testing::cases::{self, Case};
use crate::dml_cuda_testing::{self, GUARD, POISON};
use crate::{Buffer, CompileOptions, Device, Specialize};

/// A tensor between guards, in a buffer that all cases reuse.
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
        Self {
            buffer: buffer.clone(),
            offset,
            bytes: bytes.to_vec(),
        }
    }

    fn address(&self) -> u64 {
        self.buffer.cuda_memory().expect("on the GPU").address() + self.offset
    }

    /// Its bytes now. An error if a guard was written.
    fn read(&self) -> Result<Vec<u8>, String> {
        let mut memory = vec![0; self.offset as usize + self.bytes.len() + GUARD];
        self.buffer
            .read(0, &mut memory)
            .expect("it is large enough");
        let tensor = self.offset as usize..self.offset as usize + self.bytes.len();
        let mut guards = memory[..tensor.start].iter().chain(&memory[tensor.end..]);
        if !guards.all(|&byte| byte == POISON) {
            return Err("a guard was written".to_owned());
        }
        Ok(memory[tensor].to_vec())
    }
}

/// Every such launch is specialized.
const SPECIALIZED_SHARE: usize = 8;

struct Gpu {
    device: Device,
    stream: Stream,
    /// One buffer per tensor: the output's, then those of the inputs.
    buffers: [Buffer; 1 + MAX_INPUTS],
    /// How many launches ran.
    count: usize,
}

impl Machine for Gpu {
    #[allow(unsafe_code)]
    fn run(&mut self, case: &Case, launch: &Launch, past: u32) -> Result<Vec<u8>, String> {
        let context = self.device.context.as_ref().expect("a CUDA device");
        // A part of the launches is specialized: compiling a kernel takes long.
        self.count += 1;
        let is_specialized = self.count.is_multiple_of(SPECIALIZED_SHARE);
        let options = CompileOptions::default().with_specialize(Specialize::Never);
        let loaded = match is_specialized {
            true => load_briefly(context, [launch.clone()]),
            false => load(context, [launch.clone()], options),
        };
        let loaded = loaded.map_err(|error| error.to_string())?;
        let launcher = Launcher::new(context, [Some(loaded), None], options);
        let expected = is_specialized && launch.entry.specializable;
        if launcher.is_specialized() != expected {
            return Err("the driver does not compile the specialized kernel".to_owned());
        }
        let [output_buffer, input_buffers @ ..] = &self.buffers;
        let place = |(n, (bytes, buffer)): (usize, (&Vec<u8>, &Buffer))| {
            Tensor::new(buffer, if n == 0 { past } else { 0 }, bytes)
        };
        let inputs: Vec<Tensor> = case
            .inputs
            .iter()
            .zip(input_buffers)
            .enumerate()
            .map(place)
            .collect();
        let poison = vec![POISON; case.desc.output_tensor().total_tensor_size_in_bytes as usize];
        let output = (!case.in_place).then(|| Tensor::new(output_buffer, past, &poison));
        let output = output.as_ref().unwrap_or_else(|| &inputs[0]);
        let input_addresses: Vec<u64> = inputs.iter().map(Tensor::address).collect();
        let addresses = Addresses {
            inputs: &input_addresses,
            output: output.address(),
        };
        // SAFETY: the buffers are as large as the case's tensors, and live longer than the work.
        unsafe { launcher.launch(&addresses, Placement::OutOfPlace, self.stream.handle()) }
            .map_err(|error| error.to_string())?;
        self.stream
            .synchronize()
            .map_err(|error| error.to_string())?;
        let found = output.read()?;
        match inputs
            .iter()
            .skip(case.in_place.into())
            .all(|input| input.read().is_ok_and(|bytes| bytes == input.bytes))
        {
            true => Ok(found),
            false => Err("an input was written".to_owned()),
        }
    }
}

#[test]
fn every_launch_is_right_on_the_gpu() {
    let Some(device) = dml_cuda_testing::cuda("every_launch_is_right_on_the_gpu") else {
        return;
    };
    let context = device.context.as_ref().expect("a CUDA device");
    let stream = Stream::new(context).expect("a stream");
    let mut table = cases::all();
    table.extend(cases::float64_sequences());
    let tensors = table.iter().flat_map(|case| {
        case.inputs
            .iter()
            .map(Vec::len)
            .chain([case.expected().len()])
    });
    let largest = tensors.max().expect("cases") + 2 * GUARD + 16;
    let buffers = std::array::from_fn(|_| {
        device
            .create_buffer(largest as u64)
            .expect("enough device memory")
    });
    // Selects for this GPU; for a GPU so small that its thread blocks get as much work as possible; and for a GPU with
    // so little shared memory that clusters get most of the strips.
    let small = GpuTarget {
        multiprocessors: 1,
        ..context.target
    };
    let little_shared_memory = GpuTarget {
        shared_memory: 12 << 10,
        ..small
    };
    let targets: [Wanted; 3] = [
        (context.target, |_| true),
        (small, |_| true),
        (little_shared_memory, |_| true),
    ];
    let name = device.to_string();
    let (part, parts) = part();
    let cases = table.iter().skip(part).step_by(parts);
    let run = check(
        work(cases, &targets, |_| true).iter(),
        &mut Gpu {
            device,
            stream,
            buffers,
            count: 0,
        },
    );
    report(
        &run,
        &format!("{name}, part {part} of {parts} of the cases"),
        parts == 1,
    );
}

/// `KERNEL_CASES=part/parts` runs every `parts`-th case from case `part` on, because sanitizers take long for all of
/// them.
fn part() -> (usize, usize) {
    let Ok(text) = std::env::var("KERNEL_CASES") else {
        return (0, 1);
    };
    let numbers = text
        .split_once('/')
        .and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    numbers
        .filter(|(part, parts)| part < parts)
        .unwrap_or_else(|| panic!("KERNEL_CASES is {text}, but must be such as 0/4"))
}
