//! What the README says is so.

const README: &str = include_str!("../../README.md");

/// The text of each fenced block of that language.
fn blocks(language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if let Some(found) = line.strip_prefix("```").filter(|found| !found.is_empty()) {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if found == language {
                blocks.push(block.join("\n"));
            }
        }
    }
    blocks
}

#[test]
fn code_is_that_of_the_example() {
    let example = include_str!("../examples/exclusive_lock.rs");
    let blocks = blocks("rust");
    assert!(!blocks.is_empty());
    for block in blocks {
        assert!(
            example.contains(&block),
            "not in exclusive_lock.rs:\n{block}"
        );
    }
}

#[test]
fn supported_rust_is_that_of_the_manifest() {
    let supported = format!("Rust {}", env!("CARGO_PKG_RUST_VERSION"));
    assert!(README.contains(&supported), "{supported}");
}

#[test]
fn links_into_the_project_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut links = 0;
    for after in README.split("](").skip(1) {
        let link = after.split(')').next().unwrap_or_default();
        if !link.contains("://") && !link.starts_with('#') {
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let page = std::fs::read_to_string(root.join(file));
            assert!(page.is_ok() || root.join(file).is_dir(), "{link}");
            let page = page.unwrap_or_default();
            assert!(heading.is_empty() || anchors(&page).any(|anchor| anchor == heading));
            links += 1;
        }
    }
    assert!(links > 0);
}

/// What a link to a heading of `page` ends with.
fn anchors(page: &str) -> impl Iterator<Item = String> + '_ {
    let headings = page.lines().filter_map(|line| line.split_once("# "));
    headings.map(|(_, heading)| heading.to_lowercase().replace(' ', "-").replace('`', ""))
}
