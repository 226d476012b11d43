//! Paths of znodes.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::invalid_input::InvalidInput;

/// The well-formed absolute path of a znode below the root.
///
/// These paths are refused, with an error that quotes the path and names the problem:
///
/// * a path of more than 32,768 bytes, which the error does not quote;
/// * a path that is not absolute, or has an empty segment, `.`, `..`, or a slash at its end;
/// * a path with a character that ZooKeeper refuses (control characters, private use, everything
///   above U+FFFF);
/// * the root, and `/zookeeper` and its children, which belong to the server.
///
/// A clone is cheap.
///
/// ```
/// use zookeeper_recipes_core::NodePath;
///
/// let path = NodePath::new("/locks/report")?;
/// assert_eq!(path.join("child")?.as_str(), "/locks/report/child");
/// assert_eq!(path.parent().unwrap().as_str(), "/locks");
/// assert_eq!(path.name(), "report");
///
/// let error = NodePath::new("locks/report").unwrap_err();
/// assert_eq!(error.to_string(), r#"path "locks/report" is not absolute: it must begin with '/'"#);
/// # Ok::<(), zookeeper_recipes_core::InvalidInput>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodePath(Arc<str>);

impl NodePath {
    /// Checks a path, and makes a `NodePath` of it.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the path is not well formed. The error quotes the path and the problem.
    pub fn new(path: &str) -> Result<NodePath, InvalidInput> {
        check_length(path.len())?;
        match problem(path) {
            None => Ok(NodePath(Arc::from(path))),
            Some(problem) => Err(InvalidInput::new("path", path, problem)),
        }
    }

    /// The path of the child with this name.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the name is empty, contains a slash, or is not a valid segment, or if
    /// the path would be too long.
    pub fn join(&self, name: &str) -> Result<NodePath, InvalidInput> {
        let segment = if name.contains('/') {
            Some("has a '/' in it: it must be a single segment".to_owned())
        } else {
            segment_problem(name)
        };
        check_length(self.0.len() + "/".len() + name.len())?;
        match segment {
            None => Ok(NodePath(Arc::from(format!("{}/{name}", self.0)))),
            Some(problem) => Err(InvalidInput::new("name", name, problem)),
        }
    }

    /// The path of the parent, or `None` if the parent is the root.
    pub fn parent(&self) -> Option<NodePath> {
        match self.0.rfind('/') {
            Some(0) | None => None,
            Some(slash) => Some(NodePath(Arc::from(&self.0[..slash]))),
        }
    }

    /// The last segment.
    pub fn name(&self) -> &str {
        last_segment(&self.0)
    }

    /// The name of the child of this directory that has this path.
    pub(crate) fn child_name<'p>(&self, path: &'p str) -> Option<&'p str> {
        let name = path.strip_prefix(self.as_str())?.strip_prefix('/')?;
        (!name.contains('/')).then_some(name)
    }

    /// The path as a string, in ZooKeeper's form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn last_segment(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// The most bytes of a path.
///
/// A request can then contain several paths, each below a chroot: a server closes the connection if
/// a request is longer than `jute.maxbuffer`, by default 1 MiB.
const LONGEST: usize = 32 * 1024;

fn check_length(bytes: usize) -> Result<(), InvalidInput> {
    if bytes <= LONGEST {
        return Ok(());
    }
    let length = format!("of {bytes} bytes");
    let problem = format!("is longer than {LONGEST} bytes");
    Err(InvalidInput::new("path", length, problem))
}

fn problem(path: &str) -> Option<String> {
    if path == "/" {
        return Some("is the root, which no recipe can use".to_owned());
    }
    if path == "/zookeeper" || path.starts_with("/zookeeper/") {
        return Some("belongs to the server itself".to_owned());
    }
    problem_at_server(path, false)
}

/// Why a server refuses a path that is not the root.
///
/// A sequential path may end with a slash, because the server appends a number.
pub(crate) fn problem_at_server(path: &str, sequential: bool) -> Option<String> {
    if path.is_empty() {
        return Some("is empty".to_owned());
    }
    let Some(segments) = path.strip_prefix('/') else {
        return Some("is not absolute: it must begin with '/'".to_owned());
    };
    let segments = match segments.strip_suffix('/') {
        Some(segments) if sequential => segments,
        Some(_) => return Some("ends with '/'".to_owned()),
        None => segments,
    };
    // Each request checks its path, and most paths are plain.
    if is_plain(segments) {
        return None;
    }
    segments.split('/').find_map(segment_problem)
}

/// True only if no segment is empty or begins with a dot, and all characters are printable ASCII.
fn is_plain(segments: &str) -> bool {
    let bytes = segments.as_bytes();
    // Neither loop ends early, so the compiler reads many bytes at once.
    let is_printable = bytes.iter().fold(true, |all, byte| {
        let is_printable = matches!(byte, b' '..=b'~');
        all & is_printable
    });
    let begins_badly = bytes.windows(2).fold(false, |any, pair| {
        any | ((pair[0] == b'/') & matches!(pair[1], b'.' | b'/'))
    });
    let first_and_last = bytes.first().zip(bytes.last());
    let ends_well =
        first_and_last.is_some_and(|ends| !matches!(ends, (b'.' | b'/', _) | (_, b'/')));
    is_printable && !begins_badly && ends_well
}

fn segment_problem(segment: &str) -> Option<String> {
    if is_plain(segment) {
        return None;
    }
    if segment.is_empty() {
        return Some("has an empty segment".to_owned());
    }
    if segment == "." || segment == ".." {
        return Some(format!("has the relative segment {segment:?}"));
    }
    // `org.apache.zookeeper.common.PathUtils` refuses these ranges, and all UTF-16 surrogates.
    let refused = segment.chars().find(|character| {
        matches!(*character,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..=char::MAX)
    });
    refused.map(|character| {
        format!(
            "has the character U+{:04X}, which ZooKeeper refuses",
            u32::from(character)
        )
    })
}

impl fmt::Display for NodePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Debug for NodePath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl FromStr for NodePath {
    type Err = InvalidInput;

    fn from_str(path: &str) -> Result<NodePath, InvalidInput> {
        NodePath::new(path)
    }
}

impl AsRef<str> for NodePath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}
