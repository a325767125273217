//! The records of the real DirectML: tests/data/directml.

use std::io::Read;
use std::path::Path;

use dml_cuda::{
    BufferTensorDesc, FillValueSequenceDesc, OperatorDesc, ReverseSubsequencesDesc, ScalarUnion,
    TensorFlags,
};
use serde_json::{from_value, Value};

use super::{oracle, GUARD, POISON};

/// One line of a recorded file.
pub struct Record {
    pub id: String,
    pub desc: OperatorDesc,
    pub json: Value,
}

impl Record {
    /// A flag, false where absent.
    pub fn flag(&self, name: &str) -> bool {
        self.json[name].as_bool().unwrap_or(false)
    }

    /// The versions of DirectML that accept it.
    pub fn accepted_by(&self) -> Vec<String> {
        from_value(self.json["accepted_by"].clone()).expect("versions")
    }

    /// Bytes in hexadecimal.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.json[name].as_str().map(bytes)
    }

    /// Bytes of the input tensors' buffers.
    pub fn inputs(&self) -> Vec<Vec<u8>> {
        let OperatorDesc::ReverseSubsequences(desc) = &self.desc else {
            return Vec::new();
        };
        let total = desc.input_tensor.total_tensor_size_in_bytes as usize;
        let width = oracle::width(&desc.input_tensor);
        let counted = || {
            (0..total / width)
                .flat_map(|k| (k as u64).to_le_bytes()[..width].to_vec())
                .collect()
        };
        let mut input = self.bytes("input_bytes").unwrap_or_else(counted);
        input.resize(total.max(input.len()), 0);
        vec![input, self.bytes("length_bytes").expect("lengths")]
    }

    /// Bytes of the output buffer before the tensor.
    pub fn out_offset(&self) -> u64 {
        self.json["out_offset"].as_u64().unwrap_or(0)
    }

    /// Whether the library's contract differs from DirectML's bytes, so that the contract decides.
    pub fn departs(&self) -> bool {
        self.flag("departs_from_page") || self.flag("denormals_flushed")
    }

    /// The bytes that the contract requires in the output buffer.
    pub fn contract(&self) -> Vec<u8> {
        let inputs = self.inputs();
        let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let tensor = oracle::expected(&self.desc, &inputs, false);
        [
            vec![POISON; self.out_offset() as usize],
            tensor,
            vec![POISON; GUARD],
        ]
        .concat()
    }

    /// The bytes that are required in the output buffer.
    pub fn required(&self) -> Vec<u8> {
        if self.departs() {
            self.contract()
        } else {
            self.bytes("out_bytes").expect("output bytes")
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}

pub fn verdicts() -> Vec<Record> {
    read("verdicts")
}

pub fn outputs() -> Vec<Record> {
    read("outputs")
}

fn read(name: &str) -> Vec<Record> {
    lines(&super::repository(&format!(
        "tests/data/directml/{name}.jsonl.gz"
    )))
    .into_iter()
    .map(record)
    .collect()
}

/// The JSON of each line of a compressed file.
pub fn lines(path: &Path) -> Vec<Value> {
    let file =
        std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("gzip of text");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn record(json: Value) -> Record {
    let desc = &json["desc"];
    let desc = match json["type"].as_str().expect("a type") {
        "DML_OPERATOR_FILL_VALUE_SEQUENCE" => {
            OperatorDesc::FillValueSequence(FillValueSequenceDesc {
                output_tensor: tensor(&desc["OutputTensor"]),
                value_data_type: desc["ValueDataType"]
                    .as_str()
                    .expect("a type")
                    .parse()
                    .expect("a data type"),
                value_start: scalar(&json["start_bytes"]),
                value_delta: scalar(&json["delta_bytes"]),
            })
        }
        "DML_OPERATOR_REVERSE_SUBSEQUENCES" => {
            OperatorDesc::ReverseSubsequences(ReverseSubsequencesDesc {
                input_tensor: tensor(&desc["InputTensor"]),
                sequence_lengths_tensor: tensor(&desc["SequenceLengthsTensor"]),
                output_tensor: tensor(&desc["OutputTensor"]),
                axis: from_value(desc["Axis"].clone()).expect("a number"),
            })
        }
        other => panic!("{other} is not an operator"),
    };
    Record {
        id: json["id"].as_str().expect("an id").to_owned(),
        desc,
        json,
    }
}

fn scalar(hex: &Value) -> ScalarUnion {
    let mut union = [0; 8];
    let bytes = bytes(hex.as_str().expect("hexadecimal"));
    union[..bytes.len()].copy_from_slice(&bytes);
    ScalarUnion::Bytes(union)
}

fn tensor(json: &Value) -> BufferTensorDesc {
    BufferTensorDesc {
        data_type: json["DataType"]
            .as_str()
            .expect("a type")
            .parse()
            .expect("a data type"),
        flags: match json["Flags"].as_str().expect("flags") {
            "NONE" => TensorFlags::None,
            "OWNED_BY_DML" => TensorFlags::OwnedByDml,
            other => panic!("{other} is not a flag"),
        },
        sizes: from_value(json["Sizes"].clone()).expect("numbers"),
        strides: from_value(json["Strides"].clone()).expect("numbers, or none"),
        total_tensor_size_in_bytes: from_value(json["TotalTensorSizeInBytes"].clone())
            .expect("a number"),
        guaranteed_base_offset_alignment: from_value(json["GuaranteedBaseOffsetAlignment"].clone())
            .expect("a number"),
    }
}
