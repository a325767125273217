//! Typed access to a JSON document in which every error names the place: `resources.A.initialValues[3]`.
//!
//! Like DxDispatch, this accepts comments and trailing commas. Numbers stay text until their type is known, so that 64-bit integers keep
//! all digits. Readers record in the document what DxDispatch would refuse; `--strict` makes that an error.

use std::borrow::Cow;
use std::cell::{Ref, RefCell};
use std::rc::Rc;

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use crate::out::shown;

/// The error of an unreadable document: where, and why.
pub type Result<T> = std::result::Result<T, String>;

/// From here on the elements of an array are not kept but read from the text again.
const LONG: usize = 1024;

/// The most values inside each other.
const DEEPEST: usize = 256;

/// A parsed document, and what its readers found.
pub struct Document<'a> {
    value: Value<'a>,
    lines: Lines<'a>,
    findings: RefCell<Findings>,
}

/// What a reader of the model should know.
#[derive(Default)]
pub struct Findings {
    /// Members that nothing reads.
    pub warnings: Vec<String>,
    /// What DxDispatch would refuse, or run with other values.
    pub refused: Vec<String>,
    /// What DxDispatch accepts but does in another way.
    pub differing: Vec<String>,
}

pub struct Value<'a> {
    /// The byte at which it begins.
    at: usize,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    Boolean(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
    Array(Vec<Value<'a>>),
    /// The text of a long array, from its bracket on.
    Long,
}

/// Parses a document; an error names line and column.
pub fn parse(text: &str) -> Result<Document<'_>> {
    let lines = Lines::new(text);
    let mut parser = Parser { scanner: scanner(text), lines, token: None, findings: Findings::default() };
    parser.next()?;
    if parser.token.is_none() {
        return Err(parser.error("the document is empty"));
    }
    let value = parser.value(0)?;
    parser.next()?;
    match parser.token {
        Some(_) => Err(parser.error("text after the document's value")),
        None => Ok(Document { value, lines: parser.lines, findings: RefCell::new(parser.findings) }),
    }
}

/// The same extensions of JSON as in DxDispatch: comments, and trailing commas.
fn scanner(text: &str) -> Scanner<'_> {
    let options = ScannerOptions {
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    Scanner::new(text, &options)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    lines: Lines<'a>,
    token: Option<Token<'a>>,
    findings: Findings,
}

impl<'a> Parser<'a> {
    /// Goes to the next token that is no comment.
    fn next(&mut self) -> Result<()> {
        loop {
            self.token = self.scanner.scan().map_err(|error| {
                let (line, column) = (error.line_display(), error.column_display());
                format!("line {line}, column {column}: {}", lower_first(&error.kind().to_string()))
            })?;
            if !matches!(self.token, Some(Token::CommentLine(_) | Token::CommentBlock(_))) {
                break;
            }
        }
        let (begin, end) = (self.scanner.token_start(), self.scanner.token_end());
        if let (Some(Token::String(_)), Some(found)) =
            (&self.token, self.lines.text[begin..end].chars().find(|character| *character < ' '))
        {
            let line = self.lines.of(begin);
            let refused = format!("line {line}: a string has the character {found:?}, must have an escape");
            self.findings.refused.push(refused);
        }
        Ok(())
    }

    fn error(&self, why: &str) -> String {
        let at = self.scanner.token_start();
        let column = self.lines.text[..at].rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {}, column {column}: {why}", self.lines.of(at))
    }

    /// The value that begins with this token. Ends at its last token.
    fn value(&mut self, depth: usize) -> Result<Value<'a>> {
        if depth > DEEPEST {
            return Err(self.error(&format!("more than {DEEPEST} values inside each other")));
        }
        let at = self.scanner.token_start();
        let kind = match self.token.take() {
            Some(Token::Null) => Kind::Null,
            Some(Token::Boolean(value)) => Kind::Boolean(value),
            Some(Token::Number(text)) => Kind::Number(text),
            Some(Token::String(text)) => Kind::Text(text),
            Some(Token::OpenBrace) => self.object(depth)?,
            Some(Token::OpenBracket) => self.array(depth)?,
            _ => return Err(self.error("expected a value")),
        };
        Ok(Value { at, kind })
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'a>> {
        let mut members = Vec::new();
        self.next()?;
        while self.token != Some(Token::CloseBrace) {
            let Some(Token::String(name)) = self.token.take() else {
                return Err(self.error("expected a member's name in double quotes, or the object's end"));
            };
            self.next()?;
            if self.token != Some(Token::Colon) {
                return Err(self.error("expected a colon after a member's name"));
            }
            self.next()?;
            members.push((name, self.value(depth + 1)?));
            self.separator(&Token::CloseBrace)?;
        }
        Ok(Kind::Object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Kind<'a>> {
        let (mut elements, mut is_long) = (Vec::new(), false);
        self.next()?;
        while self.token != Some(Token::CloseBracket) {
            let element = self.value(depth + 1)?;
            self.separator(&Token::CloseBracket)?;
            if !is_long {
                elements.push(element);
            }
            let are_scalars = || elements.iter().all(|it| matches!(it.kind, Kind::Number(_) | Kind::Text(_)));
            if elements.len() == LONG && are_scalars() {
                (elements, is_long) = (Vec::new(), true);
            }
        }
        Ok(if is_long { Kind::Long } else { Kind::Array(elements) })
    }

    /// Goes behind a comma, or to the end of an object or an array.
    fn separator(&mut self, end: &Token) -> Result<()> {
        self.next()?;
        match &self.token {
            Some(Token::Comma) => self.next(),
            token if token.as_ref() == Some(end) => Ok(()),
            _ => Err(self.error("expected a comma")),
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// Tells lines by bytes. Counts those of a block, and knows the sum of the blocks before it.
struct Lines<'a> {
    text: &'a str,
    before: Vec<usize>,
}

impl<'a> Lines<'a> {
    const BLOCK: usize = 4096;

    fn new(text: &'a str) -> Self {
        let mut before = vec![0];
        for block in text.as_bytes().chunks(Self::BLOCK) {
            before.push(before.last().unwrap_or(&0) + newlines(block));
        }
        Self { text, before }
    }

    /// The line of a byte, from 1 on.
    fn of(&self, at: usize) -> usize {
        let begin = at / Self::BLOCK * Self::BLOCK;
        self.before[at / Self::BLOCK] + newlines(&self.text.as_bytes()[begin..at]) + 1
    }
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

impl<'a> Document<'a> {
    pub fn root(&self) -> Node<'_> {
        Node { value: &self.value, path: Rc::from(""), index: None, document: self }
    }

    pub fn findings(&self) -> Ref<'_, Findings> {
        self.findings.borrow()
    }

    /// Records what is not a place in the document.
    pub fn refuse(&self, why: String) {
        self.findings.borrow_mut().refused.push(why);
    }
}

/// A value, and its place in the document.
#[derive(Clone)]
pub struct Node<'a> {
    value: &'a Value<'a>,
    path: Rc<str>,
    index: Option<usize>,
    document: &'a Document<'a>,
}

impl<'a> Node<'a> {
    /// An error about this value.
    pub fn error(&self, found: impl std::fmt::Display, required: impl std::fmt::Display) -> String {
        format!("{} is {found}, must be {required}", self.place())
    }

    fn place(&self) -> String {
        let line = self.document.lines.of(self.value.at);
        match &*self.whole_path() {
            "" => format!("line {line}: the document"),
            path => format!("line {line}: {}", shown(path)),
        }
    }

    /// Records that DxDispatch would refuse this value, or run with another.
    pub fn refuse(&self, found: impl std::fmt::Display, required: impl std::fmt::Display) {
        self.document.refuse(self.error(found, required));
    }

    /// Records that DxDispatch accepts this value but does something else.
    pub fn differs(&self, found: impl std::fmt::Display, required: impl std::fmt::Display) {
        self.document.findings.borrow_mut().differing.push(self.error(found, required));
    }

    fn child<'b>(&'b self, value: &'b Value<'b>, step: &str) -> Node<'b> {
        let path = self.path_of(step);
        Node { value, path, index: None, document: self.document }
    }

    /// The path of this value itself.
    fn whole_path(&self) -> Rc<str> {
        self.index.map_or_else(|| self.path.clone(), |index| Rc::from(format!("{}[{index}]", self.path)))
    }

    fn path_of(&self, step: &str) -> Rc<str> {
        match &*self.whole_path() {
            "" => Rc::from(step),
            parent => Rc::from(format!("{parent}.{step}")),
        }
    }

    /// The value as text without spaces.
    pub fn compact(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match &self.value.kind {
            Kind::Text(text) => quoted(text),
            Kind::Object(members) => {
                let members =
                    members.iter().map(|(name, value)| format!("{}:{}", quoted(name), self.child(value, "").compact()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Kind::Array(_) | Kind::Long => {
                let mut elements = Vec::new();
                let _ = self.for_each(|element| {
                    elements.push(element.compact());
                    Ok(())
                });
                format!("[{}]", elements.join(","))
            }
            _ => self.kind(),
        }
    }

    /// The value in words, for messages.
    pub fn kind(&self) -> String {
        match &self.value.kind {
            Kind::Text(text) => format!("\"{}\"", shown(text)),
            Kind::Number(text) => shown(text),
            Kind::Boolean(value) => value.to_string(),
            Kind::Null => "null".to_owned(),
            Kind::Object(_) => "an object".to_owned(),
            Kind::Array(_) | Kind::Long => "an array".to_owned(),
        }
    }

    pub fn is_object(&self) -> bool {
        matches!(self.value.kind, Kind::Object(_))
    }

    pub fn is_array(&self) -> bool {
        matches!(self.value.kind, Kind::Array(_) | Kind::Long)
    }

    pub fn is_text(&self) -> bool {
        matches!(self.value.kind, Kind::Text(_))
    }

    /// The text of a number.
    pub fn digits(&self) -> Option<&'a str> {
        match self.value.kind {
            Kind::Number(text) => Some(text),
            _ => None,
        }
    }

    /// The members of an object, in the document's order.
    pub fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let Kind::Object(members) = &self.value.kind else { return Err(self.error(self.kind(), "an object")) };
        let member = |(name, value): &'a (Cow<'a, str>, Value<'a>)| {
            (&**name, Node { value, path: self.path_of(name), index: None, document: self.document })
        };
        Ok(members.iter().map(member).collect())
    }

    /// A member of an object, also if it is null.
    pub fn member(&self, name: &str) -> Result<Option<Node<'a>>> {
        let mut found = self.members()?.into_iter().filter(|(found, _)| *found == name).map(|(_, member)| member);
        let first = found.next();
        match found.next() {
            Some(second) => Err(second.error("given a second time", "given once")),
            None => Ok(first),
        }
    }

    /// A member of an object, unless absent or null.
    pub fn get(&self, name: &str) -> Result<Option<Node<'a>>> {
        Ok(self.member(name)?.filter(|member| !matches!(member.value.kind, Kind::Null)))
    }

    /// The same. DxDispatch refuses this member as null.
    pub fn get_not_null(&self, name: &str, required: &str) -> Result<Option<Node<'a>>> {
        let member = self.member(name)?;
        let is_null = |member: &Node| matches!(member.value.kind, Kind::Null);
        member.iter().filter(|member| is_null(member)).for_each(|member| member.refuse("null", required));
        Ok(member.filter(|member| !is_null(member)))
    }

    /// Fails if a member differs from one of `names` only in case: DxDispatch would silently ignore it. Warns of members that nothing reads.
    pub fn check_names(&self, names: &[&str]) -> Result<()> {
        for (found, member) in self.members()? {
            if names.contains(&found) {
                continue;
            }
            if let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(found)) {
                let required = format!("spelled \"{name}\", or left out");
                return Err(member.error(format!("spelled \"{}\"", shown(found)), required));
            }
            let likeness = |name: &str| strsim::jaro_winkler(&found.to_lowercase(), &name.to_lowercase());
            let nearest = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
            let nearest = nearest.map_or_else(String::new, |name| format!("; the nearest name is \"{name}\""));
            let found = shown(found);
            let warning = format!("{} is a member \"{found}\", which nothing reads{nearest}", member.place());
            self.document.findings.borrow_mut().warnings.push(warning);
        }
        Ok(())
    }

    /// A required member of an object.
    pub fn require(&self, name: &str) -> Result<Node<'a>> {
        self.get(name)?.ok_or_else(|| self.error(format!("without the member {name}"), "an object that has it"))
    }

    /// The elements of an array that is not long.
    pub fn elements(&self) -> Result<Vec<Node<'a>>> {
        let Kind::Array(elements) = &self.value.kind else {
            let required = if self.is_array() { "one of fewer elements" } else { "an array" };
            return Err(self.error(self.kind(), required));
        };
        Ok(elements.iter().enumerate().map(|(n, value)| self.element(n, value)).collect())
    }

    fn element<'b>(&self, n: usize, value: &'b Value<'b>) -> Node<'b>
    where
        'a: 'b,
    {
        Node { value, path: self.whole_path(), index: Some(n), document: self.document }
    }

    /// Calls `read` with each element of an array, however long.
    pub fn for_each(&self, mut read: impl FnMut(&Node<'_>) -> Result<()>) -> Result<()> {
        if !matches!(self.value.kind, Kind::Long) {
            return self.elements()?.iter().try_for_each(read);
        }
        let begin = self.value.at;
        let mut scanner = scanner(&self.document.lines.text[begin + 1..]);
        let mut n = 0;
        loop {
            let token = scanner.scan().map_err(|error| error.to_string())?;
            let kind = match token {
                Some(Token::Number(text)) => Kind::Number(text),
                Some(Token::String(text)) => Kind::Text(text),
                Some(Token::CloseBracket) | None => return Ok(()),
                Some(Token::Comma | Token::CommentLine(_) | Token::CommentBlock(_)) => continue,
                Some(_) => {
                    let null = Value { at: begin + 1 + scanner.token_start(), kind: Kind::Null };
                    return Err(self.element(n, &null).error("neither a number nor a string", "one of them"));
                }
            };
            let value = Value { at: begin + 1 + scanner.token_start(), kind };
            read(&self.element(n, &value))?;
            n += 1;
        }
    }

    pub fn string(&self) -> Result<&'a str> {
        match &self.value.kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.error(self.kind(), "a string")),
        }
    }

    pub fn boolean(&self) -> Result<bool> {
        match self.value.kind {
            Kind::Boolean(value) => Ok(value),
            _ => Err(self.error(self.kind(), "true or false")),
        }
    }

    /// A number without a fraction. Accepts `2.0` and `1e3` too, which DxDispatch refuses.
    pub fn integer(&self) -> Result<i128> {
        let failed = || self.error(self.kind(), "an integer");
        let number = self.digits().ok_or_else(failed)?;
        if let Ok(integer) = number.parse() {
            return Ok(integer);
        }
        // Floats are exact integers up to 2^53. Beyond that only the integer notation is exact.
        let float: f64 = number.parse().map_err(|_| failed())?;
        if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0 {
            self.refuse(self.kind(), "an integer without a fraction or an exponent");
            Ok(float as i128)
        } else {
            Err(failed())
        }
    }

    /// An integer of an unsigned type.
    pub fn unsigned<T: TryFrom<i128> + std::fmt::Display>(&self, maximum: T) -> Result<T> {
        let integer = self.integer()?;
        if self.digits().is_some_and(|digits| integer == 0 && digits.starts_with('-')) {
            self.refuse(self.kind(), "0");
        }
        T::try_from(integer).map_err(|_| self.error(integer, format!("from 0 to {maximum}")))
    }

    pub fn u32(&self) -> Result<u32> {
        self.unsigned(u32::MAX)
    }

    pub fn u64(&self) -> Result<u64> {
        self.unsigned(u64::MAX)
    }

    /// A member that is an integer of 0 or more. DxDispatch refuses null.
    pub fn optional_u64(&self, name: &str) -> Result<Option<u64>> {
        self.get_not_null(name, "an integer of 0 or more")?.map(|member| member.u64()).transpose()
    }

    pub fn optional_u32(&self, name: &str) -> Result<Option<u32>> {
        self.get_not_null(name, "an integer of 0 or more")?.map(|member| member.u32()).transpose()
    }

    /// A member that is a list of such integers.
    pub fn optional_list(&self, name: &str) -> Result<Option<Vec<u32>>> {
        let Some(list) = self.get_not_null(name, "an array of integers")? else { return Ok(None) };
        let mut numbers = Vec::new();
        list.for_each(|element| {
            numbers.push(element.u32()?);
            Ok(())
        })?;
        Ok(Some(numbers))
    }

    /// A number, or one of the strings "nan", "inf" and "-inf".
    pub fn float(&self) -> Result<f64> {
        let failed = || self.error(self.kind(), "a number, \"nan\", \"inf\" or \"-inf\"");
        match &self.value.kind {
            Kind::Number(text) => text.parse().map_err(|_| failed()),
            Kind::Text(text) => match text.to_ascii_lowercase().as_str() {
                "nan" => Ok(f64::NAN),
                "inf" => Ok(f64::INFINITY),
                "-inf" => Ok(f64::NEG_INFINITY),
                _ => Err(failed()),
            },
            _ => Err(failed()),
        }
    }

    /// Reads a member with `read`. Returns `default` if it is absent or null.
    pub fn get_or<T>(&self, name: &str, default: T, read: impl FnOnce(&Node<'a>) -> Result<T>) -> Result<T> {
        self.get(name)?.map_or(Ok(default), |node| read(&node))
    }
}
