//! The page on the architecture names files that exist.

use crate::root;

const PAGE: &str = include_str!("../../../ARCHITECTURE.md");

#[test]
fn every_file_that_the_page_names_is_there() {
    let root = root();
    let names = PAGE.split('`').skip(1).step_by(2);
    let files = names.filter(|name| name.ends_with(".rs") || name.ends_with('/'));
    let core = root.join("crates/core/src");
    let is_there = |name: &&str| root.join(name).exists() || core.join(name).exists();
    let (found, missing): (Vec<_>, Vec<_>) = files.partition(is_there);
    assert!(found.len() > 25, "{} files were found", found.len());
    assert!(
        missing.is_empty(),
        "neither from the root nor in core: {missing:?}"
    );
}
