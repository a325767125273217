//! The runner as its users see it; tests/README.md lists the modules.

#[cfg(unix)]
mod driver_faults;
mod runner;
mod side_by_side;
#[cfg(unix)]
mod written_files;

/// The runner: that of this build, or `DML_CUDA_BIN` where the tests run elsewhere.
fn runner() -> std::process::Command {
    let path = std::env::var_os("DML_CUDA_BIN").unwrap_or_else(|| env!("CARGO_BIN_EXE_dml-cuda").into());
    std::process::Command::new(path)
}
