//! Shared by the tests of the library and of the command line tool: devices, the oracle, the records of DirectML, and
//! runs with guard bytes.

pub mod cases;
pub mod descriptors;
pub mod driver_double;
pub mod exact;
pub mod oracle;
pub mod recorded;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use dml_cuda::{
    BufferBinding, BufferTensorDesc, CompiledOperator, Device, FillValueSequenceDesc, OperatorDesc,
    ReverseSubsequencesDesc, ScalarUnion, TensorDataType,
};

static SKIPS: AtomicUsize = AtomicUsize::new(0);

/// The CPU and, if there is one, the first GPU. A missing GPU is printed and counted; with `REQUIRE_CUDA=1` it fails
/// the test.
pub fn devices(test: &str) -> Vec<Device> {
    std::iter::once(Device::cpu()).chain(cuda(test)).collect()
}

/// The first GPU, as for [`devices`].
pub fn cuda(test: &str) -> Option<Device> {
    match Device::cuda(0) {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("REQUIRE_CUDA").is_some_and(|value| value == "1") => {
            panic!("{test}: REQUIRE_CUDA=1, but {error}")
        }
        Err(error) => {
            let n = SKIPS.fetch_add(1, Ordering::Relaxed) + 1;
            // Not println!: the harness hides what a passing test prints.
            use std::io::Write;
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED on the GPU ({n} so far in this binary): {test}: {error}"
            );
            None
        }
    }
}

/// A file of the repository. Tests may run on another machine than they were built on: either from the repository's
/// root, or with `CARGO_MANIFEST_DIR` set to the folder of their crate, as cargo sets it.
pub fn repository(path: &str) -> PathBuf {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = package
        .ancestors()
        .find(|folder| folder.join("kernels").is_dir());
    root.expect("the tests run in the repository").join(path)
}

/// The Rust sources below a folder of the repository.
pub fn rust_files(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(repository(folder)).expect("a folder");
    let below = entries.flat_map(|entry| {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => rust_files(path.to_str().expect("a readable name")),
            false => vec![path],
        }
    });
    below
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}

/// What `work` returns for each number below `count`, in a thread for each processor.
pub fn in_threads<T: Send>(count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let numbers = || {
        std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|&n| n < count)
    };
    let run = || numbers().map(|n| (n, work(n))).collect::<Vec<_>>();
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|&(n, _)| n);
    done.into_iter().map(|(_, result)| result).collect()
}

/// The byte that fills the output before every run. The recordings of DirectML used the same.
pub const POISON: u8 = 0xCD;

/// Bytes before and after every tensor.
pub const GUARD: usize = 64;

/// A packed fill.
pub fn fill(
    data_type: TensorDataType,
    sizes: &[u32],
    start: ScalarUnion,
    delta: ScalarUnion,
) -> FillValueSequenceDesc {
    FillValueSequenceDesc {
        output_tensor: BufferTensorDesc::packed(data_type, sizes),
        value_data_type: data_type,
        value_start: start,
        value_delta: delta,
    }
}

/// A packed reversal with UINT32 lengths.
pub fn reversal(data_type: TensorDataType, sizes: &[u32], axis: u32) -> ReverseSubsequencesDesc {
    let tensor = BufferTensorDesc::packed(data_type, sizes);
    let mut lengths_sizes = sizes.to_vec();
    lengths_sizes[axis as usize] = 1;
    let sequence_lengths_tensor = BufferTensorDesc::packed(TensorDataType::UInt32, &lengths_sizes);
    ReverseSubsequencesDesc {
        input_tensor: tensor.clone(),
        sequence_lengths_tensor,
        output_tensor: tensor,
        axis,
    }
}

/// A packed reversal of lanes of `size` elements.
pub fn lanes(data_type: TensorDataType, lanes: u32, size: u32) -> ReverseSubsequencesDesc {
    reversal(data_type, &[lanes, size], 1)
}

/// Creates and compiles a descriptor that must be accepted.
pub fn compile(device: &Device, desc: &OperatorDesc) -> CompiledOperator {
    let operator = device
        .create_operator(desc.clone())
        .unwrap_or_else(|errors| panic!("{desc:?}\n{errors}"));
    device
        .compile_operator(&operator)
        .unwrap_or_else(|error| panic!("{desc:?}\n{error}"))
}

/// Bytes before a tensor: the guard, or the tensor's alignment if that is larger.
fn lead(desc: &BufferTensorDesc) -> usize {
    GUARD.max(desc.guaranteed_base_offset_alignment as usize)
}

/// Runs an operator with every tensor between guard bytes, and returns the bytes of the output tensor.
///
/// `inputs` are the bytes of the input tensors; missing bytes at the end are poison. In place, the output begins as the
/// first input. Panics if a guard was written or an input changed.
pub fn run(device: &Device, desc: &OperatorDesc, inputs: &[&[u8]], in_place: bool) -> Vec<u8> {
    let operator = compile(device, desc);
    let output_desc = desc.output_tensor();
    let place = |desc: &BufferTensorDesc, bytes: &[u8]| {
        let total = desc.total_tensor_size_in_bytes as usize;
        let mut memory = vec![POISON; lead(desc) + total + GUARD];
        let length = bytes.len().min(total);
        memory[lead(desc)..][..length].copy_from_slice(&bytes[..length]);
        let buffer = device
            .create_buffer(memory.len() as u64)
            .expect("the cases are small");
        buffer.write(0, &memory).expect("the range is the buffer");
        (
            BufferBinding::range(&buffer, lead(desc) as u64, total as u64),
            memory,
        )
    };
    let placed: Vec<_> = desc
        .input_tensors()
        .into_iter()
        .zip(inputs)
        .map(|(desc, bytes)| place(desc, bytes))
        .collect();
    let (output, before) = if in_place {
        placed[0].clone()
    } else {
        place(output_desc, &[])
    };
    let bindings: Vec<BufferBinding> = placed.iter().map(|(binding, _)| binding.clone()).collect();

    let stream = device.create_stream().expect("a stream");
    let table = operator
        .bind(&bindings, &output)
        .unwrap_or_else(|error| panic!("{desc:?}\n{error}"));
    table
        .dispatch(&stream)
        .unwrap_or_else(|error| panic!("{desc:?}\n{error}"));
    stream
        .synchronize()
        .unwrap_or_else(|error| panic!("{desc:?}\n{error}"));

    let after: Vec<u8> = output.buffer.to_vec().expect("bytes are whole");
    let (begin, end) = (
        lead(output_desc),
        lead(output_desc) + output_desc.total_tensor_size_in_bytes as usize,
    );
    assert!(
        after[..begin] == before[..begin],
        "{device}: bytes before the output were written\n{desc:?}"
    );
    assert!(
        after[end..] == before[end..],
        "{device}: bytes after the output were written\n{desc:?}"
    );
    for (binding, before) in placed.iter().skip(usize::from(in_place)) {
        assert!(
            binding.buffer.to_vec::<u8>().expect("bytes are whole") == *before,
            "{device}: an input changed\n{desc:?}"
        );
    }
    after[begin..end].to_vec()
}

/// Compares the bytes of an output with the required ones. In float fills, all NaNs are equal.
pub fn assert_same(device: &Device, desc: &OperatorDesc, found: &[u8], required: &[u8]) {
    if let Some(difference) = difference(desc, found, required) {
        panic!("{device}: {difference}\n{desc:?}");
    }
}

/// The first difference between an output and the required bytes, by the rules of [`assert_same`].
pub fn difference(desc: &OperatorDesc, found: &[u8], required: &[u8]) -> Option<String> {
    if found == required {
        return None;
    }
    let width = (desc.output_tensor().data_type.size_in_bits() / 8) as usize;
    let float = matches!(desc, OperatorDesc::FillValueSequence(_))
        && desc.output_tensor().data_type.is_float();
    let nan = |bytes: &[u8]| match bytes {
        [a, b] => half::f16::from_le_bytes([*a, *b]).is_nan(),
        [a, b, c, d] => f32::from_le_bytes([*a, *b, *c, *d]).is_nan(),
        _ => false,
    };
    assert_eq!(found.len(), required.len());
    let mut elements = found.chunks(width).zip(required.chunks(width)).enumerate();
    let (n, (found, required)) = elements.find(|(_, (found, required))| {
        found != required && !(float && nan(found) && nan(required))
    })?;
    Some(format!(
        "element {n} in memory is {found:02x?}, but must be {required:02x?}"
    ))
}

/// A small generator of repeatable pseudo-random numbers (splitmix64, Steele et al. 2014).
pub struct Random(pub u64);

impl Random {
    #[allow(clippy::should_implement_trait)] // it never ends
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
