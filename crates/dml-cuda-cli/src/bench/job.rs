//! One case for a runner: its name, its work, and the files that it needs.

use dml_cuda::{OperatorDesc, TensorDataType};
use serde_json::Value;

use super::cases::Case;
use super::models;
use super::work::{Mode, Work};
use crate::model::npy;

/// Its model and its dispatchable have its name.
pub struct Job {
    pub name: String,
    /// None if its output is compared instead of its time.
    pub work: Option<Work>,
    /// Dispatches in an iteration.
    pub dispatches: u32,
    pub task: Task,
}

pub enum Task {
    /// Time a case.
    Time(Box<Case>),
    /// Time a plain copy of so many bytes.
    Copy(u64),
    /// Time a plain fill of so many bytes.
    Fill(u64),
    /// Write the output of a small operator. DirectML is known to compute other bytes for over-long lengths.
    Output { desc: OperatorDesc, over_long: bool },
    /// A model of one node, as a question to the worker.
    Onnx(Value),
}

impl Job {
    pub fn of_case(case: Case) -> Self {
        let bytes = case.floor_bytes(&if case.in_place { case.lengths() } else { Vec::new() });
        let (data_type, mode, side_by_side) = (case.data_type(), case.mode(), case.is_side_by_side());
        let work = Some(Work { case: case.name.clone(), data_type, mode, bytes, side_by_side });
        Self { name: case.file_name(), work, dispatches: dispatches(bytes), task: Task::Time(Box::new(case)) }
    }

    /// A copy and a fill of memory of that size.
    pub fn baselines(size: u64) -> [Self; 2] {
        let [copy, fill] = [Task::Copy(size), Task::Fill(size)];
        [(Mode::BaselineOfCopies, 2 * size, copy), (Mode::BaselineOfFills, size, fill)].map(|(mode, bytes, task)| {
            let (case, data_type) = (format!("{} MiB", size >> 20), "u32".to_owned());
            let name = format!("{}.{}mib", mode.to_string().replace(' ', "_"), size >> 20);
            let work = Some(Work { case, data_type, mode, bytes, side_by_side: false });
            Self { name, work, dispatches: dispatches(bytes), task }
        })
    }

    /// A small model whose output is compared.
    pub fn of_output(name: String, task: Task) -> Self {
        Self { name, work: None, dispatches: 1, task }
    }

    /// The model and the files that it reads: names and bytes.
    pub fn files(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let mut files = Vec::new();
        let model = match &self.task {
            Task::Time(case) => {
                if let OperatorDesc::ReverseSubsequences(desc) = &case.desc {
                    let (lengths, sizes) = (case.lengths(), &desc.input_tensor.sizes);
                    let bytes = bytemuck::cast_slice(&lengths);
                    // By all that they depend on: several models read one file.
                    let name = format!("lengths.{}.{}.{}.npy", sizes[0], sizes[desc.axis as usize], lengths.len());
                    files.push((name, npy::write(TensorDataType::UInt32, &[lengths.len() as u64], bytes)?));
                }
                let lengths = files.first().map(|(name, _)| name.as_str());
                models::timed(&self.name, &case.desc, case.in_place, lengths)
            }
            Task::Copy(bytes) => models::copy(&self.name, *bytes),
            Task::Output { desc, over_long } => models::check(&self.name, desc, *over_long),
            _ => return Ok(files),
        };
        let text = serde_json::to_string_pretty(&model).map_err(|error| error.to_string())?;
        files.push((format!("{}.json", self.name), text.into_bytes()));
        Ok(files)
    }
}

/// The dispatches of an iteration: they take 2 ms on a GPU whose memory moves 2 TB/s.
fn dispatches(bytes: u64) -> u32 {
    let microseconds = 2.0 + bytes as f64 / 2e6;
    (2000.0 / microseconds).ceil().clamp(1.0, 1000.0) as u32
}
