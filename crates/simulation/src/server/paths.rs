//! The paths that a server takes.

use zookeeper_recipes_protocol::ErrorCode;

/// The path of the root. An empty path names the root too.
pub(crate) fn of_node(path: &str) -> &str {
    if path.is_empty() { "/" } else { path }
}

/// Refuses a path that names no znode: the rule of the server's `PathUtils.validatePath`.
pub(crate) fn check(path: &str) -> Result<(), ErrorCode> {
    let is_valid = path == "/"
        || path
            .strip_prefix('/')
            .is_some_and(|names| names.split('/').all(is_name));
    is_valid.then_some(()).ok_or(ErrorCode::BadArguments)
}

/// Refuses a path that has no parent for a server.
pub(crate) fn check_parent(path: &str) -> Result<(), ErrorCode> {
    let is_valid = path.contains('/') && !path.contains('\0');
    is_valid.then_some(()).ok_or(ErrorCode::BadArguments)
}

fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.chars().any(is_forbidden)
}

fn is_forbidden(character: char) -> bool {
    // Java looks at the units of UTF-16, so that all characters beyond the first plane are
    // forbidden.
    matches!(character, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}')
        || character >= '\u{fff0}'
}
