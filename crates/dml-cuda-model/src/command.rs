//! Commands: dispatch, print, writeFile.
//!
//! ```text
//! { "type": "dispatch", "dispatchable": "reverse", "bindings": { "InputTensor": "A", "OutputTensor": "B", … } }
//! { "type": "print", "resource": "B" }
//! { "type": "writeFile", "resource": "B", "targetPath": "b.npy" }
//! ```
//!
//! All names are checked here, so that a model with a misspelt name fails before its first command runs. A bind point may be
//! bound by the dispatchable, by the command, or by both: then the command's binding counts.

use std::collections::{HashMap, HashSet};

use dml_cuda::{OperatorDesc, TensorDataType, TensorRole};

use crate::file::is_image;
use crate::json::{Kind, Result};
use crate::names::or_nearest;
use crate::node::Node;

/// What a model does, in the order of its file.
pub enum Command {
    /// Runs a dispatchable on resources.
    Dispatch {
        dispatchable: String,
        bindings: Bindings,
    },
    /// Prints the elements of a resource.
    Print { resource: String, verbose: bool },
    /// Writes a resource into a file.
    WriteFile {
        resource: String,
        target_path: String,
        dimensions: Vec<u32>,
    },
}

/// The resource at each bind point, such as `OutputTensor`.
pub type Bindings = HashMap<String, Source>;

/// An operator's descriptor with what the model says about it.
pub struct Dispatchable {
    pub name: String,
    pub desc: OperatorDesc,
    /// The line that DxDispatch prints when it compiles the dispatchable in one of two ways. dml-cuda has one way.
    pub compiling: &'static str,
    /// Default bindings. A dispatch can override them.
    pub bindings: Bindings,
}

impl Command {
    /// The resource that a dispatch writes, if the command binds it.
    pub fn output(&self) -> Option<&str> {
        match self {
            Self::Dispatch { bindings, .. } => bindings
                .get("OutputTensor")
                .map(|source| source.resource.as_str()),
            _ => None,
        }
    }

    /// The resources that the command uses.
    pub fn resources(&self) -> HashSet<&str> {
        match self {
            Self::Dispatch { bindings, .. } => bindings
                .values()
                .map(|source| source.resource.as_str())
                .collect(),
            Self::Print { resource, .. } | Self::WriteFile { resource, .. } => {
                HashSet::from([resource.as_str()])
            }
        }
    }
}

/// A range of a resource, from an offset to the resource's end. `elementCount` must be a number, but is ignored, as in
/// DxDispatch.
pub struct Source {
    pub resource: String,
    /// In elements.
    pub offset: u64,
    /// Bytes of an element. By default those of the resource's data type.
    pub element_size: Option<u64>,
}

impl Source {
    /// The byte of the resource at which the range begins.
    pub fn offset_in_bytes(&self, data_type: Option<TensorDataType>) -> Option<u64> {
        let of_type = data_type.map(|data_type| u64::from(data_type.size_in_bits() / 8));
        self.offset
            .checked_mul(self.element_size.or(of_type).unwrap_or(1))
    }
}

/// Names that a model gives, with what they name.
pub type Names<'a, T = ()> = HashMap<&'a str, T>;

/// One of these names, and what it names.
fn known<'a, T>(name: &Node, names: &'a Names<T>, what: &str) -> Result<(String, &'a T)> {
    let text = name.string()?;
    names
        .get(text)
        .map(|named| (text.to_owned(), named))
        .ok_or_else(|| {
            // Sorted, so that the message is the same every time.
            let mut names: Vec<&str> = names.keys().copied().collect();
            names.sort_unstable();
            name.unknown(format!("the name of a {what} of this model"), &names)
        })
}

/// Reads a command.
pub fn read(
    node: &Node,
    resources: &Names,
    dispatchables: &Names<&Dispatchable>,
) -> Result<Command> {
    node.walk(&["command"])?;
    let type_node = node.require("type")?;
    match type_node.string()?.to_ascii_lowercase().as_str() {
        "dispatch" => dispatch(node, resources, dispatchables),
        "print" => Ok(Command::Print {
            resource: resource(node, resources)?,
            verbose: match node.get("verbose") {
                Some(verbose) => verbose.boolean()?,
                None => false,
            },
        }),
        "writefile" => Ok(Command::WriteFile {
            resource: resource(node, resources)?,
            target_path: target_path(&node.require("targetPath")?)?,
            dimensions: node.optional_list("dimensions")?.unwrap_or_default(),
        }),
        _ => Err(type_node.unknown(
            "dispatch, print or writeFile",
            &["dispatch", "print", "writeFile"],
        )),
    }
}

/// The resource that a command prints or writes.
fn resource(node: &Node, resources: &Names) -> Result<String> {
    let (name, ()) = known(&node.require("resource")?, resources, "resource")?;
    Ok(name)
}

/// Reads a dispatch. Every bind point must be bound, by the command or by the dispatchable.
fn dispatch(
    node: &Node,
    resources: &Names,
    dispatchables: &Names<&Dispatchable>,
) -> Result<Command> {
    let name = node.require("dispatchable")?;
    let (dispatchable, named) = known(&name, dispatchables, "dispatchable")?;
    let bound = node.require("bindings")?;
    // The dispatchable says which bind points there are.
    let bindings = bindings(&bound, resources, &named.desc)?;
    for point in bind_points(&named.desc) {
        if !bindings.contains_key(point) && !named.bindings.contains_key(point) {
            return Err(bound.error(format!("without {point}"), "an object that binds it"));
        }
    }
    Ok(Command::Dispatch {
        dispatchable,
        bindings,
    })
}

/// The path of a file that a command writes. Differences between systems are findings, because the model may be for
/// Windows.
fn target_path(node: &Node) -> Result<String> {
    let path = node.string()?;
    if is_image(path) {
        return Err(node.error(
            format!("{}, an image", node.kind()),
            "another file: dml-cuda writes no images",
        ));
    }
    // `\\server\share`, or a drive such as `C:\`.
    let is_of_windows = path.starts_with(r"\\")
        || matches!(path.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    if is_of_windows && !cfg!(windows) {
        return Err(node.error(
            node.kind(),
            "a path without a drive or a server: only Windows has them",
        ));
    }
    // `C:` names a drive. DxDispatch does not fail if it cannot write.
    if path.contains(['<', '>', '|', '?', '*'])
        || path.chars().skip(2).any(|character| character == ':')
    {
        node.differs(
            node.kind(),
            "a name that Windows takes, without <, >, |, ?, * and :",
        );
    }
    Ok(path.to_owned())
}

/// `{ "InputTensor": "A", "OutputTensor": { "name": "B", "elementOffset": 4 } }`
pub fn bindings(node: &Node, resources: &Names, desc: &OperatorDesc) -> Result<Bindings> {
    let points: Vec<&str> = bind_points(desc).collect();
    let mut bindings = Bindings::new();
    for (point, source) in node.members()? {
        if !points.contains(&point) {
            let required = format!("one of {}", points.join(", "));
            return Err(source.error("no bind point", required) + &or_nearest(point, &points));
        }
        if bindings
            .insert(point.to_owned(), binding(&source, resources)?)
            .is_some()
        {
            return Err(source.error("given a second time", "given once"));
        }
    }
    Ok(bindings)
}

/// The names of what an operator is bound to.
fn bind_points(desc: &OperatorDesc) -> impl Iterator<Item = &'static str> {
    TensorRole::of(desc.operator_type())
        .iter()
        .map(|role| role.name())
}

/// The resource at a bind point: its name, an object with an offset, or a list of one of both.
fn binding(node: &Node, resources: &Names) -> Result<Source> {
    if node.is_array() {
        // DxDispatch accepts a list at every bind point. The bind points of these operators take one resource.
        let mut sources = node.each(|source| {
            if source.is_array() {
                source.refuse(
                    source.kind(),
                    "a name or an object, because DxDispatch reads no list in a list",
                );
            }
            Ok(binding(source, resources))
        })?;
        return match sources.len() {
            1 => sources.remove(0),
            many => Err(node.error(format!("a list of {many}"), "one resource")),
        };
    }
    if !matches!(node.kind(), Kind::Object(_)) {
        return Ok(Source {
            resource: known(node, resources, "resource")?.0,
            offset: 0,
            element_size: None,
        });
    }
    node.walk(&["binding"])?;
    let (resource, ()) = known(&node.require("name")?, resources, "resource")?;
    if let Some(counter) = node
        .get("counter")
        .filter(|counter| known(counter, resources, "resource").is_err())
    {
        counter.refuse(counter.kind(), "the name of a resource");
    }
    // Read only for its error.
    node.optional::<u64>("elementCount")?;
    let offset = node.optional("elementOffset")?.unwrap_or(0);
    let element_size = node
        .optional("elementSizeInBytes")?
        .filter(|&size| size > 0);
    Ok(Source {
        resource,
        offset,
        element_size,
    })
}
