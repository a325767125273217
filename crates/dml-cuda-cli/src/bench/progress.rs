//! How far a bench is.

use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};

use crate::out::complain;

/// A bar on a terminal, else a line for each tenth.
pub struct Progress {
    bar: ProgressBar,
    done: usize,
    count: usize,
    started: Instant,
}

impl Progress {
    pub fn new(count: usize) -> Self {
        // It draws on a terminal only, and on stderr.
        let bar = ProgressBar::new(count as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {elapsed} {msg}") {
            bar.set_style(style);
        }
        Self { bar, done: 0, count, started: Instant::now() }
    }

    pub fn begins(&self, name: &str) {
        self.bar.set_message(name.to_owned());
    }

    pub fn warn(&self, why: &str) {
        self.bar.suspend(|| complain!("WARNING: {why}"));
    }

    pub fn ends(&mut self) {
        self.bar.inc(1);
        let tenth = |done: usize| done * 10 / self.count;
        let (before, after) = (tenth(self.done), tenth(self.done + 1));
        self.done += 1;
        if after > before && !std::io::stderr().is_terminal() {
            complain!("{} of {} cases, {} s", self.done, self.count, self.started.elapsed().as_secs());
        }
    }

    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
