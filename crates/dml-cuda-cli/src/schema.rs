//! Documents that name the version of their schema: runs.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde::Deserialize;

/// Fails if a document's schema is not the one that this program knows.
pub fn check(text: &str, known: u32) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    match serde_json::from_str::<Versioned>(text) {
        Ok(Versioned { schema }) if schema > known => {
            Err(format!("its schema is {schema}, must be {known}: a newer release of dml-cuda wrote it"))
        }
        Ok(Versioned { schema }) if schema < known => {
            Err(format!("its schema is {schema}, must be {known}: an older release of dml-cuda wrote it"))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("it is not JSON with a schema: {error}")),
    }
}

/// Whether a file holds such a document of any version, or the beginning of one. Its name does not matter.
pub fn is_in(path: &Path) -> bool {
    #[derive(Deserialize)]
    struct Versioned {
        #[serde(rename = "schema")]
        _schema: f64,
    }
    const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
    let Ok(file) = File::open(path) else { return false };
    let mut file = BufReader::new(file);
    if file.fill_buf().is_ok_and(|begin| begin.starts_with(BYTE_ORDER_MARK)) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    match serde_json::from_reader::<_, Versioned>(file) {
        Ok(_) => true,
        // A truncated document is worth keeping too.
        Err(error) if error.is_eof() => {
            std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains("\"schema\""))
        }
        Err(_) => false,
    }
}
