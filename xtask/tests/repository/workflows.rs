//! The files for the forge and for containers can be read as YAML and as JSON.

use std::error::Error;
use std::fs;

use serde_json::Value;

use crate::root;

/// A value without quotes that ends with a colon, or has one before a space, is a key to YAML: the
/// forge then refuses the whole file, and runs nothing.
#[test]
fn values_with_a_colon_are_quoted() -> Result<(), Box<dyn Error>> {
    let mut values = 0;
    for directory in [".github/workflows", ".github/ISSUE_TEMPLATE", "examples"] {
        for entry in root().join(directory).read_dir()? {
            let path = entry?.path();
            if path
                .extension()
                .is_none_or(|end| end != "yml" && end != "yaml")
            {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            for line in text.lines().filter(|line| is_pair(line)) {
                let (_, value) = line.split_once(": ").unwrap_or_default();
                let is_quoted = value.starts_with(['"', '\'', '[', '{', '#']);
                let is_plain = !value.ends_with(':') && !value.contains(": ");
                assert!(is_quoted || is_plain, "{path:?}: {line}");
                values += 1;
            }
        }
    }
    assert!(values > 100, "{values}");
    Ok(())
}

/// True for a line with a key and a value, and not for a line of a shell or of a comment.
fn is_pair(line: &str) -> bool {
    let line = line.trim_start().trim_start_matches("- ");
    let key = line.split_once(": ").map_or("", |(key, _)| key);
    !key.is_empty()
        && key
            .chars()
            .all(|char| char.is_alphanumeric() || "-_".contains(char))
}

/// Its first command installs what the tests need.
#[test]
fn container_for_development_can_be_read() -> Result<(), Box<dyn Error>> {
    let text = fs::read_to_string(root().join(".devcontainer/devcontainer.json"))?;
    let container: Value = serde_json::from_str(&text)?;
    assert!(container["image"].is_string(), "{container}");
    assert_eq!(container["postCreateCommand"], "cargo xtask install");
    Ok(())
}
