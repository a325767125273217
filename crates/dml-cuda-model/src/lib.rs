//! Reads a model of DxDispatch: resources, dispatchables and commands, in the file's order.
//!
//! ```text
//! text ─ json ─> Document ─ node, members ─┬─ dispatchable ─> operators' descriptors
//!                                          ├─ command ──────> commands with their bindings
//!                                          └─ resource ─────> buffers with initial values
//! ```
//!
//! A reader stops at the first error of a value, and records in the document what is no error: members that nothing reads,
//! and what DxDispatch 0.18.1 would refuse or do differently (`strict`). Every message names the line and the path of
//! members, as `line 9: resources.A.initialValues[3]`.

pub mod command;
pub mod dispatchable;
pub mod file;
pub mod initial;
pub mod initial_values;
pub mod json;
pub mod members;
pub mod names;
pub mod node;
pub mod npy;
pub mod resource;
pub mod strict;
pub mod text;
pub mod value;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use dml_cuda::{BufferTensorDesc, OperatorDesc, TensorRole};

use command::{Bindings, Command, Dispatchable, Names};
use initial_values::Array;
use json::{Document, Result};
use node::Node;
use resource::Resource;
use text::{shown, shown_path};

/// A command with what messages need of its place in the file.
pub struct ModelCommand {
    pub command: Command,
    /// The file and the path of members, such as `model.json: line 9: commands[2]`.
    pub place: String,
    /// The JSON text of the command, as DxDispatch prints it.
    pub text: String,
}

/// A model that can run, as far as the file tells.
pub struct Model {
    /// Names and resources in the file's order, in which they are created.
    pub resources: Vec<(String, Resource)>,
    pub dispatchables: Vec<Dispatchable>,
    pub commands: Vec<ModelCommand>,
    /// The files that the model was read from: its own and those that it names.
    pub files: Vec<PathBuf>,
}

/// Reads a whole model of a path, with its files in a folder. Finds every error in the file, and in files that it
/// names, before anything runs.
pub fn read(document: &Document, path: &Path, folder: &Path) -> Result<Model> {
    let root = Node::root(document);
    root.walk(&["model"])?;
    let (resource_nodes, resource_names) = members(&root, "resources")?;
    let (dispatchable_nodes, _) = members(&root, "dispatchables")?;
    // First the dispatchables, because their type best explains why dml-cuda cannot run a model.
    let mut dispatchables = Vec::new();
    for (name, node) in &dispatchable_nodes {
        dispatchables.push(read_dispatchable(name, node, &resource_names)?);
    }
    let named = dispatchables
        .iter()
        .map(|dispatchable| (dispatchable.name.as_str(), dispatchable))
        .collect();
    let commands = root.require("commands")?.each(|node| {
        Ok(ModelCommand {
            command: command::read(node, &resource_names, &named)?,
            place: format!("{}: {}", shown_path(path), node.place()),
            text: node.compact(),
        })
    })?;
    let (used, outputs) = (
        used_resources(&dispatchables, &commands),
        outputs(&commands),
    );
    let (mut resources, mut files) = (Vec::new(), vec![path.to_owned()]);
    for (name, node) in &resource_nodes {
        // A deferred resource that no command uses needs no values.
        if resource::is_deferred(node) && !used.contains(name) {
            continue;
        }
        let resource = resource::read(node, folder, outputs.contains(name))?;
        files.extend(resource.file.clone());
        resources.push(((*name).to_owned(), resource));
    }
    let arrays = resources
        .iter()
        .filter_map(|(name, resource)| Some((name.as_str(), resource.array.as_ref()?)));
    // Only now are all tensors known that a file may be bound to.
    find_misread(document, arrays.collect(), &commands, &named);
    Ok(Model {
        resources,
        dispatchables,
        commands,
        files,
    })
}

/// Reads a dispatchable with its default bindings.
fn read_dispatchable(name: &str, node: &Node, resources: &Names) -> Result<Dispatchable> {
    let desc = dispatchable::read(node)?;
    let bindings = match node.get("bindings") {
        Some(bound) => command::bindings(&bound, resources, &desc)?,
        None => Bindings::new(),
    };
    let mode = node.get("dmlCompileType");
    let compiling = match mode.as_ref().and_then(|mode| mode.string().ok()) {
        Some("DmlCompileGraph") => "Compiling op using IDMLDevice1::CompileGraph",
        _ => "Compile Op",
    };
    Ok(Dispatchable {
        name: name.to_owned(),
        desc,
        compiling,
        bindings,
    })
}

/// The resources that a command uses, or that a dispatchable binds by default.
fn used_resources<'a>(
    dispatchables: &'a [Dispatchable],
    commands: &'a [ModelCommand],
) -> HashSet<&'a str> {
    let mut used = HashSet::new();
    for Dispatchable { bindings, .. } in dispatchables {
        used.extend(bindings.values().map(|source| source.resource.as_str()));
    }
    for ModelCommand { command, .. } in commands {
        used.extend(command.resources());
    }
    used
}

/// The resources that dispatches write.
fn outputs(commands: &[ModelCommand]) -> HashSet<&str> {
    let outputs = commands.iter().map(|each| each.command.output());
    outputs.flatten().collect()
}

/// Finds arrays of files that are bound to a tensor of another width, kind or shape, and whose bytes are therefore
/// misread. An INT32 file for a UINT32 tensor is right, and so is any flat array.
fn find_misread(
    document: &Document,
    mut arrays: Names<&Array>,
    commands: &[ModelCommand],
    named: &Names<&Dispatchable>,
) {
    for ModelCommand { command, .. } in commands {
        // Only a dispatch takes bytes for elements of a tensor.
        let Command::Dispatch {
            dispatchable,
            bindings,
        } = command
        else {
            continue;
        };
        let Dispatchable {
            desc,
            bindings: defaults,
            ..
        } = named[dispatchable.as_str()];
        let tensors = desc
            .input_tensors()
            .into_iter()
            .chain([desc.output_tensor()]);
        for (role, tensor) in TensorRole::of(desc.operator_type()).iter().zip(tensors) {
            let Some(source) = bindings.get(role.name()).or(defaults.get(role.name())) else {
                continue;
            };
            // A misread array is reported once.
            let Some((name, found)) = arrays.remove_entry(source.resource.as_str()) else {
                continue;
            };
            let [a, b] =
                [found.data_type, tensor.data_type].map(|of| (of.size_in_bits(), of.is_float()));
            let of_tensor = format!("for the {} of {}", role.name(), shown(dispatchable));
            let misread = if a != b {
                let required = tensor.data_type;
                format!("of {found}, but must be one of {required} {of_tensor}: its bytes are taken for {required}")
            } else if source.offset == 0 && is_reshaped(&found.shape, tensor) {
                let (shape, required) = (&found.shape, &tensor.sizes);
                format!("of shape {shape:?}, but must be flat or of shape {required:?} {of_tensor}: its elements are taken in their order")
            } else {
                arrays.insert(name, found);
                continue;
            };
            let misread = format!("resources.{} is a .npy file {misread}", shown(name));
            document.findings.borrow_mut().misread.push(misread);
        }
    }
}

/// Whether an array has other dimensions than a tensor, apart from those of size 1. A flat array has none to compare,
/// and strides may place elements in any way.
fn is_reshaped(shape: &[u64], tensor: &BufferTensorDesc) -> bool {
    let found: Vec<u64> = shape.iter().copied().filter(|&size| size != 1).collect();
    let required = tensor
        .sizes
        .iter()
        .map(|&size| u64::from(size))
        .filter(|&size| size != 1);
    tensor.strides.is_none() && found.len() > 1 && !required.eq(found)
}

/// Reads only the dispatchables, each with its name. An unreadable one does not affect the others. The names in the
/// other sections must be unique; their members are not read.
pub fn read_dispatchables(document: &Document) -> Result<Vec<(String, Result<OperatorDesc>)>> {
    let root = Node::root(document);
    root.walk(&["model"])?;
    if root.get("resources").is_some() {
        members(&root, "resources")?;
    }
    let (nodes, _) = members(&root, "dispatchables")?;
    Ok(nodes
        .iter()
        .map(|(name, node)| ((*name).to_owned(), dispatchable::read(node)))
        .collect())
}

/// The members of an object of the root, and their names, which must be unique.
fn members<'a>(root: &Node<'a>, name: &str) -> Result<(Vec<(&'a str, Node<'a>)>, Names<'a>)> {
    let members = root.require(name)?.members()?;
    let mut names = Names::new();
    if let Some((twice, node)) = members
        .iter()
        .find(|(name, _)| names.insert(*name, ()).is_some())
    {
        return Err(node.error(
            format!("a second \"{twice}\""),
            format!("the only one of its name in {name}"),
        ));
    }
    Ok((members, names))
}
