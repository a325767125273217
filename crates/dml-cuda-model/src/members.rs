//! The members of a model's objects: the JSON Schema of a model, by which readers walk it, and which `dml-cuda schema`
//! prints for editors.
//!
//! ```text
//! schema.json: "$defs": { "command": { "properties": { "type", … }, "required": ["type"] } }
//! reader:      node.walk(&["command"])?   every member is known, none is given twice, none is missing
//!              node.require("type")?      then its value is read
//! ```
//!
//! So the schema that an editor sees and the members that are read cannot differ.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::json::Result;
use crate::names::nearest;
use crate::node::Node;
use crate::text::shown;

/// The schema as editors get it.
pub const SCHEMA: &str = include_str!("schema.json");

/// The definition of an object.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Object {
    /// All members that are known.
    properties: BTreeMap<String, Member>,
    /// The members that must be there.
    required: Vec<String>,
}

/// A member of an object.
#[derive(Deserialize)]
struct Member {
    /// The values that DxDispatch accepts for the member, described for a message. It refuses others, including null.
    #[serde(rename = "x-dxdispatch")]
    required: Option<String>,
}

/// A definition of the schema.
fn object(name: &str) -> &'static Object {
    #[derive(Deserialize)]
    struct Schema {
        #[serde(rename = "$defs")]
        definitions: HashMap<String, Object>,
    }
    // Parsed once, because every object of a model is walked by it.
    static PARSED: LazyLock<Schema> =
        LazyLock::new(|| serde_json::from_str(SCHEMA).expect("schema.json is a schema"));
    &PARSED.definitions[name]
}

impl Member {
    /// Records what DxDispatch refuses in a value, even in one that nothing reads here.
    fn check(&self, name: &str, value: &Node) {
        let Some(required) = &self.required else {
            return;
        };
        if name == "executionFlags" && value.is_array() {
            let _ = value.each(|flag| {
                self.check(name, flag);
                Ok(())
            });
            return;
        }
        let text = value.string().unwrap_or_default();
        let fits = match name {
            // The requirement lists the flags.
            "executionFlags" => {
                let flag = text.strip_prefix("DML_EXECUTION_FLAG_").unwrap_or(text);
                required
                    .replace(" or ", ", ")
                    .split(", ")
                    .any(|known| known == flag)
            }
            "dmlCompileType" => text == "DmlCompileOp",
            "format" => is_dxgi_format(text),
            "counterOffsetBytes" => value.unsigned::<u64>().is_ok(),
            "threadGroupCount" => value
                .each(|count| count.unsigned::<u32>())
                .is_ok_and(|counts| counts.len() == 3),
            // Readers find what else is wrong with it.
            _ => !value.is_null(),
        };
        if !fits {
            value.refuse(value.kind(), required);
        }
    }
}

impl<'a> Node<'a> {
    /// Walks an object by its definitions in the model's schema, in the document's order. Fails if a member is given
    /// twice, or differs from a known one only in case: DxDispatch would silently ignore it; or if a required one is
    /// absent. Records members that nothing reads, and what DxDispatch refuses.
    pub fn walk(&self, definitions: &[&str]) -> Result<()> {
        let objects: Vec<&'static Object> = definitions.iter().map(|name| object(name)).collect();
        let mut seen = HashSet::new();
        for (name, member) in self.members()? {
            match objects
                .iter()
                .find_map(|object| object.properties.get(name))
            {
                Some(_) if !seen.insert(name) => {
                    return Err(member.error("given a second time", "given once"))
                }
                Some(known) => known.check(name, &member),
                // `$comment`, `$schema`: DxDispatch's models have them.
                None if name.starts_with('$') => {}
                None => member.unknown_member(name, self, &objects)?,
            }
        }
        objects
            .iter()
            .flat_map(|object| &object.required)
            .try_for_each(|name| self.require(name).map(drop))
    }

    /// Refuses a name in the wrong case. Records any other member that nothing reads, with the nearest name.
    fn unknown_member(&self, name: &str, object: &Node, objects: &[&'static Object]) -> Result<()> {
        // Names in lower case come first: DxDispatch requires `type` and also reads `Type`.
        let names = objects
            .iter()
            .flat_map(|object| object.properties.keys().rev());
        let known: Vec<&'static str> = names.map(String::as_str).collect();
        if let Some(right) = known.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            let required = format!("spelled \"{right}\", or left out");
            return Err(self.error(format!("spelled \"{}\"", shown(name)), required));
        }
        object.unread(name, self, nearest(name, &known));
        Ok(())
    }

    /// Walks this object by `outer` and its member `desc` by `inner`, and returns that member. If there is no `desc`,
    /// this object has the members of both.
    pub fn walk_desc(&self, desc: Option<Node<'a>>, outer: &str, inner: &str) -> Result<Node<'a>> {
        match desc {
            Some(desc) => {
                self.walk(&[outer])?;
                desc.walk(&[inner])?;
                Ok(desc)
            }
            None => {
                self.walk(&[outer, inner])?;
                Ok(self.clone())
            }
        }
    }
}

/// Whether a name has the form of those of uncompressed formats: channels with their bits, then a kind.
fn is_dxgi_format(name: &str) -> bool {
    let name = name.strip_prefix("DXGI_FORMAT_").unwrap_or(name);
    let Some((channels, kind)) = name.split_once('_') else {
        return name == "UNKNOWN";
    };
    let channels_fit = channels
        .split_inclusive(|c: char| c.is_ascii_digit())
        .all(|part| {
            let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
            letters.len() <= 1 && letters.bytes().all(|letter| b"RGBADXE".contains(&letter))
        });
    channels_fit
        && matches!(
            kind,
            "TYPELESS" | "FLOAT" | "UNORM" | "UNORM_SRGB" | "UINT" | "SNORM" | "SINT"
        )
}
