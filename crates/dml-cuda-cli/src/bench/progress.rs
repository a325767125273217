//! How far a bench is.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

use crate::out::complain;

/// A bar on a terminal, else a line for each tenth.
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub fn new(count: usize) -> Self {
        // It draws on a terminal only, and on stderr.
        let bar = ProgressBar::new(count as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self { bar }
    }

    pub fn begins(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    pub fn warn(&self, why: &str) {
        self.bar.suspend(|| complain!("WARNING: {why}"));
    }

    pub fn ends(&self) {
        self.bar.inc(1);
        let (done, count) = (self.bar.position(), self.bar.length().unwrap_or(1));
        let is_new_tenth = done * 10 / count > (done - 1) * 10 / count;
        if is_new_tenth && !std::io::stderr().is_terminal() {
            complain!("{done} of {count} cases, {} s", self.bar.elapsed().as_secs());
        }
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
