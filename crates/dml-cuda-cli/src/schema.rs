//! Documents that name the version of their schema: runs.

use std::path::Path;

use serde::Deserialize;

use crate::whole_file;

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
    let Ok(bytes) = whole_file::read_regular(path) else { return false };
    let text = String::from_utf8_lossy(&bytes);
    text.trim_start_matches('\u{feff}').trim_start().starts_with('{') && text.contains("\"schema\"")
}
