//! Credentials: from a file or from the environment, never from the command line.

use std::env::{self, VarError};
use std::io;
use std::path::Path;

use crate::failure::Failure;

/// The variable that credentials may be in.
pub(crate) const VARIABLE: &str = "ZKR_CREDENTIALS";

/// Reads `scheme:credentials`, one in each line. The file comes before the environment.
///
/// A line may begin with `#`. The scheme is usually `digest`, as in `digest:user:password`.
pub(crate) fn read(file: Option<&Path>) -> Result<Vec<(String, String)>, Failure> {
    let (from, text) = match (file, env::var(VARIABLE)) {
        (Some(file), _) => {
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| not_read(file, &error))?;
            (format!("{file:?}"), text)
        }
        (None, Ok(text)) => (VARIABLE.to_owned(), text),
        (None, Err(VarError::NotPresent)) => return Ok(Vec::new()),
        (None, Err(VarError::NotUnicode(_))) => {
            return Err(Failure::usage(format!("{VARIABLE} is not UTF-8")));
        }
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

fn not_read(file: &Path, error: &io::Error) -> Failure {
    // A failure is shown and logged: credentials in place of a file's name must not be in it.
    let name = file.to_string_lossy();
    if name.matches(':').count() > 1 && !name.starts_with(['/', '.']) {
        return Failure::usage(
            "--credentials-file takes the name of a file: write the credentials to one",
        );
    }
    Failure::usage(format!("cannot read --credentials-file {file:?}: {error}"))
}

/// Says so if other users can read the file.
#[cfg(unix)]
pub(crate) fn warn_of_readers(file: &Path) {
    use std::os::unix::fs::PermissionsExt;

    const READ_BY_OTHERS: u32 = 0o044;
    // If there is no such file, reading it says so.
    let Ok(metadata) = file.metadata() else {
        return;
    };
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.is_file() && mode & READ_BY_OTHERS != 0 {
        crate::failure::warn(&format!(
            "other users can read {file:?}, which holds a secret: its mode is {mode:04o}, and 600 \
             would do"
        ));
    }
}

/// Windows has no such mode.
#[cfg(not(unix))]
pub(crate) fn warn_of_readers(_: &Path) {}
