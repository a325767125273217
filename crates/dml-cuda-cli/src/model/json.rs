//! Typed access to a JSON document in which every error names the place: `resources.A.initialValues[3]`.
//!
//! Like DxDispatch, this accepts comments and trailing commas. Numbers stay text until their type is known, so that 64-bit integers keep
//! all digits.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{parse_to_ast, CollectOptions, ParseOptions};

/// The error of an unreadable document: where, and why.
pub type Result<T> = std::result::Result<T, String>;

/// A parsed document, and the start of each line.
pub struct Document<'a> {
    value: Value<'a>,
    line_starts: Vec<usize>,
}

/// Parses a document; an error names line and column.
pub fn parse(text: &str) -> Result<Document<'_>> {
    // The same extensions of JSON as in DxDispatch.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        format!(
            "line {}, column {}: {}",
            error.line_display(),
            error.column_display(),
            lower_first(&error.kind().to_string())
        )
    })?;
    let value = parsed.value.ok_or_else(|| "line 1, column 1: the document is empty".to_owned())?;
    let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    Ok(Document { value, line_starts })
}

impl<'a> Document<'a> {
    pub fn root(&self) -> Node<'_> {
        Node { value: &self.value, path: String::new(), line_starts: &self.line_starts }
    }
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}

/// A value, and its place in the document.
#[derive(Clone)]
pub struct Node<'a> {
    pub value: &'a Value<'a>,
    path: String,
    line_starts: &'a [usize],
}

impl<'a> Node<'a> {
    /// An error about this value.
    pub fn error(&self, found: impl std::fmt::Display, required: impl std::fmt::Display) -> String {
        let line = self.line_starts.partition_point(|&start| start <= self.value.start());
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        format!("line {line}: {path} is {found}, must be {required}")
    }

    fn child(&self, value: &'a Value<'a>, step: &str) -> Self {
        let separator = if self.path.is_empty() || step.starts_with('[') { "" } else { "." };
        Self { value, path: format!("{}{separator}{step}", self.path), line_starts: self.line_starts }
    }

    /// The value as text without spaces.
    pub fn compact(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let child = |value: &'a Value<'a>| self.child(value, "").compact();
        match self.value {
            Value::StringLit(text) => quoted(&text.value),
            Value::Object(object) => {
                let members = object.properties.iter();
                let members =
                    members.map(|member| format!("{}:{}", quoted(member.name.as_str()), child(&member.value)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Value::Array(array) => format!("[{}]", array.elements.iter().map(child).collect::<Vec<_>>().join(",")),
            _ => self.kind(),
        }
    }

    /// The value in words, for messages.
    pub fn kind(&self) -> String {
        match self.value {
            Value::StringLit(text) => format!("\"{}\"", text.value),
            Value::NumberLit(number) => number.value.to_owned(),
            Value::BooleanLit(boolean) => boolean.value.to_string(),
            Value::NullKeyword(_) => "null".to_owned(),
            Value::Object(_) => "an object".to_owned(),
            Value::Array(_) => "an array".to_owned(),
        }
    }

    fn object(&self) -> Result<&'a Object<'a>> {
        self.value.as_object().ok_or_else(|| self.error(self.kind(), "an object"))
    }

    /// The members of an object, in the document's order.
    pub fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let properties = self.object()?.properties.iter();
        Ok(properties
            .map(|property| (property.name.as_str(), self.child(&property.value, property.name.as_str())))
            .collect())
    }

    /// A member of an object, unless absent or null.
    pub fn get(&self, name: &str) -> Result<Option<Node<'a>>> {
        let mut found = self.object()?.properties.iter().filter(|property| property.name.as_str() == name);
        let property = found.next();
        if let Some(second) = found.next() {
            let second = self.child(&second.value, name);
            return Err(second.error("given a second time", "given once"));
        }
        Ok(property
            .filter(|property| property.value.as_null_keyword().is_none())
            .map(|property| self.child(&property.value, name)))
    }

    /// A member of an object, also if it is null.
    pub fn member(&self, name: &str) -> Result<Option<Node<'a>>> {
        Ok(self.members()?.into_iter().find(|(found, _)| *found == name).map(|(_, member)| member))
    }

    /// Fails if a member differs from one of `names` only in case. DxDispatch would silently ignore it.
    pub fn check_case(&self, names: &[&str]) -> Result<()> {
        for (found, member) in self.members()? {
            if let Some(name) = names.iter().find(|name| **name != found && name.eq_ignore_ascii_case(found)) {
                return Err(member.error(format!("spelled \"{found}\""), format!("spelled \"{name}\", or left out")));
            }
        }
        Ok(())
    }

    /// A required member of an object.
    pub fn require(&self, name: &str) -> Result<Node<'a>> {
        self.get(name)?.ok_or_else(|| self.error(format!("without the member {name}"), "an object that has it"))
    }

    /// The elements of an array.
    pub fn elements(&self) -> Result<Vec<Node<'a>>> {
        let array = self.value.as_array().ok_or_else(|| self.error(self.kind(), "an array"))?;
        Ok(array.elements.iter().enumerate().map(|(n, value)| self.child(value, &format!("[{n}]"))).collect())
    }

    pub fn string(&self) -> Result<&'a str> {
        let text = self.value.as_string_lit().ok_or_else(|| self.error(self.kind(), "a string"))?;
        Ok(&text.value)
    }

    pub fn boolean(&self) -> Result<bool> {
        let boolean = self.value.as_boolean_lit().ok_or_else(|| self.error(self.kind(), "true or false"))?;
        Ok(boolean.value)
    }

    /// A number without a fraction. Accepts `2.0` and `1e3` too.
    pub fn integer(&self) -> Result<i128> {
        let failed = || self.error(self.kind(), "an integer");
        let number = self.value.as_number_lit().ok_or_else(failed)?.value;
        if let Ok(integer) = number.parse() {
            return Ok(integer);
        }
        // Floats are exact integers up to 2^53. Beyond that only the integer notation is exact.
        let float: f64 = number.parse().map_err(|_| failed())?;
        if float.fract() == 0.0 && float.abs() <= 9_007_199_254_740_992.0 {
            Ok(float as i128)
        } else {
            Err(failed())
        }
    }

    /// An integer of an unsigned type.
    pub fn unsigned<T: TryFrom<i128> + std::fmt::Display>(&self, maximum: T) -> Result<T> {
        let integer = self.integer()?;
        T::try_from(integer).map_err(|_| self.error(integer, format!("from 0 to {maximum}")))
    }

    pub fn u32(&self) -> Result<u32> {
        self.unsigned(u32::MAX)
    }

    pub fn u64(&self) -> Result<u64> {
        self.unsigned(u64::MAX)
    }

    /// A number, or one of the strings "nan", "inf" and "-inf".
    pub fn float(&self) -> Result<f64> {
        let failed = || self.error(self.kind(), "a number, \"nan\", \"inf\" or \"-inf\"");
        match self.value {
            Value::NumberLit(number) => number.value.parse().map_err(|_| failed()),
            Value::StringLit(text) => match text.value.to_ascii_lowercase().as_str() {
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
