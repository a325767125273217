//! Typed access to a JSON document in which every error names the place: `resources.A.initialValues[3]`.
//!
//! A node is a value with its path from the root and with the document, so that a reader deep inside of a model can make a
//! message of its own, or record a finding, without help of its callers:
//!
//! ```text
//! node.error(found, required)     stops: "line 9: commands[2].type is …, but must be …"
//! node.refuse(found, required)    goes on: DxDispatch would stop here, which --strict makes an error
//! node.differs(found, required)   goes on: DxDispatch would do something else, which --strict makes a warning
//! node.unread(name, …)            goes on: nothing reads this member, which is a warning
//! ```

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use crate::json::{Document, Kind, Result, Unread, Value};
use crate::names::or_nearest;
use crate::text::shown;

/// A value, and its place in the document.
#[derive(Clone)]
pub struct Node<'a> {
    value: &'a Value<'a>,
    path: Path<'a>,
    document: &'a Document<'a>,
}

/// The location of a value, from the root on.
#[derive(Clone)]
enum Path<'a> {
    Root,
    /// A member of the object at a path.
    Member(Rc<Path<'a>>, &'a str),
    /// An element of the array at a path.
    Element(Rc<Path<'a>>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Root => f.write_str("the document"),
            Self::Member(parent, name) if matches!(**parent, Self::Root) => f.write_str(name),
            Self::Member(parent, name) => write!(f, "{parent}.{name}"),
            Self::Element(array, index) => write!(f, "{array}[{index}]"),
        }
    }
}

impl<'a> Node<'a> {
    /// The whole document.
    pub fn root(document: &'a Document) -> Self {
        Self {
            value: &document.value,
            path: Path::Root,
            document,
        }
    }

    /// What the value is.
    pub fn kind(&self) -> &'a Kind<'a> {
        &self.value.kind
    }

    /// An error about this value.
    pub fn error(&self, found: impl fmt::Display, required: impl fmt::Display) -> String {
        format!("{} is {found}, but must be {required}", self.place())
    }

    /// The error of a name that is not in a list.
    pub fn unknown(&self, required: impl fmt::Display, names: &[&str]) -> String {
        self.error(self.kind(), required) + &or_nearest(self.string().unwrap_or_default(), names)
    }

    /// The line and the path of members, as every message about the value begins.
    pub fn place(&self) -> String {
        format!(
            "line {}: {}",
            self.value.line,
            shown(&self.path.to_string())
        )
    }

    /// Records that DxDispatch would refuse this value, or run with another.
    pub fn refuse(&self, found: impl fmt::Display, required: impl fmt::Display) {
        self.document
            .findings
            .borrow_mut()
            .refused
            .push(self.error(found, required));
    }

    /// Records that DxDispatch accepts this value but does something else.
    pub fn differs(&self, found: impl fmt::Display, required: impl fmt::Display) {
        self.document
            .findings
            .borrow_mut()
            .differing
            .push(self.error(found, required));
    }

    /// Records that nothing reads a member of this object.
    pub fn unread(&self, name: &str, member: &Node, nearest: Option<&'static str>) {
        let found = format!(
            "{} is a member \"{}\", which nothing reads",
            member.place(),
            shown(name)
        );
        let unread = Unread {
            object: self.path.to_string(),
            found,
            nearest,
        };
        self.document.findings.borrow_mut().unread.push(unread);
    }

    /// The error of a misspelt member of this object: it is meant as one of the absent members, or as the `desc` that
    /// has them.
    pub fn misspelt(&self, absent: &[&str]) -> Option<String> {
        let (object, unread) = (
            self.path.to_string(),
            &mut self.document.findings.borrow_mut().unread,
        );
        // Everything is inside of the root, whose path is no beginning of other paths.
        let is_root = matches!(self.path, Path::Root);
        // An object, and those inside it, were the last to be read.
        let inside = unread
            .iter()
            .enumerate()
            .rev()
            .take_while(|(_, of)| is_root || of.object.starts_with(&object));
        let mut own = inside
            .filter(|(_, of)| of.object == object)
            .filter_map(|(at, of)| Some((at, of.nearest?)));
        let is_desc = |name: &str| name.eq_ignore_ascii_case("desc") && self.member(name).is_none();
        let is_absent = own.clone().find(|(_, name)| absent.contains(name));
        let (at, name) = is_absent.or_else(|| own.find(|(_, name)| is_desc(name)))?;
        // The error says what a warning would.
        Some(format!(
            "{}, but must be \"{name}\", the nearest name that is missing",
            // The member is in the error now, and needs no warning.
            unread.remove(at).found
        ))
    }

    /// The value as text without spaces.
    pub fn compact(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        match self.kind() {
            Kind::Text(text) => quoted(text),
            Kind::Object(_) => {
                let members = self.members().unwrap_or_default();
                let members = members
                    .iter()
                    .map(|(name, member)| format!("{}:{}", quoted(name), member.compact()));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }
            Kind::Array => {
                let elements = self.each(|element| Ok(element.compact()));
                format!("[{}]", elements.unwrap_or_default().join(","))
            }
            other => other.to_string(),
        }
    }

    /// The text of a number.
    pub fn digits(&self) -> Option<&'a str> {
        match self.kind() {
            Kind::Number(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is a list, whose elements [`each`](Self::each) reads.
    pub fn is_array(&self) -> bool {
        matches!(self.kind(), Kind::Array)
    }

    /// Whether it is `null`, which most readers take for absent.
    pub fn is_null(&self) -> bool {
        matches!(self.kind(), Kind::Null)
    }

    /// The members of an object, in the document's order.
    pub fn members(&self) -> Result<Vec<(&'a str, Node<'a>)>> {
        let Kind::Object(members) = self.kind() else {
            return Err(self.error(self.kind(), "an object"));
        };
        // All members share the path of their object.
        let parent = Rc::new(self.path.clone());
        let member = |(name, value): &'a (Cow<'a, str>, Value<'a>)| {
            let path = Path::Member(parent.clone(), name);
            (
                &**name,
                Node {
                    value,
                    path,
                    document: self.document,
                },
            )
        };
        Ok(members.iter().map(member).collect())
    }

    /// A member of an object, even if it is null.
    fn member(&self, name: &str) -> Option<Node<'a>> {
        let Kind::Object(members) = self.kind() else {
            return None;
        };
        let (name, value) = members.iter().find(|(found, _)| found == name)?;
        Some(Node {
            value,
            path: Path::Member(Rc::new(self.path.clone()), name),
            document: self.document,
        })
    }

    /// A member of an object, unless absent or null.
    pub fn get(&self, name: &str) -> Option<Node<'a>> {
        self.member(name).filter(|member| !member.is_null())
    }

    /// A required member of an object.
    pub fn require(&self, name: &str) -> Result<Node<'a>> {
        match self.member(name) {
            Some(member) if member.is_null() => Err(member.error(member.kind(), "given")),
            Some(member) => Ok(member),
            None => {
                let absent = || {
                    self.error(
                        format!("without the member {name}"),
                        "an object that has it",
                    )
                };
                Err(self.misspelt(&[name]).unwrap_or_else(absent))
            }
        }
    }

    /// Reads each element of an array.
    pub fn each<T>(&self, mut read: impl FnMut(&Node<'_>) -> Result<T>) -> Result<Vec<T>> {
        if !self.is_array() {
            return Err(self.error(self.kind(), "an array"));
        }
        let array = Rc::new(self.path.clone());
        let mut all = Vec::new();
        self.value.elements(|value| {
            let path = Path::Element(array.clone(), all.len());
            all.push(read(&Node {
                value: &value,
                path,
                document: self.document,
            })?);
            Ok(())
        })?;
        Ok(all)
    }

    /// Reads each element of an array, or the value itself.
    pub fn each_or_itself<T>(
        &self,
        mut read: impl FnMut(&Node<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        if self.is_array() {
            self.each(read)
        } else {
            Ok(vec![read(self)?])
        }
    }

    /// The text of a string.
    pub fn string(&self) -> Result<&'a str> {
        let Kind::Text(text) = self.kind() else {
            return Err(self.error(self.kind(), "a string"));
        };
        Ok(text)
    }

    /// A value of `true` or `false`.
    pub fn boolean(&self) -> Result<bool> {
        let Kind::Boolean(value) = self.kind() else {
            return Err(self.error(self.kind(), "true or false"));
        };
        Ok(*value)
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

    /// An integer of an unsigned type of at most 64 bits.
    pub fn unsigned<T: TryFrom<i128>>(&self) -> Result<T> {
        // -0 is an integer to JSON and to this reader, but not to DxDispatch.
        let integer = self.integer()?;
        if self
            .digits()
            .is_some_and(|digits| integer == 0 && digits.starts_with('-'))
        {
            self.refuse(self.kind(), "0");
        }
        // The type is unsigned, so that its size says its range.
        let maximum = u64::MAX >> (64 - 8 * size_of::<T>());
        T::try_from(integer).map_err(|_| self.error(integer, format!("from 0 to {maximum}")))
    }

    /// A member that is such an integer, unless absent or null.
    pub fn optional<T: TryFrom<i128>>(&self, name: &str) -> Result<Option<T>> {
        self.get(name).map(|member| member.unsigned()).transpose()
    }

    /// A member that is a list of such integers, unless absent or null.
    pub fn optional_list(&self, name: &str) -> Result<Option<Vec<u32>>> {
        self.get(name)
            .map(|list| list.each(|element| element.unsigned()))
            .transpose()
    }

    /// A number, or one of the strings "nan", "inf" and "-inf".
    pub fn float(&self) -> Result<f64> {
        // Rust ignores the case of these names as well.
        let is_name = |text: &str| {
            ["nan", "inf", "-inf"]
                .iter()
                .any(|name| name.eq_ignore_ascii_case(text))
        };
        let float = match self.kind() {
            Kind::Number(text) => text.parse().ok(),
            Kind::Text(text) if is_name(text) => text.parse().ok(),
            _ => None,
        };
        float.ok_or_else(|| self.error(self.kind(), "a number, \"nan\", \"inf\" or \"-inf\""))
    }
}
