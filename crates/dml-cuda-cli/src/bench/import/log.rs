//! What DxDispatch prints, and this runner with it.

use std::collections::BTreeMap;

use crate::bench::record::Samples;
use crate::bench::statistics::Quartiles;

/// What a program printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    pub device: Option<String>,
    pub dispatches: BTreeMap<String, Log>,
    /// The cause of a failure.
    pub failure: Option<String>,
}

/// What the runs of one dispatchable printed. Microseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// GPU times of single iterations, the cold ones left out.
    each: Vec<f64>,
    /// GPU medians of whole runs.
    medians: Vec<f64>,
    /// What stands in place of a time.
    no_time: Option<String>,
}

/// Below this, four decimals of a millisecond say too little.
const SHORT_MICROSECONDS: f64 = 20.0;

impl Log {
    pub fn extend(&mut self, other: Self) {
        self.each.extend(other.each);
        self.medians.extend(other.medians);
        self.no_time = self.no_time.take().or(other.no_time);
    }

    /// The samples, or of short work the medians, which are printed with more digits. The error is `failure`, if there is one.
    pub fn samples(&self, failure: Option<&str>) -> Result<Samples, String> {
        let is_short = self.medians.iter().any(|&median| median < SHORT_MICROSECONDS);
        match (self.each.is_empty(), self.medians.is_empty()) {
            (true, true) => {
                let no_time = self.no_time.as_deref().or(failure);
                Err(no_time.unwrap_or("the log ends before a time").to_owned())
            }
            (true, false) => Ok(Samples::Medians(self.medians.clone())),
            (false, false) if is_short => Ok(Samples::Medians(self.medians.clone())),
            (false, _) => Ok(Samples::Each(self.each.clone())),
        }
    }
}

/// Whether short work has samples of four decimals only.
pub fn is_coarse(samples: &Samples) -> bool {
    matches!(samples, Samples::Each(each) if Quartiles::of(each).median < SHORT_MICROSECONDS)
}

/// UTF-8, or what PowerShell 5 writes: UTF-16, little endian. Bytes of neither become replacement characters.
pub fn decode(bytes: &[u8]) -> String {
    let nuls = |first: usize| bytes.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count();
    let is_utf_16 = || nuls(1) * 4 > bytes.len() && nuls(0) * 4 < bytes.len();
    match bytes.strip_prefix(b"\xFF\xFE").or_else(|| is_utf_16().then_some(bytes)) {
        Some(units) => {
            let units: Vec<u16> =
                units.chunks(2).map(|pair| u16::from_le_bytes([pair[0], *pair.get(1).unwrap_or(&0)])).collect();
            String::from_utf16_lossy(&units)
        }
        None => String::from_utf8_lossy(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)).into_owned(),
    }
}

/// A text for a line of a report: 200 characters at most, none of them a control character.
pub fn short(text: &str) -> String {
    const MOST: usize = 200;
    let replace = |character: char| if character.is_control() { char::REPLACEMENT_CHARACTER } else { character };
    let end = if text.chars().nth(MOST).is_some() { "…" } else { "" };
    text.chars().take(MOST).map(replace).chain(end.chars()).collect()
}

/// The lines of a text. PowerShell 5 makes an error record of the first line of stderr: it writes `dxdispatch.exe : ` before the line, wraps
/// it, and adds lines behind it. Only the line itself stays.
fn lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut in_record = false;
    for whole in text.lines() {
        let line = whole.trim();
        if line.starts_with("+ CategoryInfo") {
            // The words "At", "char" are in the language of the system.
            let is_message = |line: &String| line.split_once(" : ").is_some_and(|(program, _)| !program.contains(' '));
            if let Some(begin) = lines.iter().rposition(is_message) {
                let record = lines.split_off(begin);
                let end = record.iter().position(|line| is_place(line.trim())).unwrap_or(1);
                // PowerShell wraps in the middle of words, and keeps the spaces.
                let message = record[..end].concat();
                lines.extend(message.split_once(" : ").map(|(_, message)| message.to_owned()));
            }
            in_record = true;
        } else if in_record {
            in_record = !line.starts_with("+ FullyQualifiedErrorId");
        } else {
            lines.push(whole.to_owned());
        }
    }
    let is_blank = |character: char| character.is_whitespace() || character.is_control();
    lines.iter().map(|line| line.trim_matches(is_blank).to_owned()).collect()
}

/// `At C:\run.ps1:12 char:5`
fn is_place(line: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|character| character.is_ascii_digit());
    let Some((begin, column)) = line.rsplit_once(':') else { return false };
    let Some((place, _)) = begin.rsplit_once(' ') else { return false };
    is_number(column) && place.rsplit_once(':').is_some_and(|(_, line)| is_number(line))
}

/// Reads what a program printed.
pub fn read(bytes: &[u8]) -> Transcript {
    let text = decode(bytes);
    let lines = lines(&text);
    let mut printed = Transcript::default();
    // The dispatchable that the lines after its own belong to, with the samples of this run that are cold.
    let mut current: Option<(String, usize)> = None;
    let mut each: Vec<f64> = Vec::new();
    for line in lines.iter().map(String::as_str) {
        let logs = &mut printed.dispatches;
        if let Some(name) = line.strip_prefix("Running on '").and_then(|rest| rest.strip_suffix('\'')) {
            close(logs, &mut current, &mut each);
            printed.device.get_or_insert_with(|| short(name));
        } else if let Some((name, rest)) = dispatch_line(line) {
            close(logs, &mut current, &mut each);
            let log = logs.entry(name.to_owned()).or_default();
            match gpu_median(rest) {
                Some(Ok(median)) => log.medians.push(median * 1e3),
                Some(Err(found)) => log.no_time = Some(format!("its GPU time is '{}', no number", short(&found))),
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
        }
    }
    close(&mut printed.dispatches, &mut current, &mut each);
    let lines: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    printed.failure = cause(&lines, printed.dispatches.is_empty());
    printed
}

/// The line that says why a program failed. The last line is of no use: it says "RunAll called before initialize" of every parse error.
fn cause(lines: &[&str], nothing_ran: bool) -> Option<String> {
    const ERRORS: [&str; 5] = ["ERROR", "Failed to ", "Assertion failed", "Expected a ", "Could not "];
    const OTHERS: [&str; 15] = [
        "Running on '",
        "Compile Op",
        "Compiling op",
        "Initialize '",
        "Dispatch",
        "CPU Timings",
        "GPU Timings",
        "GPU samples buffer",
        "The timings of each",
        "iteration ",
        "Resource '",
        "[StartCmd]",
        "[EndCmd]",
        "WARNING",
        "RunAll called",
    ];
    let begins = |words: &[&str], line: &str| words.iter().any(|word| line.starts_with(word));
    let error = lines.iter().find(|line| begins(&ERRORS, line));
    let unknown = || lines.iter().find(|line| nothing_ran && !begins(&OTHERS, line));
    match error.or_else(unknown) {
        Some(line) => Some(short(line.strip_prefix("ERROR: ").unwrap_or(line))),
        None if lines.is_empty() => Some("nothing was printed".to_owned()),
        None => nothing_ran.then(|| "no dispatch was printed".to_owned()),
    }
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

    fn one(text: &str) -> Result<Samples, String> {
        let mut printed = read(text.as_bytes());
        assert_eq!((printed.dispatches.len(), printed.device.as_deref()), (1, Some("GPU")));
        printed.dispatches.pop_first().expect("one").1.samples(printed.failure.as_deref())
    }

    fn utf_16(text: &str) -> Vec<u8> {
        [0xFF, 0xFE].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect()
    }

    #[test]
    fn a_short_dispatch_has_its_median_of_six_decimals() {
        let samples =
            one("Running on 'GPU'\nDispatch 'a': 31 iterations, 0.0120 ms median (CPU), 0.002127 ms median (GPU)\n");
        assert_eq!(samples, Ok(Samples::Medians(vec![2.127])));
    }

    #[test]
    fn iterations_are_samples_without_the_cold_ones() {
        let text = "Running on 'GPU'\nCompile Op\nInitialize 'a': 5.0000 ms\nDispatch 'a': 4 iterations\n\
            CPU Timings (Cold) : 1 samples, 1.0000 ms average, 1.0000 ms min, 1.0000 ms median, 1.0000 ms max\n\
            GPU Timings (Cold) : 1 samples, 0.9000 ms average, 0.9000 ms min, 0.9000 ms median, 0.9000 ms max\n\
            GPU Timings (Hot)  : 3 samples, 0.1100 ms average, 0.1000 ms min, 0.1100 ms median, 0.1200 ms max\n\
            The timings of each iteration: \n\
            iteration 0: 1.0000 ms (CPU), 0.9000 ms (GPU)\niteration 1: 0.2 ms (CPU), 0.1000 ms (GPU)\n\
            iteration 2: 0.2 ms (CPU), 0.1100 ms (GPU)\niteration 3: 0.2 ms (CPU), 0.1200 ms (GPU)\n";
        // Each run begins with its device. What was read before stays.
        let again = text.to_owned() + "Running on 'GPU'\nCompile Op\n";
        for text in [text, &again] {
            assert_eq!(one(text), Ok(Samples::Each(vec![100.0, 110.0, 120.0])));
        }
    }

    #[test]
    fn utf_16_with_carriage_returns_is_read() {
        let text = "Running on 'GPU'\r\nDispatch 'a': 2 iterations, 0.1 ms median (CPU), 0.050000 ms median (GPU)\r\n";
        let printed = read(&utf_16(text));
        assert_eq!(printed.dispatches["a"].samples(None), Ok(Samples::Medians(vec![50.0])));
        for bytes in [&[b"\xEF\xBB\xBF", text.as_bytes()].concat()[..], &utf_16(text)[2..]] {
            assert_eq!(read(bytes), printed);
        }
    }

    #[test]
    fn older_versions_are_read() {
        let samples =
            one("Running on 'GPU'\nDispatch 'a' (Bind): 2 iterations, 0.1 ms average (CPU), 0.0500 ms average (GPU)");
        assert_eq!(samples, Ok(Samples::Medians(vec![50.0])));
    }

    #[test]
    fn what_is_no_time_is_said() {
        let error = |text: &str| one(text).expect_err("no time");
        let nan = "Running on 'GPU'\nDispatch 'a': 2 iterations, 0.1 ms median (CPU), nan ms median (GPU)";
        assert_eq!(error(nan), "its GPU time is 'nan', no number");
        assert_eq!(error("Running on 'GPU'\nDispatch 'a': 2 iterations\nERROR: device removed"), "device removed");
        assert_eq!(error("Running on 'GPU'\nDispatch 'a': 2 iter"), "the log ends before a time");
    }

    /// The texts are DxDispatch's own. PowerShell 5 wraps its error records at the width of its window.
    #[test]
    fn the_cause_of_a_failure_is_found() {
        let cause = |text: &str| {
            let of = |bytes: &[u8]| read(bytes).failure.expect("a failure");
            let cause = of(text.as_bytes());
            assert_eq!(of(&utf_16(&text.replace('\n', "\r\n"))), cause);
            cause
        };
        let parse = "Failed to parse the model: Expected an object named 'resources'";
        assert_eq!(cause(&format!("Running on 'GPU'\n{parse}\nRunAll called before initialize\n")), parse);
        assert_eq!(cause(&format!("{parse}\nRunAll called before initialize\nRunning on 'GPU'\n")), parse);
        for place in ["At C:\\my suite\\run.ps1:12 char:5", "In C:\\my suite\\run.ps1:12 Zeichen:5"] {
            let record = format!(
                "dxdispatch.exe : Failed to parse the model: Expected an ob\nject \nnamed 'resources'\n{place}\n\
                +     & $DxDispatch \"$name.json\" -i 31 -w 1\n+     ~~~~~~~~~~~~~~~~\n    \
                + CategoryInfo          : NotSpecified: (Failed to parse the model:String) [], \n   RemoteException\n    \
                + FullyQualifiedErrorId : NativeCommandError\n \n"
            );
            let text = format!("Running on 'GPU'\n{record}RunAll called before initialize\n");
            assert_eq!(cause(&text), parse);
            // A run that failed leaves the times of the runs before it.
            let time = "Dispatch 'a': 2 iterations, 0.1 ms median (CPU), 0.05 ms median (GPU)\n";
            let printed = read(format!("Running on 'GPU'\n{time}{text}").as_bytes());
            assert_eq!(printed.dispatches["a"].samples(None), Ok(Samples::Medians(vec![50.0])));
        }
        assert_eq!(
            cause("Running on 'GPU'\nCompile Op\nAssertion failed: IsString()\n\n"),
            "Assertion failed: IsString()"
        );
        let upper = "Running on 'GPU'\ndxdispatch.exe failed with hr=0x80004001\nExpected a .json or .onnx file\n";
        assert_eq!(cause(upper), "Expected a .json or .onnx file");
        assert_eq!(cause("some other program's words\n"), "some other program's words");
        assert_eq!(cause("Running on 'GPU'\nCompile Op\n"), "no dispatch was printed");
        assert_eq!(cause(" \n"), "nothing was printed");
        assert_eq!(cause(&"\0".repeat(5000)), "nothing was printed");
        assert_eq!(cause("ERROR: a\u{1b}[2Jb"), "a\u{fffd}[2Jb");
        assert_eq!(cause(&"ä".repeat(5000)), "ä".repeat(200) + "…");
        assert!(read(&[0xC3, 0x28]).failure.is_some());
    }
}
