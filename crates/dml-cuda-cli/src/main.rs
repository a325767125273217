//! `dml-cuda`: runs DxDispatch's JSON models that use FILL_VALUE_SEQUENCE and REVERSE_SUBSEQUENCES.

fn main() -> std::process::ExitCode {
    dml_cuda_cli::main()
}
