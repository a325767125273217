//! The text that DxDispatch prints, and what it says about one dispatchable.
//!
//! ```text
//! Running on 'NVIDIA H200'
//! Dispatch 'a': 31 iterations, 0.0120 ms median (CPU), 0.002127 ms median (GPU)
//! GPU Timings (Cold) : 1 samples, ...
//! iteration 0: 1.0000 ms (CPU), 0.9000 ms (GPU)
//! ```
//!
//! No other program reads this text, and its releases differ. A line that is not known is skipped, but a time that is no
//! number is an error: a wrong time would look like a result.

use crate::bench::results::Outcome;
use crate::out::shown;

/// Everything that processes printed about one dispatchable. Times are microseconds on the GPU.
#[derive(Default)]
pub struct Transcript {
    /// The name of the device that ran it.
    pub device: Option<String>,
    /// The cause of the last process's failure.
    pub failure: Option<String>,
    /// Single iterations, without the cold ones, or what is wrong with a time.
    each: Vec<Result<f64, String>>,
    /// Medians of whole processes.
    medians: Vec<Result<f64, String>>,
}

/// Below this, four decimals of a millisecond are too coarse.
const SHORT_MICROSECONDS: f64 = 20.0;

impl Transcript {
    /// The samples, or of short work the medians, which have more digits.
    pub fn outcome(self) -> Result<Outcome, String> {
        let each = self.each.into_iter().collect::<Result<Vec<f64>, _>>()?;
        let medians = self.medians.into_iter().collect::<Result<Vec<f64>, _>>()?;
        let is_short = medians.iter().any(|&median| median < SHORT_MICROSECONDS);
        match (each.is_empty(), medians.is_empty()) {
            (true, true) => Err("it printed no time of the GPU".to_owned()),
            (false, _) if !is_short => Ok(Outcome::Each(each)),
            _ => Ok(Outcome::Medians(medians)),
        }
    }

    /// Adds what a process printed about a dispatchable.
    pub fn read(&mut self, text: &str, name: &str) {
        let lines: Vec<&str> = text
            .lines()
            .map(|line| line.trim_matches(|c: char| c.is_whitespace() || c.is_control()))
            .filter(|line| !line.is_empty())
            .collect();
        // Timings of all dispatchables are printed alike, but a model of the suite has one.
        let (mut cold, mut dispatched, mut each) = (0, None, Vec::new());
        for line in &lines {
            if let Some(device) = line
                .strip_prefix("Running on '")
                .and_then(|rest| rest.strip_suffix('\''))
            {
                self.device.get_or_insert_with(|| shown(device));
            } else if let Some(DispatchLine { rest, .. }) =
                dispatch_line(line).filter(|found| found.name == name)
            {
                dispatched = Some(count(rest));
                // Old versions print an average.
                let median = microseconds(rest, " ms median (GPU)")
                    .or_else(|| microseconds(rest, " ms average (GPU)"));
                self.medians.extend(median);
            } else if let Some(rest) = line.strip_prefix("GPU Timings (Cold)") {
                cold = count(rest);
            } else if line.starts_with("iteration ") {
                each.extend(microseconds(line, " ms (GPU)"));
            }
        }
        match dispatched {
            Some(count) if !each.is_empty() && each.len() != count => {
                self.each.push(Err(format!(
                    "it printed the times of {} iterations, but must be {count}",
                    each.len()
                )));
            }
            _ => self.each.extend(each.into_iter().skip(cold)),
        }
        self.failure = cause(&lines, dispatched.is_none());
    }
}

/// The line that says why a program failed: the first error, or else the last line. For every parse error the last line
/// is "RunAll called before initialize".
fn cause(lines: &[&str], nothing_ran: bool) -> Option<String> {
    // How the errors of DxDispatch and of dml-cuda begin.
    const ERRORS: [&str; 5] = [
        "ERROR",
        "Failed to ",
        "Assertion failed",
        "Expected a ",
        "Could not ",
    ];
    let error = lines
        .iter()
        .find(|line| ERRORS.iter().any(|words| line.starts_with(words)));
    match (error, lines.last()) {
        (Some(line), _) => Some(shown(line.strip_prefix("ERROR: ").unwrap_or(line))),
        (None, None) => Some("nothing was printed".to_owned()),
        (None, Some(last)) => nothing_ran
            .then(|| format!("no dispatch was printed; the last line is: {}", shown(last))),
    }
}

/// `Dispatch 'name': …`. Older versions print `Dispatch (Bind) 'name': …`, or the suffix `(Bind)`.
fn dispatch_line(line: &str) -> Option<DispatchLine<'_>> {
    let rest = line.strip_prefix("Dispatch")?;
    let (_, rest) = rest.split_once('\'')?;
    let (name, rest) = rest.split_once('\'')?;
    let rest = rest.trim_start_matches(" (Bind)");
    rest.starts_with(':').then_some(DispatchLine { name, rest })
}

/// A line about a dispatchable: its name, and what follows from the colon on.
struct DispatchLine<'a> {
    name: &'a str,
    rest: &'a str,
}

/// The number after a colon.
fn count(text: &str) -> usize {
    let count = text.trim_start_matches([' ', ':']).split(' ').next();
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// The time before a unit, in digits with a point; or what is there instead of one.
fn microseconds(text: &str, unit: &str) -> Option<Result<f64, String>> {
    let (rest, _) = text.split_once(unit)?;
    let found = rest.rsplit(' ').next()?;
    let is_decimal = found
        .chars()
        .all(|character| character.is_ascii_digit() || character == '.');
    Some(match found.parse::<f64>() {
        Ok(milliseconds) if is_decimal && (1e-9..1e9).contains(&milliseconds) => {
            Ok(milliseconds * 1e3)
        }
        _ => Err(format!("its GPU time is '{}', no number", shown(found))),
    })
}

/// The version of DirectML that `dxdispatch -S` says is loaded, without its build number.
pub fn directml_version(text: &str) -> Option<String> {
    let loaded =
        section(text, "DirectML:").find_map(|line| line.strip_prefix("- Loaded Version"))?;
    // A NUL ends the text.
    let (_, version) = loaded.split_once(':')?;
    let version = version.trim().split(['+', '\0', ' ']).next()?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// The driver's version that `dxdispatch -s` says of an adapter.
pub fn driver(text: &str, adapter: &str) -> Option<String> {
    let version = section(text, adapter).find_map(|line| {
        line.strip_prefix("-Version: ")
            .or(line.strip_prefix("-Driver: "))
    })?;
    Some(version.to_owned())
}

/// The lines about a name, each of which begins with a dash.
fn section<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text
        .lines()
        .map(str::trim)
        .skip_while(move |line| *line != name)
        .skip(1);
    lines.take_while(|line| line.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Transcript {
        let mut printed = Transcript::default();
        printed.read(text, "a");
        printed
    }

    fn outcome(text: &str) -> Result<Outcome, String> {
        let printed = read(text);
        assert_eq!(printed.device.as_deref(), Some("GPU"));
        printed.outcome()
    }

    #[test]
    fn times_are_samples_without_the_cold_ones_or_medians() {
        let text = "Running on 'GPU'\r\nCompile Op\r\nInitialize 'a': 5.0000 ms\r\nDispatch 'a': 4 iterations\r\n\
            CPU Timings (Cold) : 1 samples, 1.0000 ms average, 1.0000 ms min, 1.0000 ms median, 1.0000 ms max\r\n\
            GPU Timings (Cold) : 1 samples, 0.9000 ms average, 0.9000 ms min, 0.9000 ms median, 0.9000 ms max\r\n\
            GPU Timings (Hot)  : 3 samples, 0.1100 ms average, 0.1000 ms min, 0.1100 ms median, 0.1200 ms max\r\n\
            The timings of each iteration: \r\n\
            iteration 0: 1.0000 ms (CPU), 0.9000 ms (GPU)\r\niteration 1: 0.2 ms (CPU), 0.1000 ms (GPU)\r\n\
            iteration 2: 0.2 ms (CPU), 0.1100 ms (GPU)\r\niteration 3: 0.2 ms (CPU), 0.1200 ms (GPU)\r\n";
        assert_eq!(outcome(text), Ok(Outcome::Each(vec![100.0, 110.0, 120.0])));
        let short = "Running on 'GPU'\nDispatch 'a': 31 iterations, 0.0120 ms median (CPU), 0.002127 ms median (GPU)\n";
        assert_eq!(outcome(short), Ok(Outcome::Medians(vec![2.127])));
        let older =
            "Running on 'GPU'\nDispatch 'a' (Bind): 2 iterations, 0.1 ms average (CPU), 0.0500 ms average (GPU)";
        assert_eq!(outcome(older), Ok(Outcome::Medians(vec![50.0])));
        let nan = "Running on 'GPU'\nDispatch 'a': 2 iterations, 0.1 ms median (CPU), nan ms median (GPU)";
        for found in [
            "nan",
            "0,1234",
            "0.1.2",
            "-1.0",
            "1e308",
            "0.0",
            &"9".repeat(400),
        ] {
            let error = Err(format!("its GPU time is '{}', no number", shown(found)));
            assert_eq!(outcome(&nan.replace("nan", found)), error);
            assert_eq!(
                outcome(&text.replace("0.1100 ms (GPU)", &format!("{found} ms (GPU)"))),
                error
            );
        }
        let cut = text
            .rsplit_once("iteration")
            .map(|(before, _)| before)
            .unwrap_or_default();
        assert_eq!(
            outcome(cut),
            Err("it printed the times of 3 iterations, but must be 4".to_owned())
        );
        let other = nan.replace("'a'", "'b'").replace("nan", "0.1");
        assert_eq!(
            outcome(&other),
            Err("it printed no time of the GPU".to_owned())
        );
    }

    /// The texts are DxDispatch's own.
    #[test]
    fn the_cause_of_a_failure_is_found() {
        let parse = "Failed to parse the model: Expected an object named 'resources'";
        for (text, cause) in [
            (
                &*format!("Running on 'GPU'\n{parse}\nRunAll called before initialize\n"),
                parse,
            ),
            (
                &format!("{parse}\nRunAll called before initialize\nRunning on 'GPU'\n"),
                parse,
            ),
            (
                "Running on 'GPU'\nCompile Op\nAssertion failed: IsString()\n\n",
                "Assertion failed: IsString()",
            ),
            (
                "dxdispatch.exe failed with hr=0x80004001\nExpected a .json file\n",
                "Expected a .json file",
            ),
            (
                "some other program's words\n",
                "no dispatch was printed; the last line is: some other program's words",
            ),
            (
                "Running on 'GPU'\nCompile Op\n",
                "no dispatch was printed; the last line is: Compile Op",
            ),
            (" \n", "nothing was printed"),
            (&"\0".repeat(5000), "nothing was printed"),
            ("ERROR: a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
        ] {
            assert_eq!(read(text).failure.as_deref(), Some(cause));
        }
    }

    #[test]
    fn versions_are_those_of_directml_and_of_the_adapter() {
        let text = "DirectML:\r\n- Loaded Version     : 1.15.4+241025\0\r\n\r\nD3D12:\r\n- Loaded Version : 1.2\r\n";
        assert_eq!(directml_version(text).as_deref(), Some("1.15.4"));
        assert_eq!(
            directml_version(
                "DirectML:\n- Configured Version : None\n\nPIX:\n- Loaded Version : 1.2\n"
            ),
            None
        );
        let text =
            "GPU 1\n-Version: 1.2\n\nGPU\n-Hardware: true\n-Version: 5.6.7.8\n\nCPU\n-Driver: x";
        let drivers = ["GPU", "CPU", "other"].map(|adapter| driver(text, adapter));
        assert_eq!(
            drivers.each_ref().map(Option::as_deref),
            [Some("5.6.7.8"), Some("x"), None]
        );
    }
}
