//! `include/dml_cuda.h` is what cbindgen makes of the sources.
//! `UPDATE_HEADER=1 cargo test -p dml-cuda-capi --test header` writes it.

/// Turns `//` comments into C89's: cbindgen writes `//` after `#endif` in every style.
fn with_old_comments(header: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut rest = header.lines().peekable();
    while let Some(line) = rest.next() {
        let Some((code, words)) = line.split_once("//") else {
            lines.push(line.to_owned());
            continue;
        };
        lines.push(format!("{code}/*{words}"));
        // The next lines of the same comment.
        while let Some((_, words)) = rest
            .next_if(|next| next.starts_with(&format!("{code}//")))
            .and_then(|next| next.split_once("//"))
        {
            lines.push(format!("{code}  {words}").trim_end().to_owned());
        }
        lines.last_mut().expect("a line was pushed").push_str(" */");
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_header_is_made_from_the_sources() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut config = cbindgen::Config::from_file(root.join("cbindgen.toml"))
        .expect("the configuration is right");
    // Descriptors too, which functions take as pointers to anything.
    let types =
        std::fs::read_to_string(root.join("src/types.rs")).expect("the sources are readable");
    let structures = types
        .lines()
        .filter_map(|line| line.strip_prefix("pub struct ")?.strip_suffix(" {"));
    config.export.include = structures.map(str::to_owned).collect();
    let sources = [
        "types", "library", "device", "operator", "arrays", "torch", "status", "error",
    ]
    .map(|name| root.join(format!("src/{name}.rs")));
    let builder = sources.iter().fold(
        cbindgen::Builder::new().with_config(config),
        |builder, path| builder.with_src(path),
    );
    let mut made = Vec::new();
    builder
        .generate()
        .expect("the sources are readable")
        .write(&mut made);
    let made = with_old_comments(&String::from_utf8(made).expect("text"));
    let path = root.join("include/dml_cuda.h");
    if std::env::var_os("UPDATE_HEADER").is_some() {
        std::fs::write(&path, &made).expect("written");
    }
    let found = std::fs::read_to_string(&path).expect("the header is there");
    assert!(
        found == made,
        "include/dml_cuda.h is stale: run this test with UPDATE_HEADER=1 and commit the result"
    );
}

/// A stream of another context is the caller's error, which no call can find.
#[test]
fn the_header_says_which_streams_functions_take() {
    let header =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/include/dml_cuda.h"))
            .expect("a header");
    let comment = header.split("/* Runs a compiled operator.").nth(1);
    let comment = comment.expect("dml_cuda_dispatch").split("*/").next();
    assert!(comment.is_some_and(|comment| comment.contains("the GPU's primary context")));
    let function = "dml_cuda_wait_for_stream(";
    let (before, _) = header.split_once(function).expect("the function");
    let comment = before.rsplit("/*").next().expect("its comment");
    assert!(comment.contains("the GPU's primary context"), "{comment}");
}

/// The header's first comment says which functions these are.
#[test]
fn only_what_reads_an_error_has_no_argument_for_one() {
    let header =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/include/dml_cuda.h"))
            .expect("a header");
    let functions = || {
        header
            .split(";\n")
            .filter_map(|part| part.rsplit_once("\nDML_CUDA_STATUS dml_cuda_"))
    };
    let without = functions().filter(|(_, function)| !function.contains("DML_CUDA_ERROR **"));
    let names: Vec<&str> = without
        .filter_map(|(_, function)| function.split('(').next())
        .collect();
    assert_eq!(
        names,
        [
            "error_status",
            "error_violation",
            "error_message_with_names"
        ]
    );
    assert!(functions().count() > 20, "{}", functions().count());
}

/// ort asks for the API of a version of ONNX Runtime, and older ones do not have it.
#[test]
fn the_page_names_the_version_that_the_example_with_ort_needs() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let read =
        |path: &str| std::fs::read_to_string(root.join(path)).expect("a file of the repository");
    let manifest = read("examples/ort/Cargo.toml");
    let (_, api) = manifest.split_once("\"api-").expect("a feature of ort");
    let required = format!("1.{} or newer", api.split('"').next().unwrap_or_default());
    let page = read("../../docs/onnxruntime.md");
    let (_, example) = page
        .split_once("examples/ort")
        .expect("the page has the example");
    assert!(
        example
            .split("```")
            .next()
            .unwrap_or_default()
            .contains(&required),
        "{required}"
    );
}
