//! The members of a model's objects: the JSON Schema of a model, by which readers walk it, and which `dml-cuda schema`
//! prints.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use super::node::Node;

pub const SCHEMA: &str = include_str!("schema.json");

/// The definition of an object.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Object {
    pub properties: BTreeMap<String, Member>,
    pub required: Vec<String>,
}

#[derive(Deserialize)]
pub struct Member {
    /// What DxDispatch requires of the member if it is given, in words. It refuses others, null included.
    #[serde(rename = "x-dxdispatch")]
    required: Option<String>,
}

/// A definition of the schema.
pub fn object(name: &str) -> &'static Object {
    #[derive(Deserialize)]
    struct Schema {
        #[serde(rename = "$defs")]
        definitions: HashMap<String, Object>,
    }
    static PARSED: LazyLock<Schema> = LazyLock::new(|| serde_json::from_str(SCHEMA).expect("schema.json is a schema"));
    &PARSED.definitions[name]
}

impl Member {
    /// Records what DxDispatch refuses of a value, also of one that nothing reads here.
    pub fn check(&self, name: &str, value: &Node) {
        let Some(required) = &self.required else { return };
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
                required.replace(" or ", ", ").split(", ").any(|known| known == flag)
            }
            "dmlCompileType" => text == "DmlCompileOp",
            "format" => is_dxgi_format(text),
            "counterOffsetBytes" => value.unsigned::<u64>().is_ok(),
            "threadGroupCount" => value.each(|count| count.unsigned::<u32>()).is_ok_and(|counts| counts.len() == 3),
            // Readers find what else is wrong with it.
            _ => !value.is_null(),
        };
        if !fits {
            value.refuse(value.kind(), required);
        }
    }
}

/// Whether a name has the form of those of uncompressed formats: channels with their bits, then a kind.
fn is_dxgi_format(name: &str) -> bool {
    let name = name.strip_prefix("DXGI_FORMAT_").unwrap_or(name);
    let Some((channels, kind)) = name.split_once('_') else { return name == "UNKNOWN" };
    let channels_fit = channels.split_inclusive(|c: char| c.is_ascii_digit()).all(|part| {
        let letters = part.trim_end_matches(|c: char| c.is_ascii_digit());
        letters.len() <= 1 && letters.bytes().all(|letter| b"RGBADXE".contains(&letter))
    });
    channels_fit && matches!(kind, "TYPELESS" | "FLOAT" | "UNORM" | "UNORM_SRGB" | "UINT" | "SNORM" | "SINT")
}
