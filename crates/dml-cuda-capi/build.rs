//! Linker arguments for Linux: the name by which programs find the library, and `nodelete`. ONNX Runtime would unload
//! the library with the last session, but loaded kernels and registered operators must stay until the process ends.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // What programs must be linked again for. scripts/install.sh makes a link of this name.
        let compatible = match env!("CARGO_PKG_VERSION_MAJOR") {
            "0" => concat!("0.", env!("CARGO_PKG_VERSION_MINOR")),
            major => major,
        };
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libdml_cuda.so.{compatible}");
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
