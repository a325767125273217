//! Typed access to a JSON document in which every error names the place: `resources.A.initialValues[3]`.
//!
//! Like DxDispatch, this accepts comments and trailing commas. Numbers stay text until their type is known, so that 64-bit integers keep
//! all digits. Readers record in the document what DxDispatch would refuse; `--strict` makes that an error.

use std::borrow::Cow;
use std::cell::{Ref, RefCell};
use std::fmt;
use std::rc::Rc;

use jsonc_parser::tokens::Token;
use jsonc_parser::{Scanner, ScannerOptions};

use crate::out::shown;

/// The error of an unreadable document: where, and why.
pub type Result<T> = std::result::Result<T, String>;

/// The most values inside each other.
const DEEPEST: usize = 256;

/// A parsed document, and what its readers found.
pub struct Document<'a> {
    text: &'a str,
    value: Value<'a>,
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
    /// The byte at which it begins, and the line of that byte.
    at: usize,
    line: usize,
    kind: Kind<'a>,
}

enum Kind<'a> {
    Null,
    Boolean(bool),
    Number(&'a str),
    Text(Cow<'a, str>),
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
    /// Its elements are not kept but read from the text again, because there may be millions.
    Array,
}

/// Parses a document; an error names line and column.
pub fn parse(text: &str) -> Result<Document<'_>> {
    let mut parser = Parser::new(text, 0, 1);
    parser.next()?;
    if parser.token.is_none() {
        return Err(parser.error("the document is empty"));
    }
    let value = parser.value(0)?;
    parser.next()?;
    if parser.token.is_some() {
        return Err(parser.error("text after the document's value"));
    }
    let findings = Findings { refused: parser.refused, ..Findings::default() };
    Ok(Document { text, value, findings: RefCell::new(findings) })
}

struct Parser<'a> {
    text: &'a str,
    /// The byte at which the scanner began.
    begin: usize,
    scanner: Scanner<'a>,
    token: Option<Token<'a>>,
    /// The line of the token.
    line: usize,
    refused: Vec<String>,
}

impl<'a> Parser<'a> {
    /// Begins at a byte of that line. Takes the same extensions of JSON as DxDispatch: comments, and trailing commas.
    fn new(text: &'a str, begin: usize, line: usize) -> Self {
        let options = ScannerOptions {
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        Self { text, begin, scanner: Scanner::new(&text[begin..], &options), token: None, line, refused: Vec::new() }
    }

    /// The byte at which the token begins.
    fn at(&self) -> usize {
        self.begin + self.scanner.token_start()
    }

    /// Goes to the next token that is no comment.
    fn next(&mut self) -> Result<()> {
        let before = self.at();
        loop {
            self.token = self.scanner.scan().map_err(|error| {
                let (line, column) = (error.line_display(), error.column_display());
                format!("line {line}, column {column}: {}", lower_first(&error.kind().to_string()))
            })?;
            if !matches!(self.token, Some(Token::CommentLine(_) | Token::CommentBlock(_))) {
                break;
            }
        }
        self.line += self.text[before..self.at()].matches('\n').count();
        if let Some(Token::String(_)) = self.token {
            let literal = &self.text[self.at()..self.begin + self.scanner.token_end()];
            if let Some(found) = literal.chars().find(|character| *character < ' ') {
                let line = self.line;
                self.refused.push(format!("line {line}: a string has the character {found:?}, must have an escape"));
            }
        }
        Ok(())
    }

    fn error(&self, why: &str) -> String {
        let column = self.text[..self.at()].rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {}, column {column}: {why}", self.line)
    }

    /// The value that begins with this token. Ends at its last token.
    fn value(&mut self, depth: usize) -> Result<Value<'a>> {
        if depth > DEEPEST {
            return Err(self.error(&format!("more than {DEEPEST} values inside each other")));
        }
        let (at, line) = (self.at(), self.line);
        let kind = match self.token.take() {
            Some(Token::Null) => Kind::Null,
            Some(Token::Boolean(value)) => Kind::Boolean(value),
            Some(Token::Number(text)) => Kind::Number(text),
            Some(Token::String(text)) => Kind::Text(text),
            Some(Token::OpenBrace) => self.object(depth)?,
            Some(Token::OpenBracket) => self.array(depth, |_| Ok(()))?,
            _ => return Err(self.error("expected a value")),
        };
        Ok(Value { at, line, kind })
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

    /// Calls `read` with each element.
    fn array(&mut self, depth: usize, mut read: impl FnMut(Value<'a>) -> Result<()>) -> Result<Kind<'a>> {
        self.next()?;
        while self.token != Some(Token::CloseBracket) {
            read(self.value(depth + 1)?)?;
            self.separator(&Token::CloseBracket)?;
        }
        Ok(Kind::Array)
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

impl<'a> Document<'a> {
    pub fn root(&self) -> Node<'_> {
        Node { value: &self.value, path: Path::Root, document: self }
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
    path: Path<'a>,
    document: &'a Document<'a>,
}

/// Where a value is, from the root on.
#[derive(Clone)]
enum Path<'a> {
    Root,
    Member(Rc<Path<'a>>, &'a str),
    Element(Rc<Path<'a>>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(parent, name) if matches!(**parent, Self::Root) => f.write_str(name),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Element(array, index) => write!(f, "{array}[{index}]"),
        }
    }
}

impl<'a> Node<'a> {
    /// An error about this value.
    pub fn error(&self, found: impl fmt::Display, required: impl fmt::Display) -> String {
        format!("{} is {found}, must be {required}", self.place())
    }

    fn place(&self) -> String {
        let line = self.value.line;
        match &*self.path.to_string() {
            "" => format!("line {line}: the document"),
            path => format!("line {line}: {}", shown(path)),
        }
    }

    /// Records that DxDispatch would refuse this value, or run with another.
    pub fn refuse(&self, found: impl fmt::Display, required: impl fmt::Display) {
        self.document.refuse(self.error(found, required));
    }

    /// Records that DxDispatch accepts this value but does something else.
    pub fn differs(&self, found: impl fmt::Display, required: impl fmt::Display) {
        self.document.findings.borrow_mut().differing.push(self.error(found, required));
    }

    /// The value as text without spaces.
    pub fn compact(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match &self.value.kind {
            Kind::Text(text) => quoted(text),
            Kind::Object(_) => {
                let members = self.members().unwrap_or_default();
                let members = members.iter().map(|(name, member)| format!("{}:{}", quoted(name), member.compact()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Kind::Array => {
                let elements = self.each(|element| Ok(element.compact()));
                format!("[{}]", elements.unwrap_or_default().join(","))
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
            Kind::Array => "an array".to_owned(),
        }
    }

    pub fn is_object(&self) -> bool {
        matches!(self.value.kind, Kind::Object(_))
    }

    pub fn is_array(&self) -> bool {
        matches!(self.value.kind, Kind::Array)
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

    fn is_null(&self) -> bool {
        matches!(self.value.kind, Kind::Null)
    }

    /// The members of an object, in the document's order.
    pub fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let Kind::Object(members) = &self.value.kind else { return Err(self.error(self.kind(), "an object")) };
        let parent = Rc::new(self.path.clone());
        let member = |(name, value): &'a (Cow<'a, str>, Value<'a>)| {
            let path = Path::Member(parent.clone(), name);
            (&**name, Node { value, path, document: self.document })
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
        Ok(self.member(name)?.filter(|member| !member.is_null()))
    }

    /// The same. DxDispatch refuses this member as null.
    pub fn get_not_null(&self, name: &str, required: &str) -> Result<Option<Node<'a>>> {
        let member = self.member(name)?;
        if let Some(null) = member.as_ref().filter(|member| member.is_null()) {
            null.refuse("null", required);
        }
        Ok(member.filter(|member| !member.is_null()))
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

    /// Reads each element of an array.
    pub fn each<T>(&self, mut read: impl FnMut(&Node<'_>) -> Result<T>) -> Result<Vec<T>> {
        if !self.is_array() {
            return Err(self.error(self.kind(), "an array"));
        }
        let mut parser = Parser::new(self.document.text, self.value.at, self.value.line);
        parser.next()?;
        let array = Rc::new(self.path.clone());
        let mut all = Vec::new();
        parser.array(0, |value| {
            let path = Path::Element(array.clone(), all.len());
            all.push(read(&Node { value: &value, path, document: self.document })?);
            Ok(())
        })?;
        Ok(all)
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
    pub fn unsigned<T: TryFrom<i128> + fmt::Display>(&self, maximum: T) -> Result<T> {
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
        self.get_not_null(name, "an array of integers")?.map(|list| list.each(|element| element.u32())).transpose()
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
