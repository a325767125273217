//! The coefficients of the cost model, by kernel family and bytes of the unit: 1, 2, 4, 8 and 16. Written by
//! scripts/fit-estimates.py from the files
//! h100-bench, h100-padded, h100-seed-1902, h100-seed-1904, h100-seed-1915, h100-seed-2001, h100-seed-4001,
//! h100-seed-4005, h100-seed-4008, h100-seed-4010, h100-seed-4011, h100-seed-5001, h100-seed-7001, h100-seed-7202,
//! h100-transposed, h200-seed-12, h200-seed-1908, h200-seed-9001, h200-seed-9100, h200-seed-9201, h200-seed-9202,
//! h200-seed-9701, h200-seed-9702, h200-seed-9801, h200-seed-9811, h200-seed-9812.
//!
//! The columns: launch, memory, misses, warps, rounds. A cost says nothing if its term is always near 0 for the
//! recorded layouts.

use super::estimate::FamilyCosts;

pub(crate) static CLUSTERS: FamilyCosts = FamilyCosts { name: "clusters", modes: [&[
    [1.000, 1.108, 0.5128, 62.58, 0.5965],
    [1.000, 1.472, 0.0, 40.07, 0.3747],
    [1.000, 1.099, 0.0, 26.03, 0.6214],
    [1.405, 1.158, 0.004418, 40.41, 0.06229],
], &[
    [2.426, 1.000, 0.0009641, 34.18, 0.0],
    [1.171, 1.062, 0.0, 40.50, 0.1343],
    [1.176, 1.000, 0.2821, 28.94, 0.2749],
    [1.599, 1.000, 1.845, 28.91, 0.2675],
]] };

pub(crate) static COLUMNS: FamilyCosts = FamilyCosts { name: "columns", modes: [&[
    [1.569, 1.000, 0.0, 7.418, 0.2531],
    [1.505, 1.000, 0.0002180, 3.514, 0.2759],
    [1.463, 1.000, 7.034, 5.983, 0.2171],
], &[]] };

pub(crate) static ELEMENTWISE: FamilyCosts = FamilyCosts { name: "elementwise", modes: [&[
    [1.391, 1.421, 0.8124, 15.22, 0.0],
    [1.409, 1.145, 0.6442, 15.52, 0.0],
    [1.550, 1.464, 1.097, 0.0, 0.0],
    [1.673, 1.061, 1.473, 0.0, 0.0],
], &[
    [1.454, 1.000, 1.443, 10.35, 0.0],
    [1.359, 1.025, 1.159, 11.79, 0.0],
    [1.305, 1.000, 1.476, 12.97, 0.0],
    [1.437, 1.082, 2.643, 0.0, 0.0],
]] };

pub(crate) static LANES: FamilyCosts = FamilyCosts { name: "lanes", modes: [&[
    [1.130, 1.025, 2.193, 1.630, 0.2122],
    [1.085, 1.178, 2.535, 11.07, 0.1895],
    [1.196, 1.205, 1.873, 7.299, 0.1493],
], &[
    [1.065, 1.000, 1.778, 7.706, 0.1986],
    [1.275, 1.000, 1.750, 9.640, 0.1355],
    [1.331, 1.000, 0.0, 10.99, 0.09363],
]] };

pub(crate) static LONG_LANES: FamilyCosts = FamilyCosts { name: "long_lanes", modes: [&[
    [1.680, 1.000, 1.044, 3.530, 0.8202],
    [1.839, 1.105, 0.7832, 5.725, 0.4719],
], &[
    [1.000, 1.093, 0.0, 31.14, 1.414],
    [1.000, 1.034, 3562.0, 28.42, 1.861],
    [1.000, 1.015, 0.8622, 27.88, 1.481],
    [2.476, 1.075, 0.03515, 29.01, 0.1310],
]] };

pub(crate) static PACKED_LANES: FamilyCosts = FamilyCosts { name: "packed_lanes", modes: [&[
    [2.259, 1.000, 0.0001394, 3.966, 0.08082],
    [1.715, 1.000, 0.0001824, 6.786, 0.1293],
    [2.076, 1.000, 0.07970, 0.0, 0.08977],
], &[
    [1.944, 1.000, 4578.0, 0.0, 0.2492],
    [1.880, 1.000, 0.003519, 0.0, 0.2290],
]] };

pub(crate) static PACKED_ROWS: FamilyCosts = FamilyCosts { name: "packed_rows", modes: [&[
    [2.028, 1.036, 0.8411, 0.8080, 0.09958],
    [1.769, 1.000, 0.3594, 0.7145, 0.1430],
], &[
    [1.384, 1.000, 3.494, 2.547, 0.3581],
    [1.830, 1.173, 8.101, 0.9942, 0.1568],
    [1.585, 1.084, 5.584, 0.06313, 0.1682],
]] };

pub(crate) static ROW_TILES: FamilyCosts = FamilyCosts { name: "row_tiles", modes: [&[
    [1.756, 1.000, 0.0, 12.18, 0.0],
    [1.637, 1.000, 0.0, 11.82, 0.0],
    [1.644, 1.000, 0.0, 12.15, 0.0],
], &[
    [1.795, 1.278, 0.0, 7.559, 0.0],
    [1.744, 1.000, 0.0, 9.193, 0.0],
    [1.584, 1.000, 0.0, 8.468, 0.0],
]] };

pub(crate) static ROWS: FamilyCosts = FamilyCosts { name: "rows", modes: [&[
    [1.919, 1.462, 2.511, 0.0, 0.0],
], &[]] };

pub(crate) static SMALL: FamilyCosts = FamilyCosts { name: "small", modes: [&[
    [1.000, 1.273, 0.4679, 6.331, 0.08250],
    [1.000, 1.294, 0.9791, 6.332, 0.07191],
    [1.033, 1.010, 0.9773, 8.744, 0.0],
    [1.022, 1.051, 1.069, 11.24, 0.0],
    [1.000, 1.000, 5.478, 0.0, 0.0],
], &[
    [1.000, 1.808, 1.649, 3.381, 0.2856],
    [1.219, 1.624, 1.493, 6.099, 0.0],
    [1.174, 1.278, 1.457, 7.443, 0.0],
    [1.231, 1.430, 2.508, 0.0, 0.0],
    [1.246, 1.000, 2.529, 0.2157, 0.0],
]] };

pub(crate) static SMALL_EXCHANGE: FamilyCosts = FamilyCosts { name: "small_exchange", modes: [&[], &[
    [1.000, 2.663, 1.313, 6.600, 0.0],
    [1.000, 2.101, 1.606, 6.155, 0.0],
    [1.000, 1.784, 0.9718, 5.858, 0.0],
    [1.000, 2.153, 3.410, 0.0, 0.0],
    [1.000, 1.733, 5.189, 5.494, 0.0],
]] };

pub(crate) static SMALL_SCATTER: FamilyCosts = FamilyCosts { name: "small_scatter", modes: [&[
    [1.000, 2.370, 2.088, 0.7814, 0.0],
    [1.000, 2.287, 2.390, 0.1974, 0.0],
    [1.000, 4.301, 0.3236, 0.2670, 0.0],
    [1.000, 2.323, 0.4535, 0.4268, 0.0],
], &[]] };

pub(crate) static STRIPS: FamilyCosts = FamilyCosts { name: "strips", modes: [&[
    [1.084, 1.000, 0.0, 24.25, 0.1150],
    [1.041, 1.020, 8096.0, 19.19, 0.1255],
    [1.265, 1.206, 212.9, 21.05, 0.02612],
    [1.268, 1.305, 0.5902, 20.38, 0.01386],
], &[
    [1.327, 1.000, 0.003997, 33.35, 0.0],
    [1.263, 1.000, 0.0, 32.86, 0.0],
    [1.000, 1.000, 0.0002181, 45.03, 0.009319],
    [1.082, 1.000, 295.1, 45.63, 0.01041],
]] };

pub(crate) static THREAD_COLUMNS: FamilyCosts = FamilyCosts { name: "thread_columns", modes: [&[
    [1.000, 1.354, 0.06043, 12.22, 0.1395],
    [1.000, 1.016, 1.774, 0.0, 0.3481],
    [1.000, 1.249, 0.1652, 0.0, 0.2833],
    [1.000, 1.000, 3.846, 0.2277, 0.2203],
], &[
    [1.000, 1.534, 3.113, 0.0, 0.2378],
    [1.000, 1.534, 3.113, 0.0, 0.2378],
    [1.000, 1.534, 3.113, 0.0, 0.2378],
    [1.000, 1.233, 6.753, 0.03367, 0.2303],
]] };

pub(crate) static TRANSPOSED: FamilyCosts = FamilyCosts { name: "transposed", modes: [&[
    [1.704, 1.011, 4.080, 8.894, 0.3010],
    [2.422, 1.145, 5.501, 16.56, 0.0],
    [1.000, 1.000, 0.6278, 4.833, 0.2592],
], &[]] };

pub(crate) static TRANSPOSED_DIRECTLY: FamilyCosts = FamilyCosts { name: "transposed_directly", modes: [&[
    [1.261, 2.619, 0.3645, 5.541, 0.1241],
    [1.000, 1.418, 0.4758, 5.829, 0.3558],
    [1.376, 1.446, 0.6721, 3.596, 0.0],
    [1.442, 1.060, 0.6460, 8.189, 0.0],
], &[]] };

pub(crate) static TRANSPOSED_SCATTER: FamilyCosts = FamilyCosts { name: "transposed_scatter", modes: [&[
    [1.097, 1.304, 11.62, 11.98, 0.3155],
    [3.231, 1.000, 8.530, 19.65, 0.0],
], &[]] };

pub(crate) static UNALIGNED_STRIPS: FamilyCosts = FamilyCosts { name: "unaligned_strips", modes: [&[
    [1.123, 1.467, 1.787, 24.54, 0.3453],
    [1.174, 1.252, 3161.0, 20.82, 0.3248],
], &[
    [1.521, 1.000, 0.006845, 27.67, 0.06410],
    [1.496, 1.000, 2.850, 19.14, 0.09906],
    [1.481, 1.000, 0.0, 20.77, 0.1331],
]] };

pub(crate) static VECTORS: FamilyCosts = FamilyCosts { name: "vectors", modes: [&[
    [1.424, 1.535, 0.7774, 15.69, 0.0],
    [1.409, 1.305, 1.115, 14.66, 0.0],
    [1.363, 1.090, 1.236, 12.42, 0.0],
    [1.379, 1.189, 2.060, 2.639, 0.0],
], &[]] };

/// Entry points that are slower specialized, and the bytes of a tensor from which they are.
pub(crate) static GENERIC: &[(&str, u64)] = &[("reverse_rows", 0)];
