//! Reports as text: for a terminal, as Markdown, as CSV.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::tables::{self, Table};
use crate::bench::compare::{Comparison, Row, RunSummary};
use crate::bench::numbers::significant;
use crate::out::shown_whole;
use crate::schema;

/// Characters of a word that a table does not break.
const LONGEST_WORD: usize = 12;

/// For a terminal of that width, or as Markdown. `all_cases`: with those that only one of two runs has.
pub fn text(comparison: &Comparison, width: Option<u16>, all_cases: bool) -> String {
    let (bullet, bold) = if width.is_none() {
        ("- ", "**")
    } else {
        ("", "")
    };
    let plain = |text: &str| plain(text, width);
    let mut blocks = Vec::new();
    for verdict in &comparison.verdicts {
        let lines = [("by type", &verdict.by_type), ("by kind", &verdict.by_kind)];
        let known = lines.into_iter().filter(|(_, line)| !line.is_empty());
        let lines = known
            .map(|(by, line)| format!("{bullet}{by}, {}: {}", plain(&verdict.unit), plain(line)));
        blocks.push(
            std::iter::once(format!("{bold}{}{bold}", plain(&verdict.sentence)))
                .chain(lines)
                .collect(),
        );
    }
    let run = |run: &RunSummary| {
        format!(
            "{bullet}{bold}{}{bold}: {}",
            plain(&run.label),
            plain(&machine(run))
        )
    };
    blocks.push(comparison.runs.iter().map(run).collect());
    let notes = comparison
        .warnings
        .iter()
        .map(|warning| warning.text.clone())
        .chain(comparison.notes());
    blocks.push(
        notes
            .map(|note| format!("{bullet}{}", plain(&note)))
            .collect::<Vec<_>>(),
    );
    let said = blocks
        .iter()
        .filter(|lines| !lines.is_empty())
        .map(|lines| {
            let text = lines.join("\n");
            width
                .map_or_else(|| text.clone(), |width| wrapped(&text, width))
                .trim_end()
                .to_owned()
        });
    let mut tables = tables::groups(comparison);
    tables.extend(tables::cases(comparison));
    let of_one_file = tables::of_one_file(comparison);
    let mut more = String::new();
    if all_cases {
        tables.extend(of_one_file);
    } else if !of_one_file.is_empty() {
        let cases = tables::counted_cases(&of_one_file);
        more = format!("Not listed: {cases} that only one of two files has (--all-cases)\n");
    }
    more += "More figures, such as bytes, noise, GB/s and of baseline: --format csv";
    let more = width.map_or(more.clone(), |width| wrapped(&more, width));
    let mark = if width.is_none() {
        format!("<!-- {} -->", schema::MARK)
    } else {
        schema::MARK.to_owned()
    };
    let blocks = said
        .chain(tables.iter().map(|table| drawn(table, width)))
        .chain([more, mark]);
    blocks.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// A run's machine, timing and notes in one line.
fn machine(run: &RunSummary) -> String {
    let known = tables::facts(run)
        .into_iter()
        .map(|(_, fact)| fact)
        .filter(|fact| !fact.is_empty());
    let notes = run
        .notes
        .iter()
        .map(|note| note.trim_end_matches('.').to_owned());
    std::iter::once(known.collect::<Vec<_>>().join("; "))
        .chain(notes)
        .collect::<Vec<_>>()
        .join(". ")
}

/// A text in one line. In Markdown, none of it is markup.
fn plain(text: &str, width: Option<u16>) -> String {
    let escaped = |c: char| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        // An empty comment ends what would become a mention of a person or of an issue.
        '@' | '#' => format!("{c}<!-- -->"),
        '|' | '*' | '_' | '`' | '[' | '\\' | '~' | '$' => format!("\\{c}"),
        c => c.to_string(),
    };
    let shown = shown_whole(text);
    match width {
        None => shown.chars().map(escaped).collect(),
        Some(_) => shown,
    }
}

/// Lines that are no wider, but for words that are.
pub fn wrapped(text: &str, width: u16) -> String {
    let mut table = comfy_table::Table::new();
    table
        .load_style(NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(width);
    table.add_row([text]);
    for column in table.column_iter_mut() {
        column.set_padding((0, 0));
    }
    table.trim_fmt()
}

/// A table for a terminal of that width, without the last columns if words would not fit. In Markdown it is as wide as
/// its content.
fn drawn(rows: &Table, width: Option<u16>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(if width.is_none() {
        ASCII_MARKDOWN
    } else {
        NOTHING
    });
    let cells = rows
        .iter()
        .map(|row| row.iter().map(|text| plain(text, width)).collect());
    let mut cells: Vec<Vec<String>> = cells.collect();
    let mut least = Vec::new();
    if let Some(width) = width {
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(width);
        let word = |n: usize| {
            cells
                .iter()
                .flat_map(|row| row[n].split(' '))
                .map(|word| word.chars().count())
                .max()
        };
        // A column's longest word, unless it is a long name, and the spaces around it.
        least
            .extend((0..cells[0].len()).map(|n| word(n).unwrap_or(0).min(LONGEST_WORD) as u16 + 2));
        while least.len() > 1 && least.iter().sum::<u16>() > width {
            least.pop();
        }
        cells.iter_mut().for_each(|row| row.truncate(least.len()));
    }
    table.set_header(&cells[0]).add_rows(&cells[1..]);
    for (column, least) in table.column_iter_mut().zip(least) {
        column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(least)));
    }
    for (column, _) in table
        .column_iter_mut()
        .zip(&rows[0])
        .filter(|(_, name)| tables::has_numbers(name))
    {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// One line for each case and run.
pub fn csv(comparison: &Comparison) -> Result<String, String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let failed = |error: csv::Error| error.to_string();
    let in_runs = |row: &'_ Row| {
        (0..comparison.runs.len())
            .filter(|&run| row.is_in(run))
            .collect::<Vec<_>>()
    };
    let lines = comparison
        .rows
        .iter()
        .flat_map(|row| in_runs(row).into_iter().map(move |run| (row, run)));
    for (n, (row, run)) in lines.enumerate() {
        let mut record = record(row, run, &comparison.runs[run].label).to_vec();
        record.push((
            "report",
            if n == 0 {
                schema::MARK.to_owned()
            } else {
                String::new()
            },
        ));
        if n == 0 {
            writer
                .write_record(record.iter().map(|(name, _)| name))
                .map_err(failed)?;
        }
        writer
            .write_record(record.iter().map(|(_, value)| value))
            .map_err(failed)?;
    }
    let bytes = writer.into_inner().map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| error.to_string())
}

/// Names and values of a line.
fn record(row: &Row, run: usize, label: &str) -> [(&'static str, String); 17] {
    let (work, cell) = (&row.work, row.cells[run].as_ref());
    let change = run.checked_sub(1).and_then(|n| row.changes[n].as_ref());
    let known = |value: Option<f64>| value.map(|value| format!("{value:.4}")).unwrap_or_default();
    let rate = cell.map(|cell| significant(cell.gigabytes_per_second, 4).replace(',', ""));
    [
        ("case", no_formula(&work.case)),
        ("type", no_formula(&work.data_type)),
        ("mode", work.mode.to_string()),
        ("bytes", work.bytes.to_string()),
        ("run", no_formula(label)),
        (
            "dispatches",
            cell.map(|cell| cell.dispatches.to_string())
                .unwrap_or_default(),
        ),
        (
            "samples",
            cell.map(|cell| cell.samples.to_string())
                .unwrap_or_default(),
        ),
        ("microseconds", known(cell.map(|cell| cell.median))),
        ("noise", known(cell.and_then(|cell| cell.noise))),
        ("gigabytes_per_second", rate.unwrap_or_default()),
        ("of_baseline", known(cell.and_then(|cell| cell.of_baseline))),
        (
            "speed_up_over_first",
            known(change.map(|change| change.speed_up)),
        ),
        (
            "status",
            change
                .map(|change| change.status.name())
                .unwrap_or_default(),
        ),
        ("of_floor", known(cell.and_then(|cell| cell.of_floor))),
        ("failed", row.causes[run].clone().unwrap_or_default()),
        (
            "speed_up_low",
            known(change.map(|change| change.interval.0)),
        ),
        (
            "speed_up_high",
            known(change.map(|change| change.interval.1)),
        ),
    ]
}

/// Text that a spreadsheet does not run.
fn no_formula(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@']);
    format!("{}{text}", if is_formula { "'" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_no_markup_in_markdown() {
        let label = "@user #12 $x$ a|b";
        assert_eq!(
            plain(label, None),
            "@<!-- -->user #<!-- -->12 \\$x\\$ a\\|b"
        );
        assert_eq!(plain(label, Some(80)), label);
    }

    #[test]
    fn a_narrow_table_breaks_no_word() {
        let rows = [
            ["cases", "B", "speedup", "A of baseline"],
            ["rows and blocks", "SLOWER", "0.83×", "41 %"],
        ];
        let table: Table = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        for (width, columns) in [(80, 4), (36, 4), (26, 3), (9, 1)] {
            let drawn = drawn(&table, Some(width));
            let words = rows
                .iter()
                .flat_map(|row| row[..columns].iter().flat_map(|cell| cell.split(' ')));
            assert!(words.clone().all(|word| drawn.contains(word)), "{drawn}");
            assert_eq!(drawn.contains("baseline"), columns == 4, "{drawn}");
            assert!(
                drawn
                    .lines()
                    .all(|line| line.chars().count() <= width.into()),
                "{drawn}"
            );
        }
    }
}
