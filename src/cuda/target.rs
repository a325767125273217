//! The properties of a GPU that selection uses, as plain data.
//!
//! The driver describes a GPU at hand. Named GPUs, such as `h100`, are for machines without one: tests, and
//! `dml-cuda --explain --target`, choose kernels as that GPU would.

use std::fmt;
use std::str::FromStr;

use crate::text::{echoed, number};

/// The properties of a GPU on which the choice of a kernel depends: its limits and its speed.
/// [`Operator::explain`](crate::Operator::explain) takes one, to show the choice without the GPU.
///
/// Parsed from a name of [`GpuTarget::NAMED`], or from a list such as `shared=227,sm=132,clusters,bandwidth=3352`. What
/// the list leaves out is as on an H100, with the bandwidth and the L2 cache in proportion to the SMs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuTarget {
    /// Bytes of shared memory that a thread block can opt in to.
    pub shared_memory: u32,
    /// Streaming multiprocessors (SMs).
    pub multiprocessors: u32,
    /// Whether thread blocks can form clusters (compute capability 9.0 and higher).
    pub clusters: bool,
    /// Memory bandwidth in GB/s: the memory's clock and the width of its bus.
    pub bandwidth: u32,
    /// The SMs' clock in MHz.
    pub clock: u32,
    /// Bytes of the L2 cache.
    pub l2_cache: u32,
    /// The maximum number of resident threads of an SM.
    pub threads: u32,
}

impl GpuTarget {
    /// GPUs by name, with the figures that NVIDIA documents.
    pub const NAMED: &'static [(&'static str, GpuTarget)] = &[
        ("t4", Self::new(64, 40, false, 320, 1590, 4, 1024)),
        ("l4", Self::new(99, 58, false, 300, 2040, 48, 1536)),
        ("a100", Self::new(163, 108, false, 1555, 1410, 40, 2048)),
        ("h100", Self::new(227, 132, true, 3352, 1980, 50, 2048)),
        ("h200", Self::new(227, 132, true, 4917, 1980, 50, 2048)),
        ("b200", Self::new(227, 148, true, 8000, 1965, 126, 2048)),
    ];

    const fn new(
        shared_kib: u32,
        multiprocessors: u32,
        clusters: bool,
        bandwidth: u32,
        clock: u32,
        l2_mib: u32,
        threads: u32,
    ) -> Self {
        let (shared_memory, l2_cache) = (shared_kib << 10, l2_mib << 20);
        Self {
            shared_memory,
            multiprocessors,
            clusters,
            bandwidth,
            clock,
            l2_cache,
            threads,
        }
    }

    /// A GPU with the speed of this number of an H100's SMs.
    pub(crate) const fn with_typical_speed(
        shared_memory: u32,
        multiprocessors: u32,
        clusters: bool,
    ) -> Self {
        /// Text has no larger numbers.
        const fn limited(number: u64) -> u32 {
            if number < 1 << 20 {
                number as u32
            } else {
                1 << 20
            }
        }
        let share = multiprocessors as u64;
        let (bandwidth, l2_cache) = (
            limited((share * 3352).div_ceil(132)),
            limited(share * (50 << 10) / 132) << 10,
        );
        Self {
            shared_memory,
            multiprocessors,
            clusters,
            bandwidth,
            clock: 1980,
            l2_cache,
            threads: 2048,
        }
    }
}

/// Writes what [`GpuTarget::from_str`] reads: a name, or all figures.
impl fmt::Display for GpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = Self::NAMED.iter().find(|(_, target)| target == self) {
            return f.write_str(name);
        }
        let Self {
            shared_memory,
            multiprocessors,
            clusters,
            bandwidth,
            clock,
            l2_cache,
            threads,
        } = self;
        let clusters = if *clusters { ",clusters" } else { "" };
        write!(
            f,
            "shared={},sm={multiprocessors}{clusters},bandwidth={bandwidth},clock={clock},",
            shared_memory >> 10
        )?;
        write!(f, "l2={},threads={threads}", l2_cache >> 10)
    }
}

/// The text is not a [`GpuTarget`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the target is `{0}`, but must be t4, l4, a100, h100, h200, b200, or shared=KIB,sm=COUNT[,clusters][,bandwidth=GBPS][,clock=MHZ][,l2=KIB][,threads=COUNT] with 48 to 1024 KiB of shared memory, 1 to 65536 multiprocessors, 1024 to 1048576 threads, and others from 1 to 1048576")]
pub struct ParseGpuTargetError(String);

impl FromStr for GpuTarget {
    type Err = ParseGpuTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.to_ascii_lowercase();
        if let Some((_, target)) = Self::NAMED.iter().find(|(known, _)| *known == name) {
            return Ok(*target);
        }
        let failed = || ParseGpuTargetError(echoed(text));
        let mut parts: Vec<(&str, &str)> = name
            .split(',')
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .collect();
        // Takes a part out of the list. `None` if it is missing.
        let mut take = |wanted: &str| {
            let at = parts.iter().position(|(key, _)| *key == wanted)?;
            Some(parts.remove(at).1)
        };
        let read = |value: Option<&str>, least: u32, most: u32| {
            let in_range =
                |value: &str| number(value).filter(|number| (least..=most).contains(number));
            value
                .map(|value| in_range(value).ok_or_else(failed))
                .transpose()
        };
        let shared = read(take("shared"), 48, 1024)?.ok_or_else(failed)?;
        let multiprocessors = read(take("sm"), 1, 65536)?.ok_or_else(failed)?;
        let clusters = take("clusters");
        let [bandwidth, clock, l2] =
            ["bandwidth", "clock", "l2"].map(|key| read(take(key), 1, 1 << 20));
        let threads = read(take("threads"), 1024, 1 << 20);
        if !parts.is_empty() || clusters.is_some_and(|value| !value.is_empty()) {
            return Err(failed());
        }
        let typical = Self::with_typical_speed(shared << 10, multiprocessors, clusters.is_some());
        Ok(Self {
            bandwidth: bandwidth?.unwrap_or(typical.bandwidth),
            clock: clock?.unwrap_or(typical.clock),
            l2_cache: l2?.map_or(typical.l2_cache, |kib| kib << 10),
            threads: threads?.unwrap_or(typical.threads),
            ..typical
        })
    }
}

#[cfg(test)]
mod tests {
    use super::GpuTarget;

    #[test]
    fn targets_are_read_as_they_are_written() {
        for (name, target) in GpuTarget::NAMED {
            assert_eq!(name.parse(), Ok(*target));
            assert_eq!(target.to_string(), *name);
        }
        let odd = GpuTarget::with_typical_speed(100 << 10, 33, true);
        assert_eq!(
            odd.to_string(),
            "shared=100,sm=33,clusters,bandwidth=838,clock=1980,l2=12800,threads=2048"
        );
        assert_eq!(odd.to_string().parse(), Ok(odd));
        assert_eq!("shared=100,sm=33,clusters".parse(), Ok(odd));
        let slow = GpuTarget {
            bandwidth: 300,
            threads: 1536,
            ..odd
        };
        assert_eq!(
            "sm=33,shared=100,threads=1536,clusters,bandwidth=300".parse(),
            Ok(slow)
        );
        assert_eq!("H100".parse(), "h100".parse::<GpuTarget>());
        let large = GpuTarget::with_typical_speed(100 << 10, 65536, true);
        assert_eq!(large.to_string().parse(), Ok(large));
    }

    #[test]
    fn other_texts_are_named_in_the_error() {
        for text in [
            "",
            "h1000",
            "shared=64",
            "sm=4",
            "shared=0,sm=4",
            "shared=64,sm=0",
            "shared=64,sm=4,blocks",
            "shared=64,sm=4,clock=0",
            "shared=64,sm=4,threads=31",
            "shared=64,sm=4,clusters=1",
            "shared=64,sm=4,sm=4",
        ] {
            let error = text.parse::<GpuTarget>().expect_err(text).to_string();
            assert!(
                error.starts_with(&format!("the target is `{text}`, but must be t4, ")),
                "{error}"
            );
        }
    }
}
