//! Linker arguments for Linux: the name by which programs find the library, and `nodelete`. ONNX Runtime would unload the library
//! with the last session, but loaded kernels and registered operators must stay until the process ends.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdml_cuda.so");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
