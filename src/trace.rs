//! Spans for the crate `tracing`, behind the feature of that name; without it they are nothing.

/// Opens a span until the end of the scope: its name, and fields by their `Display`.
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)*) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "dml_cuda", $name $(, $field = %$value)*).entered();
    };
}
pub(crate) use span;
