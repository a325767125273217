//! The cases that ONNX can express: ReverseSequence and Range.

use dml_cuda::{BufferTensorDesc, OperatorDesc, TensorDataType as T};
use serde_json::{json, Value};

use super::cases::{self, short_name, Case, WIDTHS};
use super::job::{Job, Task};
use super::suite::{belongs, is_wanted, Wanted};
use crate::options::Tier;

/// Cases of the suite that a rank of two expresses, and others that ONNX has.
const ROWS: [&str; 3] = ["small [16, 256]", "tokens [256, 4096]", "inner [16384, 8192]"];
const OTHERS: [&str; 5] = [
    "model block [8, 512, 768]",
    "block odd [*, 512, 33]",
    "block [64, 2048, 1024]",
    "small fill of 65536 bytes",
    "fill packed 256 MiB",
];

pub fn jobs(tier: Tier, only: Wanted) -> Vec<Job> {
    let is_shared = |case: &Case| ROWS.iter().chain(&OTHERS).any(|name| *name == case.name);
    let of_suite = cases::all().into_iter().filter(|case| !case.in_place && is_shared(case));
    let cases = of_suite.chain(cases::onnx()).filter(|case| belongs(case, tier) && is_wanted(case, only));
    cases.filter_map(job).chain(checks().into_iter().filter(|job| only(&job.name))).collect()
}

/// The case as a node, unless ONNX does not have it: ranges of five types, as long as the type counts.
fn job(case: Case) -> Option<Job> {
    let node = match &case.desc {
        OperatorDesc::ReverseSubsequences(desc) => {
            let sizes = &desc.input_tensor.sizes;
            let rank = if ROWS.contains(&case.name.as_str()) { 2 } else { sizes.len() };
            reverse_sequence(&sizes[..rank], desc.axis)
        }
        desc => exact_range(desc.output_tensor())?,
    };
    let data_type = case.desc.output_tensor().data_type;
    Some(question(Job::of_case(case), data_type, node))
}

/// What the worker is asked: a model of one node, and whether its output is compared, not timed.
fn question(job: Job, data_type: T, mut node: Value) -> Job {
    node["name"] = json!(job.name);
    node["type"] = json!(data_type.name().to_ascii_lowercase());
    node["dispatches"] = json!(job.dispatches);
    node["check"] = json!(job.work.is_none());
    Job { task: Task::Onnx(node), ..job }
}

/// In the first opset that has it.
fn reverse_sequence(shape: &[u32], time_axis: u32) -> Value {
    json!({ "op": "ReverseSequence", "opset": 10, "shape": shape, "batch_axis": 1 - time_axis, "time_axis": time_axis })
}

/// Whether dimensions besides batch and time multiply to more than 1. There ONNX Runtime's DirectML provider reads the
/// wrong lengths.
pub fn has_features(node: &Value) -> bool {
    node["shape"].as_array().is_some_and(|shape| shape.iter().skip(2).any(|size| *size != 1))
}

/// A Range of start, limit and delta, in the first opset that has it.
fn range(scalars: Value, count: u32) -> Value {
    json!({ "op": "Range", "opset": 11, "scalars": scalars, "shape": [count] })
}

/// A range that the type can hold.
fn exact_range(tensor: &BufferTensorDesc) -> Option<Value> {
    let count = tensor.sizes[0];
    let integers = |start: i64, delta: i64| json!([start, start + delta * i64::from(count), delta]);
    let scalars = match tensor.data_type {
        // Its elements are rounded at most once.
        T::Float32 | T::Float64 => json!([0.0, 0.25 * f64::from(count), 0.25]),
        T::Int16 if count < 1 << 16 => integers(-0x7FFF, 1),
        T::Int32 => integers(-(1 << 30), 31),
        T::Int64 => integers(-(1 << 40), (1 << 33) + 1),
        _ => return None,
    };
    Some(range(scalars, count))
}

/// Both orders of the axes, with and without a third dimension. Ranges are exact in every type.
fn checks() -> Vec<Job> {
    let mut checks = Vec::new();
    for data_type in WIDTHS {
        for (shape, time_axis) in
            [(&[6, 9][..], 1), (&[9, 6], 0), (&[6, 9, 1], 1), (&[9, 6, 1], 0), (&[4, 7, 5], 1), (&[7, 4, 5], 0)]
        {
            let sizes: Vec<String> = shape.iter().map(u32::to_string).collect();
            let name = format!("reverse_sequence_{}.time_{time_axis}", sizes.join("x"));
            checks.push(check(&name, data_type, reverse_sequence(shape, time_axis)));
        }
    }
    for data_type in [T::Int16, T::Int32, T::Int64, T::Float32, T::Float64] {
        let scalars = if data_type.is_float() { json!([-3.75, 11.25, 0.25]) } else { json!([100, -80, -3]) };
        checks.push(check("range", data_type, range(scalars, 60)));
    }
    checks
}

fn check(name: &str, data_type: T, node: Value) -> Job {
    let name = format!("check.onnx.{name}.{}.opset_{}", short_name(data_type), node["opset"]);
    question(Job::of_output(name, Task::Onnx(Value::Null)), data_type, node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::suite;
    use crate::bench::work::Work;

    /// A row of a comparison is equal work: ONNX's lengths take 8 bytes each, but count as the suite's 4.
    #[test]
    fn onnx_models_do_the_work_of_the_suites_models() {
        let (jobs, models) = (suite::jobs(Tier::Quick, &|_| true), jobs(Tier::Quick, &|_| true));
        let mut shared = 0;
        let works = |jobs: &[Job]| -> Vec<(Work, String)> {
            jobs.iter().filter_map(|job| Some((job.work.clone()?, job.name.clone()))).collect()
        };
        for (work, name) in works(&models) {
            if let Some(of_suite) = works(&jobs).into_iter().find(|(of_suite, _)| of_suite.name() == work.name()) {
                assert_eq!(of_suite, (work, name));
                shared += 1;
            }
        }
        let outputs = models.iter().filter(|job| job.work.is_none()).count();
        assert_eq!((shared, models.len() - outputs, outputs), (17, 32, 29));
        let has_features = |job: &&Job| matches!(&job.task, Task::Onnx(node) if has_features(node));
        let is_twin = |work: &Work| work.case.starts_with("one feature");
        let twins = models.iter().filter(|job| job.work.as_ref().is_some_and(is_twin));
        assert!(twins.clone().count() == 5 && !twins.clone().any(|job| has_features(&job)));
        assert!(models.iter().filter(has_features).count() > 12);
    }
}
