//! Spans for the crate `tracing` (feature `tracing`), and ranges for NVIDIA's profilers (feature `nvtx`). Without these
//! features they compile to nothing.

/// Opens a span that ends with the scope: its name, and fields, which are formatted with `Display`.
macro_rules! span {
    ($name:literal $(, $field:ident = $value:expr)*) => {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(target: "dml_cuda", $name $(, $field = %$value)*).entered();
        #[cfg(feature = "nvtx")]
        let _range = crate::trace::range([$name.to_owned() $(, format!("{}={}", stringify!($field), $value))*].join(" "));
    };
}
pub(crate) use span;

/// A range of the calling thread in the domain `dml_cuda`, which ends when it is dropped.
#[cfg(feature = "nvtx")]
pub(crate) fn range(message: String) -> nvtx::domain::LocalRange<'static> {
    use std::ffi::CString;
    use std::sync::LazyLock;

    static DOMAIN: LazyLock<nvtx::Domain> = LazyLock::new(|| nvtx::Domain::new(c"dml_cuda"));
    DOMAIN.local_range(CString::new(message).unwrap_or_default())
}
