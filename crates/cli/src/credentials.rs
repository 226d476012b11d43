//! Credentials: from a file or from the environment, never from the command line.

use std::path::Path;

use crate::failure::Failure;

/// The variable that credentials may be in.
const VARIABLE: &str = "ZKR_CREDENTIALS";

/// Reads `scheme:credentials`, one in each line. The file comes before the environment.
///
/// A line may begin with `#`. The scheme is usually `digest`, as in `digest:user:password`.
pub(crate) fn read(file: Option<&Path>) -> Result<Vec<(String, String)>, Failure> {
    let (from, text) = match (file, std::env::var(VARIABLE)) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| {
                Failure::usage(format!("cannot read --credentials-file {file:?}: {error}"))
            })?;
            (format!("{file:?}"), text)
        }
        (None, Ok(text)) => (VARIABLE.to_owned(), text),
        (None, Err(_)) => return Ok(Vec::new()),
    };
    let lines = text.lines().map(str::trim).enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let wrong = |place: usize| {
        let problem = "is not scheme:credentials, such as digest:user:password";
        Failure::usage(format!("line {} of {from} {problem}", place + 1))
    };
    lines
        .map(|(place, line)| match line.split_once(':') {
            Some((scheme, rest)) if !scheme.is_empty() && !rest.is_empty() => {
                Ok((scheme.to_owned(), rest.to_owned()))
            }
            _ => Err(wrong(place)),
        })
        .collect()
}
