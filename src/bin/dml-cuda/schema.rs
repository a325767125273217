//! Documents that name the version of their schema.

use serde::Deserialize;

/// An error where a document's schema is newer than what this program knows.
pub fn check(text: &str, known: u32) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Versioned {
        schema: u32,
    }
    match serde_json::from_str::<Versioned>(text) {
        Ok(Versioned { schema }) if schema > known => {
            Err(format!("its schema is {schema}, must be at most {known}: a newer release of dml-cuda wrote it"))
        }
        Ok(_) => Ok(()),
        Err(error) => Err(format!("it is not JSON with a schema: {error}")),
    }
}
