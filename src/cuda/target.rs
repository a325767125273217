//! The limits of a GPU that selection depends on, as plain data.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The limits of a GPU that the choice of a kernel depends on. [`Operator::explain`](crate::Operator::explain) takes
/// one, to show the choice without the GPU.
///
/// Parsed from a name of [`GpuTarget::NAMED`], or from `shared=KIB,sm=COUNT[,clusters]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GpuTarget {
    /// Bytes of shared memory that a thread block can opt in to.
    pub shared_memory: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Whether thread blocks can form clusters (compute capability 9.0 and higher).
    pub clusters: bool,
}

impl GpuTarget {
    /// GPUs by name, with the limits that NVIDIA documents.
    pub const NAMED: &'static [(&'static str, GpuTarget)] = &[
        ("t4", Self::new(64, 40, false)),
        ("l4", Self::new(99, 58, false)),
        ("a100", Self::new(163, 108, false)),
        ("h100", Self::new(227, 132, true)),
        ("b200", Self::new(227, 148, true)),
    ];

    const fn new(shared_kib: u32, multiprocessors: u32, clusters: bool) -> Self {
        Self { shared_memory: shared_kib << 10, multiprocessors, clusters }
    }
}

/// Writes what [`GpuTarget::from_str`] reads: a name, or `shared=KIB,sm=COUNT[,clusters]`.
impl fmt::Display for GpuTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(_, target)| target == self) {
            Some((name, _)) => f.write_str(name),
            None => {
                let clusters = if self.clusters { ",clusters" } else { "" };
                write!(f, "shared={},sm={}{clusters}", self.shared_memory >> 10, self.multiprocessors)
            }
        }
    }
}

/// The text is not a [`GpuTarget`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the target is `{}`, must be t4, l4, a100, h100, b200, or shared=KIB,sm=COUNT[,clusters] with 48 to 1024 KiB of shared memory and 1 to 65536 multiprocessors", .0.escape_debug())]
pub struct ParseGpuTargetError(String);

impl FromStr for GpuTarget {
    type Err = ParseGpuTargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let name = text.to_ascii_lowercase();
        if let Some((_, target)) = Self::NAMED.iter().find(|(known, _)| *known == name) {
            return Ok(*target);
        }
        let failed = || ParseGpuTargetError(text.to_owned());
        let number = |text: &str, range: RangeInclusive<u32>| {
            text.parse().ok().filter(|number| range.contains(number)).ok_or_else(failed)
        };
        let (mut shared, mut multiprocessors, mut clusters) = (None, None, false);
        for part in name.split(',') {
            match part.split_once('=') {
                Some(("shared", kib)) => shared = Some(number(kib, 48..=1024)?),
                Some(("sm", count)) => multiprocessors = Some(number(count, 1..=65536)?),
                None if part == "clusters" => clusters = true,
                _ => return Err(failed()),
            }
        }
        shared.zip(multiprocessors).map(|(shared, count)| Self::new(shared, count, clusters)).ok_or_else(failed)
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
        let odd = GpuTarget { shared_memory: 100 << 10, multiprocessors: 7, clusters: true };
        assert_eq!(odd.to_string(), "shared=100,sm=7,clusters");
        assert_eq!(odd.to_string().parse(), Ok(odd));
        assert_eq!("H100".parse(), "h100".parse::<GpuTarget>());
    }

    #[test]
    fn other_texts_are_named_in_the_error() {
        for text in ["", "h1000", "shared=64", "sm=4", "shared=0,sm=4", "shared=64,sm=0", "shared=64,sm=4,blocks"] {
            let error = text.parse::<GpuTarget>().expect_err(text).to_string();
            assert!(error.starts_with(&format!("the target is `{text}`, must be t4, ")), "{error}");
        }
    }
}
