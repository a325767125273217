//! The environment variables of this library.

/// An environment variable has a value that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is `{found}`, but must be {required}")]
#[non_exhaustive]
pub struct EnvironmentError {
    /// The variable.
    pub name: &'static str,
    /// Its value. Bytes that are not UTF-8 are replaced.
    pub found: String,
    /// The known values.
    pub required: String,
}

/// Returns the meaning of a variable's value. `None` if the variable is not set.
pub(crate) fn variable<T: Copy>(name: &'static str, values: &[(&str, T)]) -> Result<Option<T>, EnvironmentError> {
    let Some(found) = std::env::var_os(name) else { return Ok(None) };
    let known = values.iter().find(|(value, _)| found == *value);
    known.map(|&(_, meaning)| Some(meaning)).ok_or_else(|| {
        let known: Vec<String> = values.iter().map(|(value, _)| format!("`{value}`")).collect();
        EnvironmentError { name, found: found.to_string_lossy().into_owned(), required: known.join(" or ") }
    })
}
