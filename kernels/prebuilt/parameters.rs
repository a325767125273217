// Written by scripts/parameters.py from kernels/parameters.cuh, which has the comments.
pub const THREADS: u32 = 256;
pub const MAX_DIMS: u32 = 8;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FastDiv {
    pub divisor: u32,
    pub multiplier: u32,
    pub shift1: u32,
    pub shift2: u32,
}
const _: () = assert!(size_of::<FastDiv>() == 16);

pub mod fill {
use super::*;
pub const INT8: u32 = 0;
pub const INT16: u32 = 1;
pub const INT32: u32 = 2;
pub const INT64: u32 = 3;
pub const FLOAT32: u32 = 4;
pub const FLOAT16: u32 = 5;
pub const FLOAT64: u32 = 6;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FillPacked {
    pub out: u64,
    pub start: u64,
    pub delta: u64,
    pub count: u32,
    pub arithmetic: u32,
    pub pattern: [u32; 4],
}
const _: () = assert!(size_of::<FillPacked>() == 48);

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FillDim {
    pub size: FastDiv,
    pub stride: u32,
    pub step: u32,
}
const _: () = assert!(size_of::<FillDim>() == 24);

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct FillStrided {
    pub out: u64,
    pub start: u64,
    pub delta: u64,
    pub items: u64,
    pub parts: FastDiv,
    pub inner: FastDiv,
    pub middle: FastDiv,
    pub row_size: u32,
    pub row_step: u32,
    pub middle_step: u32,
    pub outer_step: u32,
    pub rank: u32,
    pub group_size_log2: u32,
    pub whole: u32,
    pub arithmetic: u32,
    pub pattern: [u32; 4],
    pub tables: [u32; 60],
    pub dims: [FillDim; 8],
}
const _: () = assert!(size_of::<FillStrided>() == 560);
pub const DENSE_VECTORS: u32 = 8;
}

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ReverseDim {
    pub size: FastDiv,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
    pub axis: u32,
}
const _: () = assert!(size_of::<ReverseDim>() == 32);

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Reverse {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u32,
    pub rank: u32,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub wide_lengths: u32,
    pub dims: [ReverseDim; 8],
    pub in_bytes: u64,
    pub form: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<Reverse>() == 320);

pub mod elementwise {
use super::*;
pub const SINGLE_UNITS: u32 = 0;
pub const GATHERED_VECTORS: u32 = 1;
pub const GATHERED_HALF_VECTORS: u32 = 2;
pub const IN_ROWS: u32 = 4;
pub const ITEMS_PER_THREAD: u32 = 4;
pub const PAIRS_PER_THREAD: u32 = 2;
pub const FEW_DIMENSIONS: u32 = 3;
pub const UNROLLED_DIMENSIONS: u32 = 5;
pub const MOST_THREADS: u32 = 1024;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct SmallDim {
    pub multiplier: u32,
    pub divisor: u32,
    pub in_stride: u32,
    pub out_stride: u32,
    pub length_stride: u32,
}
const _: () = assert!(size_of::<SmallDim>() == 20);
pub const WIDE_LENGTHS: u32 = 1;
pub const MANY_DIMENSIONS: u32 = 2;
pub const AXIS: u32 = 16;
pub const GATHERS: u32 = 1<<31;
pub const SWAPS: u32 = 1<<31;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Small {
    pub input: u64,
    pub lengths: u64,
    pub out: u64,
    pub items: u32,
    pub flags: u32,
    pub lanes: u32,
    pub axis_size: u32,
    pub axis_in_stride: u32,
    pub axis_out_stride: u32,
    pub dims: [SmallDim; 5],
    pub reserved: u32,
}
const _: () = assert!(size_of::<Small>() == 152);
}

pub mod segments {
use super::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Segments {
    pub r: Reverse,
    pub segment_bytes: FastDiv,
    pub row_bytes: FastDiv,
    pub segments_per_block: u32,
    pub vectors_per_segment: u32,
    pub group_size_log2: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<Segments>() == 368);
}

pub mod rows {
use super::*;
pub const MIN_JOINED_ROW: u32 = 16;
pub const RUN_SLACK_BEFORE: u32 = 1;
pub const RUN_SLACK_BEHIND: u32 = 2;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct RowTiles {
    pub r: Reverse,
    pub tiles_per_data_block: FastDiv,
    pub parts_per_row: FastDiv,
    pub row_bytes: FastDiv,
    pub rows_per_tile: u32,
    pub tile_row_bytes: u32,
    pub element_bytes: u32,
    pub group_size_log2: u32,
}
const _: () = assert!(size_of::<RowTiles>() == 384);
}

pub mod short_lanes {
use super::*;
pub const MOST_LANES: u32 = 4;
pub const FEW_DIMENSIONS: u32 = 3;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ShortLanes {
    pub r: Reverse,
    pub width: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<ShortLanes>() == 328);
}

pub mod lanes {
use super::*;
pub const VECTORS_PER_THREAD: u32 = 2;
pub const TILES_PER_BLOCK: u32 = 8;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Lanes {
    pub r: Reverse,
    pub tiles_per_lane: FastDiv,
    pub vectors_per_lane: u32,
    pub group_size_log2: u32,
}
const _: () = assert!(size_of::<Lanes>() == 344);
}

pub mod strips {
use super::*;
pub const MOST_THREADS: u32 = 1024;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Strips {
    pub r: Reverse,
    pub strips_per_row: FastDiv,
    pub row_lanes: u32,
    pub strip_bytes: u32,
    pub length_stride: u32,
    pub unaligned: u32,
}
const _: () = assert!(size_of::<Strips>() == 352);
}

pub mod clusters {
use super::*;
pub const CLUSTER: u32 = 8;
pub const DEAL: u32 = 32;
pub const CLUSTER_THREADS: u32 = 512;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Clusters {
    pub r: Reverse,
    pub strips_per_row: FastDiv,
    pub row_lanes: u32,
    pub strip_bytes: u32,
    pub length_stride: u32,
    pub lane_pitch: u32,
}
const _: () = assert!(size_of::<Clusters>() == 352);
}

pub mod columns {
use super::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Columns {
    pub r: Reverse,
    pub axis: FastDiv,
    pub columns: FastDiv,
    pub group_bytes: FastDiv,
    pub groups_per_block: u32,
    pub length_stride: u32,
}
const _: () = assert!(size_of::<Columns>() == 376);

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ThreadColumns {
    pub r: Reverse,
    pub pieces: FastDiv,
    pub length_stride: u32,
    pub lanes: u32,
}
const _: () = assert!(size_of::<ThreadColumns>() == 344);
pub const LOADS_IN_FLIGHT: u32 = 8;
}

pub mod transposed {
use super::*;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Along {
    pub inner: ReverseDim,
    pub outer: ReverseDim,
    pub size: u32,
}
const _: () = assert!(size_of::<Along>() == 68);
pub const READ: u32 = 0;
pub const WRITE: u32 = 1;
pub const REVERSE_ROWS: u32 = 2;
pub const REVERSE_COLUMNS: u32 = 3;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Transposed {
    pub r: Reverse,
    pub along_in: Along,
    pub along_out: Along,
    pub tiles: FastDiv,
    pub tiles_along_out: FastDiv,
    pub how: u32,
    pub two: u32,
    pub tile: u32,
    pub reserved: u32,
}
const _: () = assert!(size_of::<Transposed>() == 504);
pub const TILE: u32 = 64;
pub const SMALL_TILE: u32 = 32;
pub const TILE_OUT: u32 = 128;
pub const TILE_IN_BYTES: u32 = 128;
pub const TILE_DIMS: u32 = 5;
pub const TILES_PER_BLOCK: u32 = 4;

#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct Direct {
    pub r: Reverse,
    pub threads: [FastDiv; 5],
    pub steps: [u32; 5],
    pub sizes: [u32; 5],
    pub next: ReverseDim,
    pub repeated: u32,
    pub tiles: u32,
    pub tile_rank: u32,
    pub scatters: u32,
}
const _: () = assert!(size_of::<Direct>() == 488);
}
