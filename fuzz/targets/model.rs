//! Any text as a model: a model or an error in words, in time and memory that go with the text.
#![no_main]

use std::path::Path;

use dml_cuda_model::{self as model, json};

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(document) = json::parse(text) else {
        return;
    };
    // The folder of the examples, so that files can be named.
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../models"));
    if let Ok(model) = model::read(&document, Path::new("model.json"), folder) {
        let _ = model::strict::check(&model, &document);
        for dispatchable in &model.dispatchables {
            let _ = dml_cuda::validate(&dispatchable.desc, dml_cuda::FeatureLevel::HIGHEST);
        }
    }
});
