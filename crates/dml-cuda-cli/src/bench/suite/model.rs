//! A case as a model of DxDispatch: what it computes, and the files that a runner reads.
//!
//! ```text
//! lengths.16.256.16.npy     the lengths of several models
//! small_16x256.f32.json     { resources: { Out, In, Lengths }, dispatchables, commands: [dispatch] }
//! ```
//!
//! A model that is timed has memory of zeros. One whose output is compared has values that count up, and writes its output to
//! a file.

use dml_cuda::{OperatorDesc, TensorDataType};
use serde_json::{json, Value};

use super::{random, Case, Lengths};
use crate::model::{self, json, npy};
use crate::schema;

impl Case {
    /// The descriptor's members; null without one.
    fn members(&self) -> &Value {
        match &self.descriptor {
            Some(descriptor) => &descriptor["desc"],
            None => &Value::Null,
        }
    }

    /// The size of the output; 0 without a descriptor.
    pub fn output_bytes(&self) -> u64 {
        number(&self.members()["OutputTensor"]["TotalTensorSizeInBytes"])
    }

    /// The sizes of the first dimension and of the axis, and the number of lengths, which are 0 for fills.
    pub(super) fn sizes(&self) -> [u64; 3] {
        let (desc, lengths) = (self.members(), &self.members()["SequenceLengthsTensor"]);
        let sizes = &desc["InputTensor"]["Sizes"];
        let axis = &sizes[number(&desc["Axis"]) as usize];
        let bytes = number(&lengths["TotalTensorSizeInBytes"]);
        let width = if lengths["DataType"] == "UINT64" {
            8
        } else {
            4
        };
        [number(&sizes[0]), number(axis), bytes / width]
    }

    /// The descriptor, read as that of a model.
    pub fn desc(&self) -> Result<OperatorDesc, String> {
        let text = json!({ "dispatchables": { "case": self.descriptor } }).to_string();
        let (_, desc) = model::read_dispatchables(&json::parse(&text)?)?
            .pop()
            .ok_or("it has no descriptor")?;
        desc
    }

    /// One for each element of the SequenceLengthsTensor; none for fills. Computed anew by each call.
    pub fn lengths(&self) -> Vec<u32> {
        let [first, axis, count] = self.sizes();
        let (mut state, distinct) = (first << 32 | axis, axis + 1);
        let mut lengths = Vec::new();
        for n in 0..count {
            let length = match self.lengths {
                Lengths::Random => random(&mut state) % distinct,
                Lengths::ThreeQuarters => axis * 3 / 4,
                Lengths::InTurn if n.is_multiple_of(2) => n / 2 % distinct,
                Lengths::InTurn => axis - n / 2 % distinct,
                Lengths::OverLong => n,
            };
            lengths.push(length as u32);
        }
        lengths
    }

    /// Identifies what is computed, however a file has it: descriptor, values and lengths.
    pub fn model(&self) -> String {
        let what = self.descriptor.as_ref().or(self.onnx.as_ref());
        let values = memory(&self.members()["InputTensor"], self.work.is_none());
        let text = json!([what, values, self.misaligned]).to_string();
        let lengths = self.lengths();
        let lengths: &[u8] = bytemuck::cast_slice(&lengths);
        schema::checksum(text.bytes().chain(lengths.iter().copied()))
    }

    /// The model and the files that it reads: names and bytes. A model times its dispatchable on memory of zeros, with
    /// lengths from a file; or it counts values up and writes its output to a file of its name.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let Some(descriptor) = &self.descriptor else {
            return Ok(Vec::new());
        };
        let (name, is_timed, mut files) = (&self.name, self.work.is_some(), Vec::new());
        let desc = self.members();
        let mut resources = json!({ "Out": memory(&desc["OutputTensor"], false) });
        let mut bindings = json!({ "OutputTensor": "Out" });
        if desc["InputTensor"].is_object() {
            bindings["InputTensor"] = json!(if self.is_in_place() { "Out" } else { "In" });
            if !self.is_in_place() {
                resources["In"] = memory(&desc["InputTensor"], !is_timed);
            }
        }
        if let Some(tensor) = desc.get("SequenceLengthsTensor") {
            bindings["SequenceLengthsTensor"] = json!("Lengths");
            resources["Lengths"] = if is_timed {
                let (file, bytes) = self.lengths_file()?;
                files.push((file.clone(), bytes));
                json!({ "initialValues": { "sourcePath": file } })
            } else {
                json!({ "initialValuesDataType": tensor["DataType"], "initialValues": self.lengths() })
            };
        }
        let mut commands =
            vec![json!({ "type": "dispatch", "dispatchable": name, "bindings": bindings })];
        if !is_timed {
            let target = format!("{name}.bin");
            commands.push(json!({ "type": "writeFile", "resource": "Out", "targetPath": target }));
        }
        let model = json!({ "resources": resources, "dispatchables": { name: descriptor }, "commands": commands });
        let text = serde_json::to_string_pretty(&model).map_err(|error| error.to_string())?;
        files.push((format!("{name}.json"), text.into_bytes()));
        Ok(files)
    }

    /// The file of lengths. Its name has all that they depend on, because several models read one file.
    fn lengths_file(&self) -> Result<(String, Vec<u8>), String> {
        let [first, axis, count] = self.sizes();
        let lengths = self.lengths();
        let shape = [lengths.len() as u64];
        let bytes = bytemuck::cast_slice(&lengths);
        let bytes = npy::write(TensorDataType::UInt32, &shape, bytes)?;
        Ok((format!("lengths.{first}.{axis}.{count}.npy"), bytes))
    }
}

/// A resource of a tensor, whose values count up, or of which the first one is given.
fn memory(tensor: &Value, is_counted: bool) -> Value {
    let data_type = &tensor["DataType"];
    if is_counted {
        let count: u64 = tensor["Sizes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(number)
            .product();
        let values = json!({ "valueCount": count, "valueStart": 0, "valueDelta": 1 });
        return json!({ "initialValuesDataType": data_type, "initialValues": values });
    }
    json!({ "initialValuesDataType": data_type, "initialValues": [0], "sizeInBytes": tensor["TotalTensorSizeInBytes"] })
}

/// A number of the descriptor; 0 if it is absent.
fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}
