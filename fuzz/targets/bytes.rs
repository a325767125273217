//! Descriptors out of bytes.

use dml_cuda::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, ScalarUnion, TensorDataType,
    TensorFlags,
};

/// Numbers out of bytes, zeros when they are at their end.
pub struct Bytes<'a>(pub &'a [u8]);

impl Bytes<'_> {
    pub fn u8(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
        self.0 = rest;
        first
    }

    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.u8()))
    }

    /// Mostly small; now and then around a power of two.
    pub fn size(&mut self) -> u32 {
        match self.u8() {
            small @ 0..=199 => u32::from(small % 12),
            more @ 200..=239 => u32::from(more - 200) * 7,
            _ => (1u32 << (self.u8() % 32)).wrapping_add(u32::from(self.u8() % 5)).wrapping_sub(2),
        }
    }

    pub fn tensor(&mut self, data_type: TensorDataType, rank: usize) -> BufferTensorDesc {
        let sizes: Vec<u32> = (0..rank).map(|_| self.size()).collect();
        let strides: Option<Vec<u32>> = (self.u8() % 2 == 1).then(|| sizes.iter().map(|_| self.size()).collect());
        let mut tensor = match &strides {
            Some(strides) => BufferTensorDesc::strided(data_type, &sizes, strides),
            None => BufferTensorDesc::packed(data_type, &sizes),
        };
        match self.u8() {
            0..=200 => {}
            201..=220 => {
                tensor.total_tensor_size_in_bytes = tensor.total_tensor_size_in_bytes.wrapping_add(self.u64() % 9)
            }
            221..=235 => tensor.total_tensor_size_in_bytes = self.u64(),
            236..=245 => tensor.guaranteed_base_offset_alignment = self.size(),
            _ => tensor.flags = TensorFlags::OwnedByDml,
        }
        tensor
    }

    pub fn data_type(&mut self) -> TensorDataType {
        TensorDataType::ALL[usize::from(self.u8()) % TensorDataType::ALL.len()]
    }

    pub fn desc(&mut self) -> OperatorDesc {
        let (data_type, rank) = (self.data_type(), usize::from(self.u8() % 10));
        if self.u8() % 2 == 0 {
            let output_tensor = self.tensor(data_type, rank);
            let other = self.data_type();
            return FillValueSequenceDesc {
                output_tensor,
                value_data_type: if other == TensorDataType::Int4 { other } else { data_type },
                value_start: ScalarUnion::UInt64(self.u64()),
                value_delta: ScalarUnion::UInt64(self.u64()),
            }
            .into();
        }
        let input_tensor = self.tensor(data_type, rank);
        let axis = u32::from(self.u8() % 11);
        let lengths_type =
            [TensorDataType::UInt32, TensorDataType::UInt64, TensorDataType::Int32][usize::from(self.u8() % 3)];
        let mut sequence_lengths_tensor = self.tensor(lengths_type, rank);
        let mut output_tensor = self.tensor(data_type, rank);
        // Mostly shapes that fit, as the others are refused early.
        if self.u8() < 230 {
            let fit = |tensor: &mut BufferTensorDesc| {
                if tensor.strides.is_none() || tensor.sizes != input_tensor.sizes {
                    tensor.sizes.clone_from(&input_tensor.sizes);
                }
            };
            fit(&mut output_tensor);
            fit(&mut sequence_lengths_tensor);
            if let Some(size) = sequence_lengths_tensor.sizes.get_mut(axis as usize) {
                *size = 1;
            }
            for tensor in [&mut output_tensor, &mut sequence_lengths_tensor] {
                tensor.total_tensor_size_in_bytes = tensor.minimum_size_in_bytes().unwrap_or(u64::MAX);
            }
        }
        ReverseSubsequencesDesc { input_tensor, sequence_lengths_tensor, output_tensor, axis }.into()
    }
}
