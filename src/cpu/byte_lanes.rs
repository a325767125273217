//! Reverses lanes of bytes sixteen at a time: transposed, so that the bytes of a lane lie one behind the other, moved as
//! whole lanes, and transposed back. A processor moves one byte no faster than sixteen; swapped one by one, bytes take
//! longer than all the rest.
//!
//! The arrays here have the size of vector registers, so that the compiler makes of [`interleave`] the instruction for it:
//! on x86-64, of Rust 1.95, all of it is vectors.

use bytemuck::{must_cast, must_cast_slice_mut};

use super::line::{swap, Line};

/// Lanes that are transposed together: a vector register of a row.
const GROUP: usize = 16;

/// Rows that are transposed together: a word of each lane.
pub(super) const BLOCK: usize = 8;

/// Bytes in a vector register, as the words on which logic is done.
type Bits = [u64; GROUP / 8];

/// What is beside a strip while it is reversed.
#[derive(Default)]
pub(super) struct Workspace {
    /// The lanes of a group.
    lanes: Vec<u64>,
    /// By row: all bits of each lane that ends before it. Between groups, none.
    ends: Vec<[u8; GROUP]>,
}

/// Reverses the first `lengths[j]` bytes of each lane j. The strip is of whole blocks.
///
/// The memory of a lane is a constant, so that one check of a word's place serves all lanes; and no power of two, so that
/// lanes lie in different sets of a cache. There are two sizes, as a small dispatch would wait for the large one to be
/// cleared; strips of fewer rows are faster swapped (benches/TUNING.md).
pub(super) fn reverse<const LANES: usize>(
    strip: &mut [Line<u8, LANES>],
    lengths: &[usize; LANES],
    workspace: &mut Workspace,
) {
    match strip.len() {
        32..=1024 => transposed::<LANES, { 1024 / BLOCK + 8 }>(strip, lengths, workspace),
        1025..=16384 => transposed::<LANES, { 16384 / BLOCK + 8 }>(strip, lengths, workspace),
        _ => swap(strip, lengths),
    }
}

fn transposed<const LANES: usize, const WORDS: usize>(
    strip: &mut [Line<u8, LANES>],
    lengths: &[usize; LANES],
    Workspace { lanes, ends }: &mut Workspace,
) {
    if lanes.is_empty() {
        *lanes = vec![0; WORDS * GROUP];
        *ends = vec![[0; GROUP]; strip.len() + 1];
    }
    let lanes: &mut [[u64; WORDS]; GROUP] = bytemuck::from_bytes_mut(must_cast_slice_mut(lanes));
    for (g, lengths) in lengths.chunks_exact(GROUP).enumerate() {
        let longest = lengths.iter().max().map_or(0, |longest| longest.next_multiple_of(BLOCK));
        let strip = &mut strip[..longest];
        to_lanes(strip, g, lanes);
        for (j, &length) in lengths.iter().enumerate() {
            // A lane is reversed whole, with what is behind its end: that comes first now.
            must_cast_slice_mut::<u64, u8>(&mut lanes[j]).copy_within(longest - length..longest, 0);
            ends[length][j] = !0;
        }
        from_lanes(strip, g, lanes, ends);
        lengths.iter().for_each(|&length| ends[length] = [0; GROUP]);
    }
}

/// Takes a group of lanes, each from the strip's last row to its first.
fn to_lanes<const LANES: usize, const WORDS: usize>(
    strip: &[Line<u8, LANES>],
    g: usize,
    lanes: &mut [[u64; WORDS]; GROUP],
) {
    for (word, rows) in strip.chunks_exact(BLOCK).rev().enumerate() {
        let rows: [[u8; GROUP]; BLOCK] = std::array::from_fn(|t| group(&rows[BLOCK - 1 - t], g));
        // Three bits of a byte's place are its row's, four its lane's: three turns exchange them.
        let words: [u64; GROUP] = must_cast(interleave(interleave(interleave(must_cast(rows)))));
        (0..GROUP).for_each(|j| lanes[j][word] = words[j]);
    }
}

/// Gives a group of lanes, each up to its end. What is behind stays as it is.
fn from_lanes<const LANES: usize, const WORDS: usize>(
    strip: &mut [Line<u8, LANES>],
    g: usize,
    lanes: &[[u64; WORDS]; GROUP],
    ends: &[[u8; GROUP]],
) {
    let mut within: Bits = must_cast([u8::MAX; GROUP]);
    for (word, (rows, ends)) in strip.chunks_exact_mut(BLOCK).zip(ends.chunks_exact(BLOCK)).enumerate() {
        let words: [u64; GROUP] = std::array::from_fn(|j| lanes[j][word]);
        let reversed: [Bits; BLOCK] = must_cast(interleave(interleave(interleave(interleave(must_cast(words))))));
        for t in 0..BLOCK {
            let (old, end): (Bits, Bits) = (must_cast(group(&rows[t], g)), must_cast(ends[t]));
            within = std::array::from_fn(|n| within[n] & !end[n]);
            let new: Bits = std::array::from_fn(|n| old[n] ^ ((old[n] ^ reversed[t][n]) & within[n]));
            rows[t].0[g * GROUP..][..GROUP].copy_from_slice(&must_cast::<Bits, [u8; GROUP]>(new));
        }
    }
}

/// A row's bytes of a group of lanes.
fn group<const LANES: usize>(row: &Line<u8, LANES>, g: usize) -> [u8; GROUP] {
    let mut bytes = [0; GROUP];
    bytes.copy_from_slice(&row.0[g * GROUP..][..GROUP]);
    bytes
}

/// Each byte of the first half, then its counterpart of the second: the seven bits of a byte's place rotated by one.
fn interleave(bytes: [u8; GROUP * BLOCK]) -> [u8; GROUP * BLOCK] {
    let (first, second) = bytes.split_at(GROUP * BLOCK / 2);
    let mut both = [0; GROUP * BLOCK];
    for ((both, first), second) in both.chunks_exact_mut(2).zip(first).zip(second) {
        both[0] = *first;
        both[1] = *second;
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_transposed_are_bytes_swapped_one_by_one() {
        let mut state = 1u32;
        let mut random = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize
        };
        for size in [32, 40, 256, 1016, 1024, 1032, 4096, 16384] {
            let mut workspace = Workspace::default();
            for round in 0..6 {
                let mut strip: Vec<Line<u8, 64>> =
                    (0..size).map(|_| Line(std::array::from_fn(|_| random() as u8))).collect();
                // The first has lanes of all lengths; some have short lanes only, or groups with none.
                let most = [size, size, 1, 9, size / 2, 0][round];
                let mut lengths: [usize; 64] = std::array::from_fn(|_| random() % (most + 1));
                lengths[round * 11] = most;
                let mut required = strip.clone();
                swap(&mut required, &lengths);
                reverse(&mut strip, &lengths, &mut workspace);
                for (t, (found, required)) in strip.iter().zip(&required).enumerate() {
                    assert_eq!(found.0, required.0, "row {t} of {size}, lanes of {lengths:?}");
                }
            }
        }
    }
}
