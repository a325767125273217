//! Makes empty stubs of libtorch_cpu.so and libdml_cuda.so, and links the library with them: it must name both as
//! needed, but building it must not need PyTorch. The real ones are found when it is loaded, libdml_cuda.so first in
//! the library's own folder.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let out = env::var("OUT_DIR").expect("cargo sets it");
    stand_in(&out, "torch_cpu", "libtorch_cpu.so", "");
    let functions = ["register_torch", "error_message", "destroy_error"];
    let functions =
        functions.map(|name| format!("#[no_mangle] extern \"C\" fn dml_cuda_{name}() {{}}\n"));
    // The C library's name, by its build.rs.
    let compatible = match env!("CARGO_PKG_VERSION_MAJOR") {
        "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
        major => major,
    };
    stand_in(
        &out,
        "dml_cuda",
        &format!("libdml_cuda.so.{compatible}"),
        &functions.concat(),
    );
    for argument in [
        "-Wl,-soname,libdml_cuda_torch.so,-rpath,$ORIGIN",
        &format!("-L{out}"),
        "-Wl,--no-as-needed",
        "-ltorch_cpu",
        "-ldml_cuda",
        "-Wl,--as-needed",
    ] {
        println!("cargo:rustc-cdylib-link-arg={argument}");
    }
}

/// Makes a library with rustc, which knows the linker of the target.
fn stand_in(out: &str, name: &str, soname: &str, functions: &str) {
    let source = Path::new(out).join(format!("{name}.rs"));
    let panics = "#[panic_handler] fn panic(_: &core::panic::PanicInfo) -> ! { loop {} }\n";
    fs::write(&source, format!("#![no_std]\n{panics}{functions}")).expect("OUT_DIR is writable");
    let variable = |name| env::var(name).expect("cargo sets it");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args([
        "--crate-type=cdylib",
        "--edition=2021",
        "-Cpanic=abort",
        "--target",
        &variable("TARGET"),
    ]);
    rustc
        .args([
            &format!("-Clink-arg=-Wl,-soname,{soname}"),
            "--out-dir",
            out,
        ])
        .arg(&source);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    assert!(
        rustc.status().is_ok_and(|status| status.success()),
        "{rustc:?} failed"
    );
}
