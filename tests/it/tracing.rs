//! Spans of the crate `tracing`: which operations, on what, and in which order.

use std::sync::{Arc, Mutex};

use dml_cuda::{Device, TensorDataType};
use dml_cuda_testing::{compile, lanes};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::NoSubscriber;
use tracing::{Dispatch, Event, Metadata, Subscriber};

/// Records every span with its fields.
struct Spans(Arc<Mutex<Vec<String>>>);

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "dml_cuda"
    }
    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        let mut spans = self.0.lock().expect("no panic");
        spans.push(fields.0);
        Id::from_u64(spans.len() as u64)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn create_compile_bind_and_dispatch_are_spans() {
    let spans = Arc::default();
    // With a single subscriber, the thread that reaches a span first decides whether any thread sees it.
    let _second = Dispatch::new(NoSubscriber::default());
    tracing::subscriber::with_default(Spans(Arc::clone(&spans)), || {
        let device = Device::cpu();
        let operator = compile(&device, &lanes(TensorDataType::Float32, 2, 4).into());
        let [data, lengths] = [32, 8].map(|size| device.create_buffer(size).expect("small"));
        let table = operator
            .bind(&[(&data).into(), (&lengths).into()], &data)
            .expect("right");
        table
            .dispatch(&device.create_stream().expect("there"))
            .expect("right");
    });
    let name = "operator=DML_OPERATOR_REVERSE_SUBSEQUENCES";
    assert_eq!(
        *spans.lock().expect("no panic"),
        [
            format!("create_operator {name}"),
            format!("compile_operator {name} device=CPU"),
            format!("bind {name}"),
            format!("dispatch {name} device=CPU in_place=true"),
        ]
    );
}
