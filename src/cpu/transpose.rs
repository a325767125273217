//! Interleaved lanes, copied to a buffer and reversed there.
//!
//! ```text
//! tensor   | a0 b0 c0 d0 ... |        tile    a0 b0 .. | a1 b1 .. | ...      strip 0: one cache line of every row
//!          | a1 b1 c1 d1 ... |                c0 d0 .. | c1 d1 .. | ...      strip 1
//! ```
//!
//! In the tensor a lane has its elements a row apart, often a power of two of bytes, so that they evict each other from
//! the caches. In a strip they are a cache line apart. `cpu_reverse.rs` reads whole rows into the tile, has each lane
//! reversed by its length, and writes whole rows.

use std::ops::Range;

use bytemuck::Pod;

/// The most and the fewest bytes of each row that are in a tile, and the target size of a tile in between. Wide rows
/// are read and written faster (benches/TUNING.md).
const WIDEST_PIECE_BYTES: usize = 4096;
const NARROWEST_PIECE_BYTES: usize = 256;
const TILE_BYTES: usize = 2 << 20;

/// The largest tile. Longer lanes are reversed in the tensor itself.
const MAX_TILE_BYTES: usize = 64 << 20;

/// Narrower rows would leave lines of a tile partly empty, and shorter lanes do not repay the copy.
const MIN_ROW_BYTES: usize = 64;
const MIN_LANE: usize = 8;

/// A cache line of a row: 64 bytes, or the elements of 3 or 5 to 7 bytes that fit in it.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line<T, const LANES: usize>([T; LANES]);

/// Neighbouring lanes, strip by strip: a strip is one cache line of every row, one after another. A lane is reversed
/// within its strip, which fits in the nearest caches. In the tensor itself, rows are often a power of two apart, and
/// the lines of different rows would evict each other.
pub(super) struct Tile<T, const LANES: usize> {
    /// Rows of a strip: the size of a lane.
    size: usize,
    lines: Vec<Line<T, LANES>>,
}

impl<T: Pod, const LANES: usize> Tile<T, LANES> {
    /// Whether a tile is faster for `row` interleaved lanes of `size` elements, and is not too large.
    fn pays(size: usize, row: usize) -> bool {
        let bytes = size * size_of::<Line<T, LANES>>();
        size >= MIN_LANE && row * size_of::<T>() >= MIN_ROW_BYTES && bytes <= MAX_TILE_BYTES
    }

    /// A tile for `row` interleaved lanes of `size` elements, if it is faster and there is memory for it.
    pub fn that_pays(size: usize, row: usize) -> Option<Self> {
        Self::pays(size, row)
            .then(|| Self::new(size, row))
            .flatten()
    }

    fn new(size: usize, row: usize) -> Option<Self> {
        let line = size_of::<Line<T, LANES>>();
        let strips = (TILE_BYTES / size).clamp(NARROWEST_PIECE_BYTES, WIDEST_PIECE_BYTES) / line;
        let strips = row
            .div_ceil(LANES)
            .min(strips)
            .min(MAX_TILE_BYTES / (size * line))
            .max(1);
        let mut lines = Vec::new();
        lines.try_reserve_exact(size * strips).ok()?;
        lines.resize(size * strips, Line([T::zeroed(); LANES]));
        Some(Self { size, lines })
    }

    /// Cuts a row of lanes into pieces that fit in the tile.
    pub fn pieces(&self, row: usize) -> impl Iterator<Item = Range<usize>> {
        let width = self.lines.len() / self.size * LANES;
        (0..row)
            .step_by(width)
            .map(move |begin| begin..row.min(begin + width))
    }

    /// Copies element t of every lane into the tile.
    pub fn read(&mut self, t: usize, row: &[T]) {
        let mut lines = self.lines[t..].iter_mut().step_by(self.size);
        let whole = row.chunks_exact(LANES);
        let rest = whole.remainder();
        whole
            .zip(&mut lines)
            .for_each(|(from, line)| line.0.copy_from_slice(from));
        if let Some(line) = lines.next() {
            line.0[..rest.len()].copy_from_slice(rest);
        }
    }

    /// Copies element t of every lane out of the tile.
    pub fn write(&self, t: usize, row: &mut [T]) {
        let mut lines = self.lines[t..].iter().step_by(self.size);
        let mut whole = row.chunks_exact_mut(LANES);
        (&mut whole)
            .zip(&mut lines)
            .for_each(|(to, line)| to.copy_from_slice(&line.0));
        let rest = whole.into_remainder();
        if let Some(line) = lines.next() {
            rest.copy_from_slice(&line.0[..rest.len()]);
        }
    }

    /// Reverses the first `length(j)` elements of each lane j below `lanes`.
    pub fn reverse(&mut self, lanes: usize, length: impl Fn(usize) -> usize) {
        for (strip, first) in self
            .lines
            .chunks_exact_mut(self.size)
            .zip((0..lanes).step_by(LANES))
        {
            for j in 0..LANES.min(lanes - first) {
                let length = length(first + j);
                let (front, back) = strip[..length].split_at_mut(length / 2);
                for (a, b) in front.iter_mut().zip(back.iter_mut().rev()) {
                    std::mem::swap(&mut a.0[j], &mut b.0[j]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reverses lanes through a tile and compares them with lanes that a plain loop reverses. Returns the number of
    /// pieces that the row was cut into.
    fn check<T: Pod + std::fmt::Debug + PartialEq, const LANES: usize>(
        size: usize,
        row: usize,
        make: fn(usize) -> T,
    ) -> usize {
        let elements: Vec<T> = (0..size * row).map(|n| make(n ^ n >> 5)).collect();
        let length = |j: usize| j * 7 % (size + 1);
        let mut out = vec![make(0); elements.len()];
        let mut tile = Tile::<T, LANES>::new(size, row).expect("memory");
        let pieces: Vec<Range<usize>> = tile.pieces(row).collect();
        assert!(
            pieces.iter().map(Range::len).sum::<usize>() == row,
            "{size}, {row}: {pieces:?}"
        );
        for lanes in &pieces {
            (0..size).for_each(|t| tile.read(t, &elements[t * row..][lanes.clone()]));
            tile.reverse(lanes.len(), |j| length(lanes.start + j));
            (0..size).for_each(|t| tile.write(t, &mut out[t * row..][lanes.clone()]));
        }
        for (n, found) in out.iter().enumerate() {
            let (t, j) = (n / row, n % row);
            let from = if t < length(j) { length(j) - 1 - t } else { t };
            assert_eq!(
                *found,
                elements[from * row + j],
                "element {t} of lane {j}, {size} and {row}"
            );
        }
        pieces.len()
    }

    #[test]
    fn tiles_stay_below_the_largest_size() {
        assert!(!Tile::<u8, 64>::pays(1 << 29, 1 << 10));
        assert!(!Tile::<u64, 8>::pays((1 << 20) + 1, 8));
        for (size, row) in [(1 << 20, 1 << 20), (100_000, 70_000), (512, 768)] {
            let tile = Tile::<u16, 32>::that_pays(size, row).expect("memory");
            assert!(tile.lines.len() * 64 <= MAX_TILE_BYTES, "{size}, {row}");
            assert!(
                tile.pieces(row).map(|lanes| lanes.len()).sum::<usize>() == row,
                "{size}, {row}"
            );
        }
    }

    #[test]
    fn rows_are_cut_into_what_a_tile_holds_and_reversed_piece_by_piece() {
        assert_eq!(check::<u8, 64>(3, 9000, |n| n as u8), 3);
        assert_eq!(check::<u8, 64>(2101, 1100, |n| n as u8), 2);
        assert_eq!(check::<u16, 32>(40, 33, |n| n as u16), 1);
        assert_eq!(check::<u32, 16>(1000, 700, |n| n as u32), 2);
        assert_eq!(
            check::<[u8; 3], 21>(1030, 1100, |n| [n as u8, (n >> 8) as u8, 9]),
            2
        );
        assert_eq!(check::<u64, 8>(7, 513, |n| n as u64), 2);
    }
}
