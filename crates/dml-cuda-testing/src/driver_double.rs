//! A mock of the CUDA driver (`tests/driver_double`), built by the machine's C compiler. It has one GPU, whose
//! memory is the host's and whose kernels do nothing. Here are also the checks that every failure of it must pass.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use super::{in_threads, repository};

/// The driver functions that `tests/driver_double/driver.c` defines: all that the crate calls.
pub fn functions() -> Vec<String> {
    let source =
        std::fs::read_to_string(repository("tests/driver_double/driver.c")).expect("the double");
    let names = source
        .lines()
        .filter_map(|line| line.strip_prefix("int cu")?.split('(').next());
    names.map(|name| format!("cu{name}")).collect()
}

/// The mock driver as a library, compiled once. `None` if there is no C compiler.
fn compiled() -> Option<&'static [u8]> {
    static LIBRARY: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    let compile = || {
        let folder = tempfile::tempdir().expect("a folder");
        let library = folder.path().join("libcuda.so.1");
        let built = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()))
            .args([
                "-w",
                "-O1",
                "-shared",
                "-fPIC",
                "-lpthread",
                "-Wl,-soname,libcuda.so.1",
                "-o",
            ])
            .arg(&library)
            .arg(repository("tests/driver_double/driver.c"))
            .status();
        built
            .is_ok_and(|status| status.success())
            .then(|| std::fs::read(library).expect("it was built"))
    };
    LIBRARY.get_or_init(compile).as_deref()
}

/// A folder with the mock driver, in which one function may be missing: its name is changed in this copy. `None` if
/// there is no C compiler.
pub fn driver(without: Option<&str>) -> Option<tempfile::TempDir> {
    let Some(library) = compiled() else {
        eprintln!("SKIPPED: there is no C compiler to build a driver with");
        return None;
    };
    let mut library = library.to_vec();
    if let Some(name) = without {
        let name = format!("\0{name}\0").into_bytes();
        let places: Vec<usize> = (0..library.len())
            .filter(|&at| library[at..].starts_with(&name))
            .collect();
        assert!(!places.is_empty(), "the library names its functions");
        places.into_iter().for_each(|at| library[at + 1] = b'x');
    }
    let folder = tempfile::tempdir().expect("a folder");
    // The loader looks for both names.
    for name in ["libcuda.so.1", "libcuda.so"] {
        std::fs::write(folder.path().join(name), &library).expect("a folder of our own");
    }
    Some(folder)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command with a driver that fails at the n-th call of a function. Returns the command's output and the
/// double's report.
pub fn with_failure(
    folder: &Path,
    function: &str,
    nth: u32,
    code: u32,
    mut command: Command,
) -> (Output, Vec<String>) {
    let report = folder.join("report");
    let _ = std::fs::remove_file(&report);
    let output = command
        .env("LD_LIBRARY_PATH", folder)
        .env("DOUBLE_FAIL", format!("{function} {nth} {code}"))
        .env("DOUBLE_REPORT", &report)
        .stdin(Stdio::null())
        .output()
        .expect("it starts");
    let report = std::fs::read_to_string(report).unwrap_or_default();
    (output, report.lines().map(str::to_owned).collect())
}

/// Functions that release something, or that a release needs. If one of them fails, something leaks, which is not the
/// library's fault.
const RELEASING: [&str; 11] = [
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuDevicePrimaryCtxRelease_v2",
    "cuEventDestroy_v2",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuMemFree_v2",
    "cuModuleUnload",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuThreadExchangeStreamCaptureMode",
];

/// Makes every driver function fail at every call of a command; from the fiftieth on, which loops make, at every
/// seventeenth. Each time the command must either continue or end with a readable error, and nothing may leak. `words`
/// returns the error text if the command ended with one. Returns how many calls failed, and how many of them ended the
/// command.
pub fn fail_every_call(
    command: impl Fn() -> Command + Sync,
    words: impl Fn(&Output) -> Option<String> + Sync,
) -> Option<(u32, u32)> {
    driver(None)?;
    let functions = functions();
    let failed = in_threads(functions.len(), |n| {
        fail_each_call(&functions[n], &command, &words)
    });
    let (cases, errors) = failed
        .iter()
        .fold((0, 0), |(cases, errors), (_, c, e)| (cases + c, errors + e));
    let matrix: String = failed.into_iter().map(|(line, ..)| line).collect();
    eprintln!("{matrix}{cases} failing calls, {errors} errors in words");
    Some((cases, errors))
}

/// Makes a function fail as [`fail_every_call`] says. Returns what to print, and the counts.
fn fail_each_call(
    function: &str,
    command: impl Fn() -> Command,
    words: impl Fn(&Output) -> Option<String>,
) -> (String, u32, u32) {
    let folder = driver(None).expect("it was compiled before");
    let (mut line, mut outcomes) = (String::new(), std::collections::BTreeSet::new());
    let (mut cases, mut errors) = (0, 0);
    for nth in (1..50).chain((50..).step_by(17)) {
        let (output, report) = with_failure(folder.path(), function, nth, 719, command());
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        let said = format!("{function} {nth}: {out}{err}{report:?}");
        let (told, seen): (Vec<_>, Vec<_>) = report
            .iter()
            .partition(|line| line.ends_with("failed as told"));
        let words = words(&output);
        if told.is_empty() {
            // The function is not called that often, so nothing failed.
            assert!(words.is_none() && seen.is_empty(), "{said}");
            line += &format!(" fewer than {nth} calls");
            break;
        }
        assert!(
            !err.contains("panicked") && output.status.code().is_some(),
            "{said}"
        );
        let lost = seen
            .iter()
            .filter(|line| line.starts_with("end: not given back"))
            .count();
        assert_eq!(lost, seen.len(), "{said}");
        assert!(lost == 0 || RELEASING.contains(&function), "{said}");
        outcomes.insert(if words.is_none() { "goes on" } else { "error" });
        if let Some(words) = words {
            let why = function != "cuGetErrorString" && words.contains("(CUDA error 719)");
            assert!(why && words.contains("cuda: "), "{said}");
            errors += 1;
        }
        cases += 1;
    }
    let outcomes: Vec<_> = outcomes.into_iter().collect();
    (
        format!("{function:30}{line:23} {}\n", outcomes.join(", ")),
        cases,
        errors,
    )
}
