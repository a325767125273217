//! Reverses lanes of bytes, sixteen lanes at a time: transposes them so that each lane is contiguous, reverses whole
//! lanes, and transposes them back. A processor moves sixteen bytes as fast as one, so swapping bytes one by one would
//! take longer than everything else together.
//!
//! The arrays here have the size of vector registers, so that the compiler turns [`interleave`] into the vector
//! instruction for it. With Rust 1.95 on x86-64, all of this file compiles to vector instructions.

use bytemuck::{must_cast, must_cast_slice_mut};

use super::line::{swap, Line};

/// Lanes that are transposed together: one vector register of a row.
const GROUP: usize = 16;

/// Rows that are transposed together: one word of each lane.
pub(super) const BLOCK: usize = 8;

/// Strips of MIN_ROWS to MAX_ROWS rows are transposed. Those of up to FEW_ROWS use a smaller buffer.
const MIN_ROWS: usize = 32;
const FEW_ROWS: usize = 1024;
const MAX_ROWS: usize = 16384;

/// A vector register as words, for bitwise operations.
type Bits = [u64; GROUP / 8];

/// Memory that reversing a strip of bytes needs besides the strip. All strips of a tile share it.
#[derive(Default)]
pub(super) struct Workspace {
    /// The transposed lanes of a group.
    lanes: Vec<u64>,
    /// For each row, all bits set in the bytes of the lanes that end just before that row. Zero between groups.
    ends: Vec<[u8; GROUP]>,
}

/// Reverses the first `lengths[j]` bytes of each lane j. The strip's rows are whole blocks.
///
/// The memory of a lane has a constant size, so that one bounds check serves all lanes. It is not a power of two, to
/// avoid cache-set conflicts. There are two sizes, because clearing the large one would slow down small dispatches.
/// Strips of fewer or more rows are swapped one by one, which is faster for them (benches/TUNING.md).
pub(super) fn reverse<const LANES: usize>(
    strip: &mut [Line<u8, LANES>],
    lengths: &[usize; LANES],
    workspace: &mut Workspace,
) {
    let rows = strip.len();
    if !(MIN_ROWS..=MAX_ROWS).contains(&rows) {
        swap(strip, lengths);
    } else if rows <= FEW_ROWS {
        transposed::<LANES, { FEW_ROWS / BLOCK + 8 }>(strip, lengths, workspace);
    } else {
        transposed::<LANES, { MAX_ROWS / BLOCK + 8 }>(strip, lengths, workspace);
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
            // The whole lane is reversed already, so the bytes past its end now come first: move the others to the
            // front.
            must_cast_slice_mut::<u64, u8>(&mut lanes[j]).copy_within(longest - length..longest, 0);
            ends[length][j] = !0;
        }
        from_lanes(strip, g, lanes, ends);
        lengths.iter().for_each(|&length| ends[length] = [0; GROUP]);
    }
}

/// Reads a group of lanes from the strip, each from the last row to the first.
fn to_lanes<const LANES: usize, const WORDS: usize>(
    strip: &[Line<u8, LANES>],
    g: usize,
    lanes: &mut [[u64; WORDS]; GROUP],
) {
    for (word, rows) in strip.chunks_exact(BLOCK).rev().enumerate() {
        let rows: [[u8; GROUP]; BLOCK] = std::array::from_fn(|t| group(&rows[BLOCK - 1 - t], g));
        // Three bits of a byte's index are its row, four are its lane. Three rotations exchange them.
        let words: [u64; GROUP] = must_cast(interleave(interleave(interleave(must_cast(rows)))));
        (0..GROUP).for_each(|j| lanes[j][word] = words[j]);
    }
}

/// Writes a group of lanes back to the strip, each up to its end. Bytes past the end stay.
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

/// The bytes of a row that belong to a group of lanes.
fn group<const LANES: usize>(row: &Line<u8, LANES>, g: usize) -> [u8; GROUP] {
    let mut bytes = [0; GROUP];
    bytes.copy_from_slice(&row.0[g * GROUP..][..GROUP]);
    bytes
}

/// Alternates the bytes of the two halves: rotates the seven bits of each byte's index by one.
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
                // The first round has lanes of all lengths; some rounds have only short lanes, or groups of empty
                // lanes.
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
