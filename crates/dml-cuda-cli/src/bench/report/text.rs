//! Reports as text: for a terminal, and as Markdown.
//!
//! Both have the same blocks, with an empty line between them:
//!
//! ```text
//! the verdicts, by type and by kind
//! the machines
//! warnings and notes
//! tables of groups
//! tables of cases
//! hints: what is not listed, and where more figures are
//! the mark by which a report is known
//! ```
//!
//! A table in a terminal loses its last columns if words would be broken, so that no line is wider than the terminal.

use comfy_table::presets::{ASCII_MARKDOWN, NOTHING};
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Width};

use super::tables::{self, Table};
use crate::bench::compare::{Comparison, Summary, Verdict};
use crate::out::shown_whole;
use crate::schema;

/// Characters of a word that a table does not break.
const LONGEST_WORD: usize = 12;

/// Where a text is read.
#[derive(Clone, Copy)]
pub enum Medium {
    Terminal { columns: u16 },
    Markdown,
}

/// The whole report. `all_cases`: with those that only one of two files has.
pub fn text(comparison: &Comparison, medium: Medium, all_cases: bool) -> String {
    let mut paragraphs = Vec::new();
    for verdict in &comparison.verdicts {
        paragraphs.push(medium.verdict(verdict));
    }
    // What ran.
    let files = comparison.files.iter();
    paragraphs.push(files.map(|file| medium.machine(file)).collect());
    // Warnings before notes: a doubt about figures comes before their details.
    let warnings = comparison.warnings.iter();
    let warnings = warnings.map(|warning| medium.item(&warning.text));
    let notes = comparison.notes().into_iter();
    let notes = notes.map(|note| medium.item(&note));
    paragraphs.push(warnings.chain(notes).collect());
    paragraphs.retain(|lines| !lines.is_empty());
    let mut blocks = Vec::new();
    for lines in paragraphs {
        let paragraph = medium.wrapped(&lines.join("\n"));
        blocks.push(paragraph.trim_end().to_owned());
    }
    // Groups first: most readers want no more.
    let mut tables = tables::groups(comparison);
    tables.extend(tables::cases(comparison));
    let of_one_file = tables::of_one_file(comparison);
    // What the report leaves out, and how to see it.
    let mut hint = String::new();
    if all_cases {
        tables.extend(of_one_file);
    } else if !of_one_file.is_empty() {
        let cases = tables::counted_cases(&of_one_file);
        hint = format!("Not listed: {cases} that only one of two files has (--all-cases)\n");
    }
    hint += "More figures, such as bytes, noise, GB/s and of baseline: --format csv";
    blocks.extend(tables.iter().map(|table| medium.table(table)));
    blocks.push(medium.wrapped(&hint));
    blocks.push(match medium {
        Medium::Markdown => format!("<!-- {} -->", schema::MARK),
        Medium::Terminal { .. } => schema::MARK.to_owned(),
    });
    blocks.join("\n\n") + "\n"
}

impl Medium {
    /// What is before an item of a list.
    fn bullet(self) -> &'static str {
        match self {
            Self::Markdown => "- ",
            Self::Terminal { .. } => "",
        }
    }

    /// What is on both sides of bold text.
    fn bold(self) -> &'static str {
        match self {
            Self::Markdown => "**",
            Self::Terminal { .. } => "",
        }
    }

    /// A line of a list.
    fn item(self, text: &str) -> String {
        format!("{}{}", self.bullet(), self.plain(text))
    }

    /// The sentence, and the lines by type and by kind.
    fn verdict(self, verdict: &Verdict) -> Vec<String> {
        let (bullet, bold) = (self.bullet(), self.bold());
        let mut lines = vec![format!("{bold}{}{bold}", self.plain(&verdict.sentence))];
        for (by, line) in [("by type", &verdict.by_type), ("by kind", &verdict.by_kind)] {
            if !line.is_empty() {
                let (unit, line) = (self.plain(&verdict.unit), self.plain(line));
                lines.push(format!("{bullet}{by}, {unit}: {line}"));
            }
        }
        lines
    }

    /// A file's label, machine, timing and notes in one line.
    fn machine(self, file: &Summary) -> String {
        let (bullet, bold) = (self.bullet(), self.bold());
        let (label, machine) = (self.plain(&file.label), self.plain(&machine(file)));
        format!("{bullet}{bold}{label}{bold}: {machine}")
    }

    /// A text in one line. In Markdown, none of it is markup.
    fn plain(self, text: &str) -> String {
        let shown = shown_whole(text);
        match self {
            Self::Markdown => shown.chars().map(escaped).collect(),
            Self::Terminal { .. } => shown,
        }
    }

    /// Lines that are no wider than a terminal, but for words that are.
    fn wrapped(self, text: &str) -> String {
        let Self::Terminal { columns } = self else {
            return text.to_owned();
        };
        let mut table = comfy_table::Table::new();
        table
            .load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(columns);
        table.add_row([text]);
        // The text is not a column among others, so that it has no space at its sides.
        for column in table.column_iter_mut() {
            column.set_padding((0, 0));
        }
        table.trim_fmt()
    }

    /// A table, in a terminal without the last columns if words would not fit. In Markdown it is as wide as its content.
    fn table(self, rows: &Table) -> String {
        let mut cells: Vec<Vec<String>> = Vec::new();
        for row in rows {
            cells.push(row.iter().map(|text| self.plain(text)).collect());
        }
        let mut table = comfy_table::Table::new();
        let mut widths = Vec::new();
        match self {
            Self::Markdown => {
                table.load_style(ASCII_MARKDOWN);
            }
            Self::Terminal { columns } => {
                widths = column_widths(&cells, columns);
                cells.iter_mut().for_each(|row| row.truncate(widths.len()));
                table
                    .load_style(NOTHING)
                    .set_content_arrangement(ContentArrangement::Dynamic)
                    .set_width(columns);
            }
        }
        table.set_header(&cells[0]).add_rows(&cells[1..]);
        for (column, width) in table.column_iter_mut().zip(widths) {
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width)));
        }
        for (column, name) in table.column_iter_mut().zip(&rows[0]) {
            if tables::has_numbers(name) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.trim_fmt()
    }
}

/// A character that Markdown does not take for markup.
fn escaped(character: char) -> String {
    match character {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        // An empty comment ends what would become a mention of a person or of an issue.
        '@' | '#' => format!("{character}<!-- -->"),
        '|' | '*' | '_' | '`' | '[' | '\\' | '~' | '$' => format!("\\{character}"),
        _ => character.to_string(),
    }
}

/// The smallest widths of the columns that fit: a column's longest word, unless it is a long name, and the spaces around
/// it.
fn column_widths(cells: &[Vec<String>], columns: u16) -> Vec<u16> {
    let mut widths = Vec::new();
    for n in 0..cells[0].len() {
        let words = cells.iter().flat_map(|row| row[n].split(' '));
        let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
        widths.push(longest.min(LONGEST_WORD) as u16 + 2);
    }
    while widths.len() > 1 && widths.iter().sum::<u16>() > columns {
        widths.pop();
    }
    widths
}

/// A file's machine, timing and notes in one line.
fn machine(file: &Summary) -> String {
    let mut facts = Vec::new();
    for (_, fact) in tables::facts_of(file) {
        if !fact.is_empty() {
            facts.push(fact);
        }
    }
    let mut sentences = vec![facts.join("; ")];
    for note in &file.notes {
        sentences.push(note.trim_end_matches('.').to_owned());
    }
    sentences.join(". ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_no_markup_in_markdown() {
        let label = "@user #12 $x$ a|b";
        assert_eq!(
            Medium::Markdown.plain(label),
            "@<!-- -->user #<!-- -->12 \\$x\\$ a\\|b"
        );
        let terminal = Medium::Terminal { columns: 80 };
        assert_eq!(terminal.plain(label), label);
    }

    #[test]
    fn a_narrow_table_breaks_no_word() {
        let rows = [
            ["cases", "B", "speedup", "A of baseline"],
            ["rows and blocks", "SLOWER", "0.83×", "41 %"],
        ];
        let table: Table = rows.map(|row| row.map(str::to_owned).to_vec()).to_vec();
        for (width, columns) in [(80, 4), (36, 4), (26, 3), (9, 1)] {
            let drawn = Medium::Terminal { columns: width }.table(&table);
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
