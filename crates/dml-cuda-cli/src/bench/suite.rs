//! The cases of a bench, one a line of suite.jsonl, and `dml-cuda suite`, which writes them as models.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::LazyLock;

use dml_cuda::{OperatorDesc, TensorDataType};
use serde::Deserialize;
use serde_json::{json, Value};

use super::work::{Mode, Work};
use crate::model::{self, json, npy};
use crate::options::Tier;
use crate::out::{say, shown_path};
use crate::{output_file, schema, unfinished};

/// A line of the document. Names and order stay, so that old runs can be compared.
#[derive(Clone, Deserialize)]
pub struct Case {
    /// The name of the case, its model and its dispatchable.
    pub name: String,
    /// None if its output is compared instead of its time.
    #[serde(flatten)]
    pub work: Option<Work>,
    /// The least tier that has it. Without one it is for a cold L2 only: too large, or at odd addresses, while Direct3D
    /// binds at multiples of 16 bytes.
    tier: Option<Tier>,
    /// Bytes that the big tensors begin past a multiple of 256.
    #[serde(default)]
    pub misaligned: u64,
    #[serde(default)]
    pub lengths: Lengths,
    /// The descriptor as DxDispatch writes it. Plain fills, which are no operator of DirectML, and cases of ONNX alone
    /// have none.
    pub descriptor: Option<Value>,
    /// The node that does the same in ONNX.
    pub onnx: Option<Value>,
    /// Dispatches in an iteration.
    #[serde(skip)]
    pub dispatches: u32,
}

/// The values of the SequenceLengthsTensor.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Lengths {
    /// From 0 to the axis size.
    #[default]
    Random,
    /// Three quarters of the axis size, because one draw says nothing.
    ThreeQuarters,
    /// From both ends in turn: 0, the axis size, 1, one less than that, and so on.
    InTurn,
    /// Counted up from 0, also above the axis size. There DirectML is known to compute other bytes.
    OverLong,
}

static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let line = |line| serde_json::from_str(line).expect("a test reads every line");
    let mut cases: Vec<Case> = include_str!("suite.jsonl").lines().map(line).collect();
    cases.iter_mut().for_each(|case| {
        case.dispatches = case.work.as_ref().map_or(1, |work| dispatches(work.bytes))
    });
    cases
});

/// The dispatches of an iteration: they take 2 ms on a GPU whose memory moves 2 TB/s.
fn dispatches(bytes: u64) -> u32 {
    let microseconds = 2.0 + bytes as f64 / 2e6;
    (2000.0 / microseconds).ceil().clamp(1.0, 1000.0) as u32
}

/// A repeatable generator (splitmix64).
pub fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Identifies the cases: version and tier.
pub fn id(tier: Option<Tier>) -> String {
    let name = tier.map_or("cold".to_owned(), |tier| format!("{tier:?}").to_lowercase());
    format!("{name} {}", env!("CARGO_PKG_VERSION"))
}

/// Every case of the document.
pub fn all() -> impl Iterator<Item = &'static Case> {
    CASES.iter()
}

/// Baselines, the cases of a tier, small models whose outputs are compared, and baselines again: they tell whether the
/// machine stayed the same.
pub fn of_tier(tier: Tier) -> Vec<Case> {
    let is_alone = |case: &&Case| case.descriptor.is_none() && case.onnx.is_some();
    between_baselines(all().filter(|case| case.is_in(tier) && !is_alone(case)))
}

/// Every case that is timed, of any size and at odd addresses too, for a cold L2.
pub fn cold() -> Vec<Case> {
    let large = |case: &&Case| {
        !case.is_baseline()
            || case
                .work
                .as_ref()
                .is_some_and(|work| work.case == "512 MiB")
    };
    let is_timed =
        |case: &&Case| case.work.is_some() && (case.descriptor.is_some() || case.is_baseline());
    let mut cases = between_baselines(all().filter(is_timed).filter(large));
    // Queued one by one, a launch alone would be timed with its way to the GPU.
    cases
        .iter_mut()
        .for_each(|case| case.dispatches = case.dispatches.max(10));
    cases
}

/// The cases that ONNX can express.
pub fn of_onnx(tier: Tier) -> Vec<Case> {
    all()
        .filter(|case| case.is_in(tier) && case.onnx.is_some())
        .cloned()
        .collect()
}

fn between_baselines<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<Case> {
    let mut cases: Vec<Case> = cases.cloned().collect();
    let baselines: Vec<Case> = cases
        .iter()
        .filter(|case| case.is_baseline())
        .cloned()
        .collect();
    cases.extend(baselines);
    cases
}

/// The case of a name.
pub fn named(name: &str) -> Option<&'static Case> {
    all().find(|case| case.name == name)
}

/// Writes the models of a tier into a new folder.
pub fn write(folder: &Path, tier: Tier) -> Result<ExitCode, String> {
    let mut written = BTreeSet::new();
    let fill = || {
        for case in of_tier(tier) {
            for (name, bytes) in case.files()? {
                if written.insert(name.clone()) {
                    output_file::write(&folder.join(&name), &|file| file.write_all(&bytes))?;
                }
            }
        }
        Ok(())
    };
    unfinished::fill(folder, fill).map_err(|error| format!("{}: {error}", shown_path(folder)))?;
    let models = written
        .iter()
        .filter(|name| name.ends_with(".json"))
        .count();
    say!(
        "Suite '{}' written to '{}': {models} models",
        id(Some(tier)),
        shown_path(folder)
    )?;
    Ok(ExitCode::SUCCESS)
}

impl Case {
    fn is_in(&self, tier: Tier) -> bool {
        self.tier.is_some_and(|least| least as u64 <= tier as u64)
    }

    pub fn is_baseline(&self) -> bool {
        self.work
            .as_ref()
            .is_some_and(|work| work.mode.is_baseline())
    }

    pub fn is_in_place(&self) -> bool {
        self.work
            .as_ref()
            .is_some_and(|work| work.mode == Mode::InPlace)
    }

    /// Whether it is asked for by a part of its name in files or in reports.
    pub fn is_wanted(&self, only: &str) -> bool {
        self.name.contains(only)
            || self
                .work
                .as_ref()
                .is_some_and(|work| work.case.contains(only))
    }

    /// The descriptor's members; null without one.
    fn members(&self) -> &Value {
        self.descriptor
            .as_ref()
            .map_or(&Value::Null, |descriptor| &descriptor["desc"])
    }

    pub fn output_bytes(&self) -> u64 {
        number(&self.members()["OutputTensor"]["TotalTensorSizeInBytes"])
    }

    /// The sizes of the first dimension and of the axis, and the number of lengths, which are 0 for fills.
    fn sizes(&self) -> [u64; 3] {
        let (desc, lengths) = (self.members(), &self.members()["SequenceLengthsTensor"]);
        let (sizes, width) = (
            &desc["InputTensor"]["Sizes"],
            if lengths["DataType"] == "UINT64" {
                8
            } else {
                4
            },
        );
        let axis = &sizes[number(&desc["Axis"]) as usize];
        [
            number(&sizes[0]),
            number(axis),
            number(&lengths["TotalTensorSizeInBytes"]) / width,
        ]
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
        let (mut state, lengths) = (first << 32 | axis, axis + 1);
        let length: &mut dyn FnMut(u64) -> u64 = match self.lengths {
            Lengths::Random => &mut |_| random(&mut state) % lengths,
            Lengths::ThreeQuarters => &mut |_| axis * 3 / 4,
            Lengths::InTurn => &mut |n| {
                if n.is_multiple_of(2) {
                    n / 2 % lengths
                } else {
                    axis - n / 2 % lengths
                }
            },
            Lengths::OverLong => &mut |n| n,
        };
        (0..count).map(|n| length(n) as u32).collect()
    }

    /// Identifies what is computed, however a file has it: descriptor, values and lengths.
    pub fn model(&self) -> String {
        let what = self.descriptor.as_ref().or(self.onnx.as_ref());
        let values = memory(&self.members()["InputTensor"], self.work.is_none());
        let text = json!([what, values, self.misaligned]).to_string();
        let lengths = self.lengths();
        schema::checksum(
            text.bytes()
                .chain(bytemuck::cast_slice(&lengths).iter().copied()),
        )
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
            let lengths = self.lengths();
            bindings["SequenceLengthsTensor"] = json!("Lengths");
            resources["Lengths"] = if is_timed {
                // By all that they depend on: several models read one file.
                let file = format!(
                    "lengths.{}.npy",
                    self.sizes().map(|size| size.to_string()).join(".")
                );
                let bytes = bytemuck::cast_slice(&lengths);
                files.push((
                    file.clone(),
                    npy::write(TensorDataType::UInt32, &[lengths.len() as u64], bytes)?,
                ));
                json!({ "initialValues": { "sourcePath": file } })
            } else {
                json!({ "initialValuesDataType": tensor["DataType"], "initialValues": lengths })
            };
        }
        let dispatch = json!({ "type": "dispatch", "dispatchable": name, "bindings": bindings });
        let write =
            json!({ "type": "writeFile", "resource": "Out", "targetPath": format!("{name}.bin") });
        let commands = if is_timed {
            vec![dispatch]
        } else {
            vec![dispatch, write]
        };
        let model = json!({ "resources": resources, "dispatchables": { name: descriptor }, "commands": commands });
        let text = serde_json::to_string_pretty(&model).map_err(|error| error.to_string())?;
        files.push((format!("{name}.json"), text.into_bytes()));
        Ok(files)
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

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use dml_cuda::Device;

    use super::*;
    use crate::bench::results::Results;

    const SECTOR: u64 = 32;

    fn reversal(case: &Case) -> Option<dml_cuda::ReverseSubsequencesDesc> {
        match case.desc().expect(&case.name) {
            OperatorDesc::ReverseSubsequences(desc) => Some(desc),
            _ => None,
        }
    }

    /// Bytes of the union of the sectors that lengths in place move, from a look at every element alone.
    fn counted(case: &Case) -> u64 {
        let (desc, lengths) = (reversal(case).expect("in place"), case.lengths());
        let (sizes, axis) = (&desc.input_tensor.sizes, desc.axis as usize);
        let strides = desc
            .sequence_lengths_tensor
            .strides
            .as_deref()
            .expect("written out");
        let width = u64::from(desc.input_tensor.data_type.size_in_bits() / 8);
        let elements: u64 = sizes.iter().map(|&size| u64::from(size)).product();
        let mut is_moved =
            vec![false; ((case.misaligned + elements * width) / SECTOR + 1) as usize];
        for n in 0..elements {
            let (mut rest, mut t, mut place) = (n, 0, 0);
            for d in (0..sizes.len()).rev() {
                let at = rest % u64::from(sizes[d]);
                rest /= u64::from(sizes[d]);
                place += at * u64::from(strides[d]);
                t = if d == axis { at } else { t };
            }
            let length = u64::from(lengths[place as usize]);
            if t < length && t != length - 1 - t {
                let begin = case.misaligned + n * width;
                is_moved[(begin / SECTOR) as usize] = true;
                is_moved[((begin + width - 1) / SECTOR) as usize] = true;
            }
        }
        lengths.len() as u64 * 4
            + 2 * SECTOR * is_moved.iter().filter(|&&moved| moved).count() as u64
    }

    fn count_in_place(most: u64) -> usize {
        let cases = all().filter(|case| case.is_in_place() && case.output_bytes() <= most);
        cases
            .map(|case| {
                assert_eq!(
                    case.work.as_ref().map(|work| work.bytes),
                    Some(counted(case)),
                    "{}",
                    case.name
                )
            })
            .count()
    }

    #[test]
    fn bytes_in_place_are_those_of_the_union_of_sectors() {
        assert_eq!(count_in_place(4 << 20), 24);
    }

    #[test]
    #[ignore = "CI runs it: it takes a minute"]
    fn bytes_in_place_of_the_quick_cases_are_those_of_the_union_of_sectors() {
        assert!(count_in_place(Tier::Quick as u64) > 80);
    }

    /// Each line says of its descriptor, and of its node, what they are.
    #[test]
    fn a_case_is_what_its_line_says() {
        let cpu = Device::cpu();
        let mut names = BTreeSet::new();
        for case in all() {
            let (name, work) = (&case.name, case.work.as_ref());
            assert!(names.insert(name), "{name} is there twice");
            if case.lengths == Lengths::ThreeQuarters {
                assert_eq!(case.lengths(), [case.sizes()[1] as u32 / 4 * 3], "{name}");
            }
            if case.is_baseline() || case.descriptor.is_none() {
                continue;
            }
            let desc = case.desc().expect(name);
            cpu.create_operator(desc.clone()).expect(name);
            let output = desc.output_tensor();
            let tier = [Tier::Quick, Tier::Standard, Tier::Full]
                .into_iter()
                .find(|&tier| output.total_tensor_size_in_bytes <= tier as u64);
            assert_eq!(case.tier, tier.filter(|_| case.misaligned == 0), "{name}");
            let Some(work) = work else { continue };
            let data_type = output.data_type;
            assert_eq!(
                work.data_type,
                format!(
                    "{}{}",
                    data_type.name()[..1].to_lowercase(),
                    data_type.size_in_bits()
                )
            );
            assert!(
                name.ends_with(&format!(
                    ".{}.{}",
                    work.data_type,
                    work.mode.to_string().replace(' ', "_")
                )),
                "{name}"
            );
            let Some(reverse) = reversal(case) else {
                assert_eq!(
                    (work.mode, work.side_by_side),
                    (Mode::Fill, false),
                    "{name}"
                );
                continue;
            };
            let (sizes, lengths) = (&reverse.input_tensor.sizes, reverse.sequence_lengths_tensor);
            let innermost = sizes
                .iter()
                .rposition(|&size| size > 1)
                .expect("more than one element");
            assert_eq!(
                work.side_by_side,
                lengths.strides.expect("written out")[innermost] > 0,
                "{name}"
            );
            if work.mode == Mode::Copy {
                assert_eq!(
                    work.bytes,
                    lengths.total_tensor_size_in_bytes + 2 * case.output_bytes(),
                    "{name}"
                );
            }
            // A row of a comparison is equal work: ONNX's lengths take 8 bytes each, but count as 4.
            if let Some(node) = &case.onnx {
                let shape: Vec<u32> = serde_json::from_value(node["shape"].clone()).expect("sizes");
                assert_eq!(sizes[..shape.len()], shape, "{name}");
                assert!(sizes[shape.len()..].iter().all(|&size| size == 1), "{name}");
            }
        }
        let counts = [
            of_tier(Tier::Quick),
            of_tier(Tier::Full),
            of_onnx(Tier::Quick),
            cold(),
        ]
        .map(|cases| cases.len());
        assert_eq!(counts, [245, 343, 61, 315]);
        assert_eq!(
            [64, 1 << 20, 1 << 30, 1 << 40].map(dispatches),
            [1000, 793, 4, 1]
        );
    }

    /// Runs with a cold L2 are compared with what an older bench recorded.
    #[test]
    fn an_older_record_has_the_cases_of_a_cold_run() {
        let records = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/record"));
        if !records.is_dir() {
            return; // The published crate leaves them out.
        }
        let record = Results::read(&records.join("nvidia-h200/2026-11-22.json")).expect("a run");
        let of = |works: Vec<Work>| -> BTreeSet<(String, u64)> {
            let cases = works.into_iter().filter(|work| !work.mode.is_baseline());
            cases.map(|work| (work.name(), work.bytes)).collect()
        };
        let recorded = of(record.cases.into_iter().map(|timed| timed.work).collect());
        assert_eq!(
            of(cold().into_iter().filter_map(|case| case.work).collect()),
            recorded
        );
    }
}
