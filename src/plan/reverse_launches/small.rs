//! Little work: as few instructions as can be.

use std::ffi::CStr;

use super::{Entry, Launch, Launches, Module, Params};
use crate::plan::{blocks, SLOT, THREADS};

/// kernels/reverse_subsequences_small.cu, narrowest unit first: copying lanes side by side, which are no units of 16 bytes; in
/// place; copying what is loaded without waiting for its length; and the last two for plain layouts.
pub(crate) const ENTRIES: &[&CStr] = &[
    c"reverse_small_1",
    c"reverse_small_2",
    c"reverse_small_4",
    c"reverse_small_8",
    c"reverse_small_swap_1",
    c"reverse_small_swap_2",
    c"reverse_small_swap_4",
    c"reverse_small_swap_8",
    c"reverse_small_swap_16",
    c"reverse_small_send_1",
    c"reverse_small_send_2",
    c"reverse_small_send_4",
    c"reverse_small_send_8",
    c"reverse_small_send_16",
    c"reverse_small_plain_swap_1",
    c"reverse_small_plain_swap_2",
    c"reverse_small_plain_swap_4",
    c"reverse_small_plain_swap_8",
    c"reverse_small_plain_swap_16",
    c"reverse_small_plain_send_1",
    c"reverse_small_plain_send_2",
    c"reverse_small_plain_send_4",
    c"reverse_small_plain_send_8",
    c"reverse_small_plain_send_16",
];

/// Where in the list each kind begins, and how much further its plain ones are.
const COPY: usize = 0;
const SWAP: usize = 4;
const SEND: usize = 9;
const PLAIN: usize = 10;

/// Dimensions that the kernels take, the axis among them.
const DIMENSIONS: u32 = 3;
const PLAIN_DIMENSIONS: u32 = 2;

/// Units of a tensor up to which there is little work: of 16 bytes, and narrower ones. Inner [64, 4096], copying u8 1.65, else
/// 1.88, i64 1.94 and 2.78; block [8, 512, 768] u8, 196,608 units of 16 bytes, 2.3 and 3.1. Before items were sent, inner
/// [256, 4096] u8 4.9, else 3.1; block [64, 256, 256] f32 11.2, else 11.8; i64 in place 9.2, else 8.8.
const WIDE_UNITS: u64 = 1 << 20;
const UNITS: u64 = 1 << 18;

/// The same of lanes side by side. [1, 256, 768], copying u8 2.3, else 2.5, i64 2.4 and 2.8; in place u8 3.4 and 3.8, i64 2.8
/// and 2.5. [8, 128, 256], copying u8 2.7 and 2.4, i64 2.8 and 2.7; in place u8 4.6 and 3.4, i64 3.4 and 2.6.
const UNITS_SIDE_BY_SIDE: u64 = 3 << 16;

impl Launches<'_> {
    /// Units of that many bytes, one a thread, where there are few, in few dimensions.
    pub(super) fn small(&self, in_place: bool, unit: u32) -> Option<Launch<Params>> {
        let params = self.params_of_units(in_place, unit).ok()?;
        let units = params.items * if in_place { 2 } else { 1 };
        let side_by_side = self.row().is_some();
        let most = match unit {
            SLOT => WIDE_UNITS,
            _ if side_by_side => UNITS_SIDE_BY_SIDE,
            _ => UNITS,
        };
        if params.rank > DIMENSIONS || units > most {
            return None;
        }
        // Sent, [16, 256] f32 takes 1.22, plain 1.17, else 1.39; but lanes [1, 256, 768] u8 3.8, not 2.3. In place, plain 1.31,
        // else 1.33.
        let plain = if params.rank <= PLAIN_DIMENSIONS && !self.wide_lengths { PLAIN } else { 0 };
        let first = match (in_place, side_by_side) {
            (false, true) => COPY,
            (false, false) => SEND + plain,
            (true, _) => SWAP + plain,
        };
        let index = first + unit.trailing_zeros() as usize;
        let entry = Entry { module: Module::ReverseSmall, index };
        let blocks = blocks(params.items, 1);
        Some(Launch { entry, blocks, threads: THREADS, shared: 0, alignment: unit, access: unit, params })
    }
}

#[cfg(test)]
mod tests {
    use crate::data_type::TensorDataType::{self, Float32, UInt32, UInt64};
    use crate::desc::{BufferTensorDesc, ReverseSubsequencesDesc};
    use crate::plan::reverse_subsequences::Plan;
    use crate::plan::Target;

    /// The first kernels, copying and in place, for elements of 4 bytes with axis 1; each lane with a length of its own, or
    /// those behind the axis with one.
    fn kernels(sizes: [u32; 3], lengths: TensorDataType, each: bool) -> [&'static str; 2] {
        let tensor = BufferTensorDesc::packed(Float32, &sizes);
        let strides = if each { [sizes[2], 0, 1] } else { [1, 0, 0] };
        let desc = ReverseSubsequencesDesc {
            input_tensor: tensor.clone(),
            sequence_lengths_tensor: BufferTensorDesc::strided(lengths, &[sizes[0], 1, sizes[2]], &strides),
            output_tensor: tensor,
            axis: 1,
        };
        let plan = Plan::new(&desc, &Target::default()).expect("a valid layout");
        let first = |ways: &super::super::Ways| ways.launches[0].entry.name().to_str().expect("ASCII");
        [first(&plan.copy), first(plan.in_place.as_ref().expect("equal strides"))]
    }

    #[test]
    fn little_work_is_sent_but_where_lanes_lie_side_by_side() {
        assert_eq!(kernels([16, 256, 1], UInt32, true), ["reverse_small_plain_send_4", "reverse_small_plain_swap_4"]);
        assert_eq!(kernels([16, 256, 1], UInt64, true), ["reverse_small_send_4", "reverse_small_swap_4"]);
        assert_eq!(kernels([16, 64, 8], UInt32, false), ["reverse_small_send_16", "reverse_small_swap_16"]);
        assert_eq!(kernels([16, 64, 8], UInt32, true), ["reverse_small_4", "reverse_small_swap_4"]);
        assert_eq!(kernels([1, 1 << 19, 1], UInt32, true)[0], "reverse_long_lanes_4");
    }
}
