//! The CSV report: one line for each case and file, for a spreadsheet or a script.
//!
//! ```text
//! case,type,mode,bytes,run,dispatches,samples,microseconds,…,report
//! 2x5x7,f32,copy,560,a,1000,30,2.1270,…,dml-cuda-report:0123456789abcdef
//! ```
//!
//! A column keeps its name and its place, so that scripts keep working: new ones come last, before the mark. A case that a
//! file does not have has no line.

use csv::Writer;

use crate::bench::compare::{Comparison, Row};
use crate::bench::numbers::significant;
use crate::schema;

/// The lines, below the names of the columns.
pub fn csv(comparison: &Comparison) -> Result<String, String> {
    let mut writer = Writer::from_writer(Vec::new());
    let mut is_first = true;
    for row in &comparison.rows {
        for (file, summary) in comparison.files.iter().enumerate() {
            if row.is_in(file) {
                let mut line = line(row, file, &summary.label).to_vec();
                // The mark by which a report is known.
                let mark = if is_first { schema::MARK } else { "" };
                line.push(("report", mark.to_owned()));
                write(&mut writer, &line, is_first).map_err(|error| error.to_string())?;
                is_first = false;
            }
        }
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// A column's name, and its value in a line.
type Column = (&'static str, String);

/// Writes a line, and before the first one the names of the columns.
fn write(writer: &mut Writer<Vec<u8>>, line: &[Column], is_first: bool) -> Result<(), csv::Error> {
    if is_first {
        writer.write_record(line.iter().map(|(name, _)| name))?;
    }
    writer.write_record(line.iter().map(|(_, value)| value))
}

/// The columns of a case in a file. What is not known is empty.
fn line(row: &Row, file: usize, label: &str) -> [Column; 17] {
    let (work, cell) = (&row.work, row.cells[file].as_ref());
    let change = file.checked_sub(1).and_then(|n| row.changes[n].as_ref());
    let interval = change.map(|change| change.interval);
    // A spreadsheet would read the commas of groups as columns.
    let rate = cell.map(|cell| significant(cell.gigabytes_per_second, 4).replace(',', ""));
    [
        ("case", no_formula(&work.case)),
        ("type", no_formula(&work.data_type)),
        ("mode", work.mode.to_string()),
        ("bytes", work.bytes.to_string()),
        ("run", no_formula(label)),
        (
            "dispatches",
            count(cell.map(|cell| cell.dispatches as usize)),
        ),
        ("samples", count(cell.map(|cell| cell.samples))),
        ("microseconds", number(cell.map(|cell| cell.median))),
        ("noise", number(cell.and_then(|cell| cell.noise))),
        ("gigabytes_per_second", rate.unwrap_or_default()),
        ("of_baseline", number(row.share(file))),
        (
            "speed_up_over_first",
            number(change.map(|change| change.speed_up)),
        ),
        (
            "status",
            change
                .map(|change| change.status.name())
                .unwrap_or_default(),
        ),
        ("of_floor", number(cell.and_then(|cell| cell.of_floor))),
        ("failed", row.causes[file].clone().unwrap_or_default()),
        (
            "speed_up_low",
            number(interval.map(|interval| interval.low)),
        ),
        (
            "speed_up_high",
            number(interval.map(|interval| interval.high)),
        ),
    ]
}

/// A whole number, if it is known.
fn count(value: Option<usize>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// A number with four decimals, if it is known.
fn number(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.4}")).unwrap_or_default()
}

/// Text that a spreadsheet does not run.
fn no_formula(text: &str) -> String {
    // Excel runs a cell that begins with one of these, whatever a results file has put there.
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    format!("{}{text}", if is_formula { "'" } else { "" })
}
