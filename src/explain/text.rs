//! Explanations as `Display` writes them, for people.

use std::fmt;

use super::{in_microseconds, ExplainedKernel, ExplainedLaunch, Explanation, Outcome};

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dimensions.is_empty() {
            writeln!(f, "merged shape: one element")?;
        } else {
            writeln!(f, "merged shape, outermost in the output's memory first:")?;
        }
        for dimension in &self.dimensions {
            let name = if dimension.is_axis { "axis" } else { "size" };
            let mut strides = Vec::new();
            for (tensor, stride) in &dimension.strides {
                strides.push(format!("{tensor} {stride}"));
            }
            let strides = strides.join(", ");
            writeln!(f, "  {name} {}, steps of {strides}", dimension.size)?;
        }
        for mode in &self.modes {
            let most = if mode.in_place { "at most " } else { "" };
            writeln!(f, "{}: {most}{} bytes must move", mode.name, mode.bytes)?;
            if mode.bytes == 0 {
                writeln!(f, "  no kernel: nothing moves")?;
            } else if mode.launches().next().is_none() {
                writeln!(f, "  no kernel: the CPU runs it, on the calling thread")?;
            }
            for kernel in &mode.kernels {
                writeln!(f, "  {kernel}")?;
            }
        }
        Ok(())
    }
}

/// Writes one line, such as `possible reverse_strips_4, strips of 64 bytes: estimated 4.00 µs`.
impl fmt::Display for ExplainedKernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match &self.outcome {
            Outcome::Chosen(_) => "chosen",
            Outcome::Possible => "possible",
            Outcome::Rejected { .. } => "rejected",
        };
        write!(f, "{word} {}", self.kernel)?;
        if !self.variant.is_empty() {
            write!(f, ", {}", self.variant)?;
        }
        let mut facts = Vec::new();
        if let Some(time) = self.measured {
            facts.push(format!("measured {:.2} µs", in_microseconds(time)));
        }
        if let Some(time) = self.estimate {
            facts.push(format!("estimated {:.2} µs", in_microseconds(time)));
        }
        match &self.outcome {
            Outcome::Chosen(launch) => facts.push(launch.to_string()),
            Outcome::Possible => {}
            Outcome::Rejected { reason } => facts.push(reason.clone()),
        }
        write!(f, ": {}", facts.join(", "))
    }
}

impl fmt::Display for ExplainedLaunch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            access_bytes,
            blocks,
            threads,
            shared_memory,
            alignment,
            specialize,
        } = self;
        write!(
            f,
            "{access_bytes}-byte stores, grid {blocks} x {threads} threads, "
        )?;
        write!(
            f,
            "{shared_memory} bytes of shared memory per thread block, "
        )?;
        write!(
            f,
            "pointers at multiples of {alignment}, specialize={specialize}"
        )
    }
}
