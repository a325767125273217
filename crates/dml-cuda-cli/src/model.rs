//! A model: resources, dispatchables and commands, in the file's order.

pub mod command;
pub mod dispatchable;
pub mod json;
pub mod npy;
pub mod resource;
pub mod strict;
pub mod value;

use std::collections::HashSet;
use std::path::Path;

use dml_cuda::OperatorDesc;

use command::{Bindings, Command};
use json::{Document, Node, Result};
use resource::Resource;

pub struct Dispatchable {
    pub name: String,
    pub desc: OperatorDesc,
    /// Default bindings. A dispatch can override them.
    pub bindings: Bindings,
}

pub struct Model {
    pub resources: Vec<(String, Resource)>,
    pub dispatchables: Vec<Dispatchable>,
    /// Each command with its text, as DxDispatch prints it.
    pub commands: Vec<(Command, String)>,
}

/// Reads a whole model. Finds every error in the file, and in files that it names, before anything runs.
pub fn read<'a>(document: &'a Document, model_directory: &Path) -> Result<Model> {
    let root = document.root();
    let resource_nodes = members(&root, "resources")?;
    let dispatchable_nodes = members(&root, "dispatchables")?;
    let names = |nodes: &[(&'a str, Node)]| nodes.iter().map(|(name, _)| *name).collect::<HashSet<&'a str>>();
    let (resource_names, dispatchable_names) = (names(&resource_nodes), names(&dispatchable_nodes));
    let has_resource = |name: &str| resource_names.contains(name);
    let has_dispatchable = |name: &str| dispatchable_names.contains(name);

    // First the dispatchables, because their type best explains why this runner cannot run a model.
    let dispatchables = dispatchable_nodes.iter().map(|(name, node)| {
        let bindings = node.get_or("bindings", Bindings::new(), |node| command::bindings(node, &has_resource))?;
        Ok(Dispatchable { name: (*name).to_owned(), desc: dispatchable::read(node)?, bindings })
    });
    let dispatchables = dispatchables.collect::<Result<_>>()?;
    let commands = root.require("commands")?.elements()?;
    let commands = commands.iter().map(|node| {
        let command = command::read(node, &has_resource, &has_dispatchable)?;
        Ok((command, node.compact()))
    });
    let commands = commands.collect::<Result<_>>()?;
    let resources =
        resource_nodes.iter().map(|(name, node)| Ok(((*name).to_owned(), resource::read(node, model_directory)?)));
    Ok(Model { resources: resources.collect::<Result<_>>()?, dispatchables, commands })
}

/// Reads only the dispatchables, each with its name. An unreadable one does not affect the others.
pub fn read_dispatchables(document: &Document) -> Result<Vec<(String, Result<OperatorDesc>)>> {
    let nodes = members(&document.root(), "dispatchables")?;
    Ok(nodes.iter().map(|(name, node)| ((*name).to_owned(), dispatchable::read(node))).collect())
}

/// The members of an object of the root. Their names must be unique.
fn members<'a>(root: &Node<'a>, name: &str) -> Result<Vec<(&'a str, Node<'a>)>> {
    let members = root.require(name)?.members()?;
    let mut names = HashSet::new();
    match members.iter().find(|(name, _)| !names.insert(*name)) {
        Some((twice, node)) => {
            Err(node.error(format!("a second \"{twice}\""), format!("the only one of its name in {name}")))
        }
        None => Ok(members),
    }
}
