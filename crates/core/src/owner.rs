//! The owner of a contender: the text in its znode that names its process.
//!
//! The text is `service@host:pid`. Curator and kazoo put a text of their own into the same place:
//! the address of the host, or the identifier of the contender.

use std::sync::Arc;

use crate::invalid_input::InvalidInput;

/// The longest name of a service, in bytes.
const LONGEST_SERVICE: usize = 200;

/// The owner of the contenders of this process. By default the service is the program's name.
pub(crate) fn of_this_process(service: Option<&str>) -> Arc<str> {
    let service = service.map_or_else(program, str::to_owned);
    format!("{service}@{}:{}", host(), std::process::id()).into()
}

/// The owner in a contender's data, if the data is text that can be printed on one line.
pub(crate) fn in_data(data: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(data).ok()?;
    is_printable(text).then(|| text.to_owned())
}

/// Refuses the name of a service that cannot be printed on one line.
pub(crate) fn check_service(service: &str) -> Result<(), InvalidInput> {
    if !is_printable(service) {
        let problem = "is empty, or has a character that cannot be printed";
        return Err(InvalidInput::new("owner", service, problem));
    }
    if service.len() > LONGEST_SERVICE {
        let problem = format!("is longer than {LONGEST_SERVICE} bytes");
        return Err(InvalidInput::new("owner", service, problem));
    }
    Ok(())
}

fn is_printable(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

fn program() -> String {
    let path = std::env::current_exe().ok();
    let name = path.as_ref().and_then(|path| path.file_stem());
    printable(name.map(|name| name.to_string_lossy().into_owned()))
}

#[cfg(unix)]
fn host() -> String {
    let names = rustix::system::uname();
    printable(Some(names.nodename().to_string_lossy().into_owned()))
}

#[cfg(not(unix))]
fn host() -> String {
    printable(std::env::var("COMPUTERNAME").ok())
}

/// The name, or a question mark if it is unknown or cannot be printed.
fn printable(name: Option<String>) -> String {
    let name = name.filter(|name| is_printable(name));
    name.unwrap_or_else(|| "?".to_owned())
}
