//! What DxDispatch prints, and this runner with it.

use std::collections::BTreeMap;

use crate::bench::record::Samples;

/// What the runs of one dispatchable printed. Microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    pub device: Option<String>,
    /// GPU times of single iterations, the cold ones left out.
    each: Vec<f64>,
    /// GPU medians of whole runs.
    medians: Vec<f64>,
    /// The first error, or what stands in place of a time.
    failure: Option<String>,
}

/// Below this, four decimals of a millisecond say too little.
const SHORT_MICROSECONDS: f64 = 20.0;

impl Log {
    pub fn extend(&mut self, other: Self) {
        self.device = self.device.take().or(other.device);
        self.each.extend(other.each);
        self.medians.extend(other.medians);
        self.failure = self.failure.take().or(other.failure);
    }

    /// The samples, or of short work the medians, which are printed with more digits.
    pub fn samples(&self) -> Option<Samples> {
        let is_short = self.medians.iter().any(|&median| median < SHORT_MICROSECONDS);
        match (self.each.is_empty(), self.medians.is_empty()) {
            (true, true) => None,
            (true, false) => Some(Samples::Medians(self.medians.clone())),
            (false, false) if is_short => Some(Samples::Medians(self.medians.clone())),
            (false, _) => Some(Samples::Each(self.each.clone())),
        }
    }

    pub fn why_nothing(&self) -> String {
        self.failure.clone().unwrap_or_else(|| "the log ends before a time".to_owned())
    }
}

/// UTF-8, or what PowerShell 5 writes: UTF-16, little endian, with a byte order mark.
fn decode(bytes: &[u8]) -> Result<String, String> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => {
            let units: Vec<u16> =
                rest.chunks(2).map(|pair| u16::from_le_bytes([pair[0], *pair.get(1).unwrap_or(&0)])).collect();
            String::from_utf16(&units).map_err(|_| "the log is neither UTF-8 nor UTF-16 text".to_owned())
        }
        bytes => {
            let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
            String::from_utf8(bytes.to_vec()).map_err(|_| "the log is neither UTF-8 nor UTF-16 text".to_owned())
        }
    }
}

/// Reads one log: what each dispatchable of it printed.
pub fn read(bytes: &[u8]) -> Result<BTreeMap<String, Log>, String> {
    let text = decode(bytes)?;
    let (mut logs, mut device, mut failure) = (BTreeMap::<String, Log>::new(), None, None);
    // The dispatchable that the lines after its own belong to, with the samples of this run that are cold.
    let mut current: Option<(String, usize)> = None;
    let mut each: Vec<f64> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line.strip_prefix("Running on '").and_then(|rest| rest.strip_suffix('\'')) {
            device = Some(name.to_owned());
            current = None;
        } else if let Some((name, rest)) = dispatch_line(line) {
            close(&mut logs, &mut current, &mut each);
            let log = logs.entry(name.to_owned()).or_default();
            log.device = device.clone();
            match gpu_median(rest) {
                Some(Ok(median)) => log.medians.push(median * 1e3),
                Some(Err(found)) => log.failure = Some(format!("its GPU time is '{found}', no number")),
                None => {}
            }
            current = Some((name.to_owned(), 0));
        } else if let Some(rest) = line.strip_prefix("GPU Timings (Cold)") {
            if let Some((_, cold)) = &mut current {
                *cold = rest
                    .trim_start_matches([' ', ':'])
                    .split(' ')
                    .next()
                    .and_then(|count| count.parse().ok())
                    .unwrap_or(0);
            }
        } else if let Some(rest) = line.strip_prefix("GPU Timings (Hot)") {
            let (Some((name, _)), Some(median)) = (&current, before(rest, " ms median")) else { continue };
            if let (Some(log), Ok(median)) = (logs.get_mut(name), median.parse::<f64>()) {
                if median.is_finite() && rest.contains("samples") && median * 1e3 >= SHORT_MICROSECONDS {
                    log.medians.push(median * 1e3);
                }
            }
        } else if line.starts_with("iteration ") {
            if let Some(Ok(milliseconds)) = before(line, " ms (GPU)").map(str::parse::<f64>) {
                if milliseconds.is_finite() {
                    each.push(milliseconds * 1e3);
                }
            }
        } else if failure.is_none() && (line.starts_with("ERROR") || line.starts_with("Failed to ")) {
            failure = Some(line.to_owned());
        }
    }
    close(&mut logs, &mut current, &mut each);
    if device.is_none() && logs.is_empty() && failure.is_none() && !text.trim().is_empty() {
        return Err("it has no line of DxDispatch's, such as \"Running on '…'\"".to_owned());
    }
    for log in logs.values_mut() {
        log.failure = log.failure.take().or_else(|| failure.clone());
    }
    Ok(logs)
}

/// Hands the iterations that were read, without the cold ones, to their dispatchable.
fn close(logs: &mut BTreeMap<String, Log>, current: &mut Option<(String, usize)>, each: &mut Vec<f64>) {
    if let Some((name, cold)) = current.take() {
        if let Some(log) = logs.get_mut(&name) {
            log.each.extend(each.drain(..).skip(cold));
        }
    }
    each.clear();
}

/// `Dispatch 'name': …`, also as `Dispatch (Bind) 'name': …` or with the suffix `(Bind)`, as older versions print.
fn dispatch_line(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("Dispatch")?;
    let (_, rest) = rest.split_once('\'')?;
    let (name, rest) = rest.split_once('\'')?;
    let rest = rest.trim_start_matches(" (Bind)");
    rest.starts_with(':').then_some((name, rest))
}

/// The GPU's median, or average in old versions, in milliseconds: what stands there, if it is no number.
fn gpu_median(rest: &str) -> Option<Result<f64, String>> {
    let found = before(rest, " ms median (GPU)").or_else(|| before(rest, " ms average (GPU)"))?;
    Some(match found.parse::<f64>() {
        Ok(milliseconds) if milliseconds.is_finite() && milliseconds > 0.0 => Ok(milliseconds),
        _ => Err(found.to_owned()),
    })
}

/// The word before a unit.
fn before<'a>(text: &'a str, unit: &str) -> Option<&'a str> {
    let (rest, _) = text.split_once(unit)?;
    rest.rsplit([' ', ',']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Log {
        let mut logs = read(text.as_bytes()).expect("a log");
        assert_eq!(logs.len(), 1);
        logs.pop_first().expect("one").1
    }

    #[test]
    fn a_short_dispatch_has_its_median_of_six_decimals() {
        let log =
            one("Running on 'GPU'\nDispatch 'a': 31 iterations, 0.0120 ms median (CPU), 0.002127 ms median (GPU)\n");
        assert_eq!(log.device.as_deref(), Some("GPU"));
        assert_eq!(log.samples(), Some(Samples::Medians(vec![2.127])));
    }

    #[test]
    fn iterations_are_samples_without_the_cold_ones() {
        let text = "Running on 'GPU'\nDispatch 'a': 4 iterations\n\
            GPU Timings (Cold) : 1 samples, 0.9000 ms average, 0.9000 ms min, 0.9000 ms median, 0.9000 ms max\n\
            GPU Timings (Hot)  : 3 samples, 0.1100 ms average, 0.1000 ms min, 0.1100 ms median, 0.1200 ms max\n\
            The timings of each iteration: \n\
            iteration 0: 1.0000 ms (CPU), 0.9000 ms (GPU)\niteration 1: 0.2 ms (CPU), 0.1000 ms (GPU)\n\
            iteration 2: 0.2 ms (CPU), 0.1100 ms (GPU)\niteration 3: 0.2 ms (CPU), 0.1200 ms (GPU)\n";
        let samples = one(text).samples().expect("samples");
        assert_eq!(samples, Samples::Each(vec![100.0, 110.0, 120.0]));
    }

    #[test]
    fn utf_16_with_carriage_returns_is_read() {
        let text = "Running on 'GPU'\r\nDispatch 'a': 2 iterations, 0.1 ms median (CPU), 0.050000 ms median (GPU)\r\n";
        let bytes: Vec<u8> = [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
        assert_eq!(read(&bytes).expect("a log")["a"].samples(), Some(Samples::Medians(vec![50.0])));
    }

    #[test]
    fn older_versions_are_read() {
        let log =
            one("Running on 'GPU'\nDispatch 'a' (Bind): 2 iterations, 0.1 ms average (CPU), 0.0500 ms average (GPU)");
        assert_eq!(log.samples(), Some(Samples::Medians(vec![50.0])));
    }

    #[test]
    fn what_is_no_time_is_said() {
        let log = one("Running on 'GPU'\nDispatch 'a': 2 iterations, 0.1 ms median (CPU), nan ms median (GPU)");
        assert_eq!((log.samples(), log.why_nothing().as_str()), (None, "its GPU time is 'nan', no number"));
        let log = one("Running on 'GPU'\nDispatch 'a': 2 iterations\nERROR: device removed");
        assert_eq!((log.samples(), log.why_nothing().as_str()), (None, "ERROR: device removed"));
        let log = one("Running on 'GPU'\nDispatch 'a': 2 iter");
        assert_eq!((log.samples(), log.why_nothing().as_str()), (None, "the log ends before a time"));
        assert!(read(b"hello\n").is_err() && read(&[0xC3, 0x28]).is_err() && read(b"").expect("empty").is_empty());
    }
}
