//! Any descriptor, out of bytes, and what must be true of it: for tests with random bytes, and for fuzzing.

use dml_cuda::{
    validate, BufferTensorDesc, Device, FeatureLevel, FillValueSequenceDesc, OperatorDesc,
    ReverseSubsequencesDesc, ScalarUnion, TensorDataType, TensorFlags,
};

use super::{assert_same, cases, oracle, run, Random};

/// Numbers out of bytes, zeros when they are at their end.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn u8(&mut self) -> u8 {
        let (first, rest) = self
            .0
            .split_first()
            .map_or((0, &[][..]), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.u8()))
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(self.u8()) % bound
    }

    /// Mostly small; now and then around a power of two.
    fn size(&mut self) -> u32 {
        match self.u8() {
            0 => 0,
            small @ 1..=199 => 1 + u32::from(small % 4),
            more @ 200..=249 => u32::from(more - 199),
            _ => (1u32 << (self.u8() % 32))
                .wrapping_add(u32::from(self.u8() % 5))
                .wrapping_sub(2),
        }
    }

    fn sizes(&mut self, rank: usize) -> Vec<u32> {
        (0..rank).map(|_| self.size()).collect()
    }

    /// Strides of dimensions in any order in memory, each followed by a gap.
    fn nested(&mut self, sizes: &[u32]) -> Vec<u32> {
        let mut order = Vec::from_iter(0..sizes.len());
        (0..sizes.len()).for_each(|n| order.swap(n, n + self.below(sizes.len() - n)));
        cases::nested_strides(sizes, order, || u32::from(self.u8() % 3))
    }

    fn tensor(&mut self, data_type: TensorDataType, sizes: &[u32]) -> BufferTensorDesc {
        let mut tensor = match self.below(5) {
            0 | 1 => BufferTensorDesc::packed(data_type, sizes),
            2 | 3 => BufferTensorDesc::strided(data_type, sizes, &self.nested(sizes)),
            _ => {
                let mut any = || {
                    if self.below(8) == 0 {
                        self.size()
                    } else {
                        self.below(14) as u32
                    }
                };
                BufferTensorDesc::strided(
                    data_type,
                    sizes,
                    &sizes.iter().map(|_| any()).collect::<Vec<_>>(),
                )
            }
        };
        let total = &mut tensor.total_tensor_size_in_bytes;
        match self.u8() {
            0..=200 => {}
            201..=215 => *total = total.saturating_add(self.u64() % 70),
            216..=222 => *total = total.saturating_sub(self.u64() % 9),
            223..=229 => *total = self.u64(),
            230..=240 => tensor.guaranteed_base_offset_alignment = 64,
            241..=250 => tensor.guaranteed_base_offset_alignment = self.size(),
            _ => tensor.flags = TensorFlags::OwnedByDml,
        }
        tensor
    }

    fn data_type(&mut self) -> TensorDataType {
        TensorDataType::ALL[self.below(TensorDataType::ALL.len())]
    }

    /// Mostly one that fits, or nearly.
    pub fn desc(&mut self) -> OperatorDesc {
        use TensorDataType::{Int32, UInt32, UInt64};
        let (data_type, rank) = (self.data_type(), self.below(10));
        let sizes = self.sizes(rank);
        if self.below(2) == 0 {
            return FillValueSequenceDesc {
                output_tensor: self.tensor(data_type, &sizes),
                value_data_type: if self.below(30) == 0 {
                    self.data_type()
                } else {
                    data_type
                },
                value_start: ScalarUnion::UInt64(self.u64()),
                value_delta: ScalarUnion::UInt64(self.u64()),
            }
            .into();
        }
        let axis = self.below(rank + 1);
        let mut lengths_sizes = sizes.clone();
        lengths_sizes
            .get_mut(axis)
            .into_iter()
            .for_each(|size| *size = 1);
        let (length_type, mut output_sizes, mut output_type) = (
            [UInt32, UInt64, UInt32, UInt64, Int32][self.below(5)],
            sizes.clone(),
            data_type,
        );
        match self.below(40) {
            0 => output_type = self.data_type(),
            1 => output_sizes = self.sizes(rank),
            2 => lengths_sizes = self.sizes(rank),
            3 => lengths_sizes.push(1),
            _ => {}
        }
        ReverseSubsequencesDesc {
            input_tensor: self.tensor(data_type, &sizes),
            sequence_lengths_tensor: self.tensor(length_type, &lengths_sizes),
            output_tensor: self.tensor(output_type, &output_sizes),
            axis: axis as u32,
        }
        .into()
    }
}

/// Elements that the oracle can walk through.
const FEW: f64 = 2e4;

/// Checks that a descriptor has the oracle's verdict, and leaves the oracle's bytes on a device, out of place and in
/// place. Returns the verdict, or `None` for a descriptor that is too large for the oracle.
pub fn check(device: &Device, desc: &OperatorDesc, seed: u64) -> Option<bool> {
    let mut tensors = desc.input_tensors();
    tensors.push(desc.output_tensor());
    if tensors.iter().any(|tensor| {
        tensor
            .sizes
            .iter()
            .map(|&size| f64::from(size))
            .product::<f64>()
            > FEW
    }) {
        return None;
    }
    let verdict = validate(desc, FeatureLevel::HIGHEST);
    assert_eq!(
        verdict.is_ok(),
        oracle::accepts(desc),
        "{desc:?}\n{verdict:?}"
    );
    // A run begins a tensor at its alignment, which may be 2 GiB.
    let large = |tensor: &&BufferTensorDesc| {
        tensor.total_tensor_size_in_bytes > 1 << 20
            || tensor.guaranteed_base_offset_alignment > 1 << 16
    };
    if verdict.is_err() || tensors.iter().any(large) {
        return Some(verdict.is_ok());
    }
    let compare = |desc: &OperatorDesc, in_place| {
        let inputs = cases::inputs(&mut Random(seed), desc);
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let required = oracle::expected(desc, &inputs, in_place);
        assert_same(
            device,
            desc,
            &run(device, desc, &inputs, in_place),
            &required,
        );
    };
    compare(desc, false);
    if let OperatorDesc::ReverseSubsequences(mut desc) = desc.clone() {
        desc.input_tensor = desc.output_tensor.clone();
        compare(&desc.into(), true);
    }
    Some(true)
}
