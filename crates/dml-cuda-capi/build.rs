//! Linker arguments of the library on Linux: the name by which linked programs find it, and that it is never unloaded. ONNX Runtime
//! unloads it with the last session, while kernels of the GPU, operators that other sessions know, and their tables live on.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdml_cuda.so");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
