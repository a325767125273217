//! JSON documents, with comments and trailing commas as in DxDispatch.
//!
//! Two things differ from a usual parser:
//!
//! - Numbers stay text until their type is known, so that 64-bit integers keep all digits.
//! - Arrays are checked but not kept, because a list of initial values may have millions of elements. A value keeps the text
//!   from where it begins, and [`Value::elements`] parses that again when somebody reads the elements.
//!
//! DxDispatch parses with RapidJSON 1.1.0, which reads some documents otherwise or not at all. What it would refuse is
//! recorded while the document is parsed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use crate::text::shown;

/// The error of an unreadable document: where, and why.
pub type Result<T, E = String> = std::result::Result<T, E>;

/// The most values inside each other.
const DEEPEST: usize = 256;

/// A parsed document with the findings of its readers. They record what DxDispatch would refuse, which `--strict`
/// makes an error.
pub struct Document<'a> {
    pub value: Value<'a>,
    pub findings: RefCell<Findings>,
}

/// A difference from DxDispatch, found while the model is read.
#[derive(Default)]
pub struct Findings {
    /// Members that nothing reads, which are warnings.
    pub unread: Vec<Unread>,
    /// Bytes of a file are taken for numbers of another type, here and in DxDispatch.
    pub misread: Vec<String>,
    /// DxDispatch would refuse this, or run with other values.
    pub refused: Vec<String>,
    /// DxDispatch accepts this but does it in another way.
    pub differing: Vec<String>,
}

/// A member that nothing reads.
pub struct Unread {
    /// The place of its object.
    pub object: String,
    /// A description of the member, with its own place.
    pub found: String,
    /// The nearest name that something would read.
    pub nearest: Option<&'static str>,
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.found)?;
        match self.nearest {
            Some(nearest) => write!(f, "; the nearest name is \"{nearest}\""),
            None => Ok(()),
        }
    }
}

/// A value of the document.
pub struct Value<'a> {
    /// The document from here on, and the line on which it begins.
    text: &'a str,
    pub line: usize,
    pub kind: Kind<'a>,
}

/// What a value is.
pub enum Kind<'a> {
    Null,
    Boolean(bool),
    /// The digits as they are written.
    Number(&'a str),
    /// The text without its escapes.
    Text(Cow<'a, str>),
    /// The members in their order. A name may be there twice.
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
    /// Its elements are not kept but read from the text again, because there may be millions.
    Array,
}

/// Describes the value for messages.
impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{}\"", shown(text)),
            Self::Number(text) => f.write_str(&shown(text)),
            Self::Boolean(value) => value.fmt(f),
            Self::Null => f.write_str("null"),
            Self::Object(_) => f.write_str("an object"),
            Self::Array => f.write_str("an array"),
        }
    }
}

/// Parses a document; an error names line and column.
pub fn parse(text: &str) -> Result<Document<'_>> {
    // A document is one value, with comments around it.
    let mut parser = Parser::new(text, 1);
    parser.next()?;
    if parser.token.is_none() {
        return Err(parser.error("the document is empty"));
    }
    let value = parser.value(0)?;
    parser.next()?;
    if parser.token.is_some() {
        return Err(parser.error("text after the document's value"));
    }
    let findings = Findings {
        refused: parser.refused,
        ..Findings::default()
    };
    Ok(Document {
        value,
        findings: RefCell::new(findings),
    })
}

impl<'a> Value<'a> {
    /// Calls `read` with each element of an array.
    pub fn elements(&self, read: impl FnMut(Value<'a>) -> Result<()>) -> Result<()> {
        let mut parser = Parser::new(self.text, self.line);
        parser.next()?;
        // Depth counts from here: the array itself was not too deep.
        parser.array(0, read).map(drop)
    }
}

/// Whether RapidJSON 1.1.0, the parser of DxDispatch, reads a number with its value. It refuses large integers before
/// it sees their exponents. It reads zeros and numbers below the smallest double as other numbers, or crashes, unless
/// it takes its exact arithmetic or sees early that they are zero.
fn rapidjson_reads(number: &str) -> bool {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let [value, whole, exponent] =
        [number, integer, exponent].map(|text| text.parse().unwrap_or(f64::NAN));
    // The digits that RapidJSON multiplies out, without zeros before them.
    let digits = [integer, fraction].concat();
    let length = digits.trim_start_matches(['-', '0']).len().max(1);
    let is_exact = (-22.0..=37.0).contains(&(exponent - fraction.len() as f64));
    value.is_finite()
        && whole.is_finite()
        && (value != 0.0 || is_exact || length as f64 + exponent < -324.0)
}

/// Goes through the text token by token. There is no tree of tokens.
struct Parser<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    token: Option<Token<'a>>,
    /// The line of the token.
    line: usize,
    /// What DxDispatch would refuse, so far.
    refused: Vec<String>,
}

impl<'a> Parser<'a> {
    /// Begins on a line. Accepts the same extensions of JSON as DxDispatch: comments and trailing commas.
    fn new(text: &'a str, line: usize) -> Self {
        let options = ScannerOptions {
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        Self {
            text,
            scanner: Scanner::new(text, &options),
            token: None,
            line,
            refused: Vec::new(),
        }
    }

    /// Goes to the next token that is no comment.
    fn next(&mut self) -> Result<()> {
        // A token may span lines, so that lines are counted from begin to begin.
        let before = self.scanner.token_start();
        loop {
            let (end, in_line) = (
                self.scanner.token_end(),
                matches!(self.token, Some(Token::CommentLine(_))),
            );
            self.token = self.scanner.scan().map_err(|error| {
                let (line, column, mut why) = (
                    error.line_display(),
                    error.column_display(),
                    error.kind().to_string(),
                );
                // The scanner's messages are sentences. Messages here are not.
                why[..1].make_ascii_lowercase();
                format!("line {line}, column {column}: {why}")
            })?;
            // The scanner takes every white space of Unicode. RapidJSON takes JSON's four.
            let gap = &self.text[end..self.scanner.token_start()];
            if gap.contains(|c| !matches!(c, ' ' | '\t' | '\n' | '\r')) {
                self.refuse(format_args!(
                    "{gap:?} is between values, but must be JSON's white space"
                ));
            }
            if in_line && self.token.is_some() && !gap.contains('\n') {
                self.refuse(format_args!(
                    "a comment ends with {gap:?}, but must end with {:?}",
                    "\n"
                ));
            }
            if !matches!(
                self.token,
                Some(Token::CommentLine(_) | Token::CommentBlock(_))
            ) {
                break;
            }
        }
        self.line += self.text[before..self.scanner.token_start()]
            .matches('\n')
            .count();
        if let Some(Token::String(_)) = self.token {
            let literal = &self.text[self.scanner.token_start()..self.scanner.token_end()];
            if let Some(found) = literal.chars().find(|character| *character < ' ') {
                self.refuse(format_args!(
                    "a string has the character {found:?}, but must have an escape"
                ));
            }
        }
        Ok(())
    }

    /// Records that DxDispatch refuses the document, near this line.
    fn refuse(&mut self, why: fmt::Arguments) {
        self.refused.push(format!("line {}: {why}", self.line));
    }

    /// An error at the current token.
    fn error(&self, why: &str) -> String {
        let column = self.text[..self.scanner.token_start()]
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        format!("line {}, column {column}: {why}", self.line)
    }

    /// The value that begins with this token. Ends at its last token.
    fn value(&mut self, depth: usize) -> Result<Value<'a>> {
        // Each level is a call of this function, and a thread's stack is limited.
        if depth > DEEPEST {
            return Err(self.error(&format!("more than {DEEPEST} values inside each other")));
        }
        let (text, line) = (&self.text[self.scanner.token_start()..], self.line);
        let kind = match self.token.take() {
            Some(Token::Null) => Kind::Null,
            Some(Token::Boolean(value)) => Kind::Boolean(value),
            Some(Token::Number(text)) => {
                if !rapidjson_reads(text) {
                    let (found, required) = (
                        shown(text),
                        "a number that RapidJSON 1.1.0 reads, such as 0",
                    );
                    self.refuse(format_args!("a number is {found}, but must be {required}"));
                }
                Kind::Number(text)
            }
            Some(Token::String(text)) => Kind::Text(text),
            Some(Token::OpenBrace) => self.object(depth)?,
            Some(Token::OpenBracket) => self.array(depth, |_| Ok(()))?,
            _ => return Err(self.error("expected a value")),
        };
        Ok(Value { text, line, kind })
    }

    /// The members of an object. A name that is given twice stays twice, so that a reader can refuse it.
    fn object(&mut self, depth: usize) -> Result<Kind<'a>> {
        let mut members = Vec::new();
        self.list(&Token::CloseBrace, |parser| {
            let Some(Token::String(name)) = parser.token.take() else {
                return Err(
                    parser.error("expected a member's name in double quotes, or the object's end")
                );
            };
            parser.next()?;
            if parser.token != Some(Token::Colon) {
                return Err(parser.error("expected a colon after a member's name"));
            }
            parser.next()?;
            members.push((name, parser.value(depth + 1)?));
            Ok(())
        })?;
        Ok(Kind::Object(members))
    }

    /// Calls `read` with each element.
    fn array(
        &mut self,
        depth: usize,
        mut read: impl FnMut(Value<'a>) -> Result<()>,
    ) -> Result<Kind<'a>> {
        self.list(&Token::CloseBracket, |parser| {
            read(parser.value(depth + 1)?)
        })?;
        Ok(Kind::Array)
    }

    /// Calls `read` at each entry, up to the end of an object or an array.
    fn list(&mut self, end: &Token, mut read: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        self.next()?;
        while self.token.as_ref() != Some(end) {
            read(self)?;
            self.next()?;
            if self.token == Some(Token::Comma) {
                self.next()?;
            } else if self.token.as_ref() != Some(end) {
                return Err(self.error("expected a comma"));
            }
        }
        Ok(())
    }
}
