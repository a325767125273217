//! Commands: dispatch, print, writeFile.

use std::collections::HashMap;

use super::json::{Node, Result};
use super::resource::is_image;

pub enum Command {
    Dispatch { dispatchable: String, bindings: Bindings },
    Print { resource: String, verbose: bool },
    WriteFile { resource: String, target_path: String, dimensions: Vec<u32> },
}

/// The resource at each bind point, such as `OutputTensor`.
pub type Bindings = HashMap<String, Source>;

pub fn binds(bindings: &Bindings, resource: &str) -> bool {
    bindings.values().any(|source| source.resource == resource)
}

impl Command {
    pub fn uses(&self, name: &str) -> bool {
        match self {
            Self::Dispatch { bindings, .. } => binds(bindings, name),
            Self::Print { resource, .. } | Self::WriteFile { resource, .. } => resource == name,
        }
    }
}

/// A range of a resource, from an offset to the resource's end. `elementCount` must be a number, but is ignored, as in DxDispatch.
pub struct Source {
    pub resource: String,
    /// In elements.
    pub offset: u64,
    /// Bytes of an element. By default those of the resource's data type.
    pub element_size: Option<u64>,
}

/// Reads a command.
pub fn read(node: &Node, resources: &dyn Fn(&str) -> bool, dispatchables: &dyn Fn(&str) -> bool) -> Result<Command> {
    let known = |member: &str, exists: &dyn Fn(&str) -> bool, what: &str| -> Result<String> {
        let name = node.require(member)?;
        let text = name.string()?;
        if exists(text) {
            Ok(text.to_owned())
        } else {
            Err(name.error(format!("\"{text}\""), format!("the name of a {what} of this model")))
        }
    };
    let type_node = node.require("type")?;
    match type_node.string()?.to_ascii_lowercase().as_str() {
        "dispatch" => Ok(Command::Dispatch {
            dispatchable: known("dispatchable", dispatchables, "dispatchable")?,
            bindings: bindings(&node.require("bindings")?, resources)?,
        }),
        "print" => Ok(Command::Print {
            resource: known("resource", resources, "resource")?,
            verbose: node.get_or("verbose", false, |node| node.boolean())?,
        }),
        "writefile" => Ok(Command::WriteFile {
            resource: known("resource", resources, "resource")?,
            target_path: target_path(&node.require("targetPath")?)?,
            dimensions: node
                .get_or("dimensions", Vec::new(), |node| node.elements()?.iter().map(|n| n.u32()).collect())?,
        }),
        other => Err(type_node.error(format!("\"{other}\""), "dispatch, print or writeFile")),
    }
}

fn target_path(node: &Node) -> Result<String> {
    match node.string()? {
        path if is_image(path) => {
            Err(node.error(format!("\"{path}\", an image"), "another file: this runner writes no images"))
        }
        path => Ok(path.to_owned()),
    }
}

/// `{ "InputTensor": "A", "OutputTensor": { "name": "B", "elementOffset": 4 } }`
pub fn bindings(node: &Node, resources: &dyn Fn(&str) -> bool) -> Result<Bindings> {
    let member = |(point, source): (&str, Node)| Ok((point.to_owned(), binding(&source, resources)?));
    node.members()?.into_iter().map(member).collect()
}

fn binding(node: &Node, resources: &dyn Fn(&str) -> bool) -> Result<Source> {
    if node.value.as_array().is_some() {
        // DxDispatch accepts a list at every bind point. The bind points of these operators take one resource.
        return match node.elements()?.as_slice() {
            [one] => binding(one, resources),
            many => Err(node.error(format!("a list of {}", many.len()), "one resource")),
        };
    }
    let name = if node.value.as_object().is_some() { node.require("name")? } else { node.clone() };
    let resource = name.string()?;
    if !resources(resource) {
        return Err(name.error(format!("\"{resource}\""), "the name of a resource of this model"));
    }
    let mut source = Source { resource: resource.to_owned(), offset: 0, element_size: None };
    if node.value.as_object().is_some() {
        source.offset = node.get_or("elementOffset", 0, |node| node.u64())?;
        let optional = |name: &str| node.get(name)?.map(|node| node.u64()).transpose();
        optional("elementCount")?;
        source.element_size = optional("elementSizeInBytes")?.filter(|&size| size > 0);
    }
    Ok(source)
}
