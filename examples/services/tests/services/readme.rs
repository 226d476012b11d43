//! What the README, the crates' READMEs and the pages beside them say is so.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

const README: &str = include_str!("../../../../README.md");

/// The package that is the README's crate of one's own, so that its code is compiled and run.
const CODE: [&str; 2] = [
    include_str!("../../../first_lock/src/main.rs"),
    include_str!("../../../first_lock/tests/lock.rs"),
];
const MANIFEST: &str = include_str!("../../../first_lock/Cargo.toml");

const REPOSITORY: &str = "https://github.com/zookeeper-recipes/zookeeper-recipes";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The directories of the published crates.
fn crates() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let entries = root().join("crates").read_dir()?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    paths.collect()
}

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
fn code_is_compiled_and_run() {
    let blocks = blocks("rust");
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(
            CODE.iter().any(|code| code.contains(&block)),
            "not in examples/first_lock:\n{block}"
        );
    }
}

/// The names of the dependencies in a manifest, with the features that it turns on.
fn dependencies(manifest: &str) -> Vec<(&str, Option<&str>)> {
    let lines = manifest.lines();
    let lines = lines.skip_while(|line| !line.starts_with("[dependencies]"));
    let lines = lines.take_while(|line| *line != "[lints]");
    let named = lines.filter_map(|line| {
        let (name, wanted) = line.split_once('=')?;
        let name = name.trim().trim_end_matches(".workspace");
        Some((name, wanted.split_once("features = ").map(|(_, on)| on)))
    });
    let mut named: Vec<_> = named.collect();
    named.sort_unstable();
    named
}

#[test]
fn manifest_is_that_of_the_code() {
    let manifest = blocks("toml").concat();
    assert_eq!(dependencies(&manifest), dependencies(MANIFEST));
}

#[test]
fn supported_rust_is_that_of_the_manifest() {
    let supported = format!("Rust {}", env!("CARGO_PKG_RUST_VERSION"));
    assert!(README.contains(&supported), "{supported}");
}

#[test]
fn every_example_is_named_on_its_page() -> Result<(), Box<dyn Error>> {
    let page = include_str!("../../../README.md");
    assert!(page.contains("`first_lock`"));
    for directory in ["examples/examples", "examples/services/examples"] {
        for entry in root().join(directory).read_dir()? {
            let path = entry?.path();
            let name = path.file_stem().ok_or("a file without a name")?;
            let name = format!("`{}`", name.to_string_lossy());
            assert!(page.contains(&name), "{name}");
        }
    }
    Ok(())
}

#[test]
fn every_crate_has_a_readme_and_its_licences() -> Result<(), Box<dyn Error>> {
    for package in crates()? {
        for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let (own, expected) = (package.join(name), root().join(name));
            let is_same = fs::read(&own)? == fs::read(&expected)?;
            assert!(
                is_same,
                "{own:?} is not the text of {expected:?}: make it a link"
            );
        }
        let manifest = fs::read_to_string(package.join("Cargo.toml"))?;
        let name = manifest
            .lines()
            .find_map(|line| line.strip_prefix("name = "));
        let name = name.ok_or("a package without a name")?;
        let readme = fs::read_to_string(package.join("README.md"))?;
        let heading = format!("# {}\n", name.trim_matches('"'));
        assert!(readme.starts_with(&heading), "{heading}");
        for part in ["\n## Example\n", "\n## Costs\n", "\n## Limits\n"] {
            assert!(readme.contains(part), "{heading} has no {part:?}");
        }
    }
    Ok(())
}

/// Every page of the project, but the definitions that lead into the documentation of the crates.
fn pages() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let (mut pages, mut ahead) = (Vec::new(), vec![root()]);
    while let Some(directory) = ahead.pop() {
        for entry in directory.read_dir()? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default();
            if path.is_dir() && name != "target" && name != ".git" {
                ahead.push(path);
            } else if name != "links.md" && path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    Ok(pages)
}

#[test]
fn links_into_the_project_lead_somewhere() -> Result<(), Box<dyn Error>> {
    let pages = pages()?;
    assert!(pages.len() > 30, "{pages:?}");
    for page in pages {
        for link in links(&fs::read_to_string(&page)?) {
            leads_somewhere(&page, link)?;
        }
    }
    Ok(())
}

/// The links of a page, in its text and in its definitions.
fn links(page: &str) -> Vec<&str> {
    let defined = definitions(page).map(|(_, link)| link);
    links_in_text(page).chain(defined).collect()
}

fn links_in_text(page: &str) -> impl Iterator<Item = &str> {
    let blocks = page.split("```").step_by(2);
    let after = blocks.flat_map(|text| text.split("](").skip(1));
    after.map(|after| after.split(')').next().unwrap_or_default())
}

/// The labels of a page with the links that they stand for.
fn definitions(page: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = page.lines().filter_map(|line| line.strip_prefix('['));
    lines.filter_map(|line| line.split_once("]: "))
}

/// Rustdoc takes the first definition of a label, so that of `links.md`. A label that is defined on
/// the page alone, and a relative link in the text, would lead nowhere on docs.rs.
#[test]
fn links_of_the_guide_lead_somewhere_on_docs_rs_too() -> Result<(), Box<dyn Error>> {
    let guide = root().join("crates/core/src/docs");
    let read = |name: &str| fs::read_to_string(guide.join(name));
    let (items, map) = (read("links.md")?, read("README.md")?);
    for entry in guide.read_dir()? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name == "links.md" {
            continue;
        }
        let page = read(&name)?;
        for link in links_in_text(&page) {
            let is_whole = link.starts_with('#') || link.contains("://");
            assert!(is_whole, "{name}: write [...][label] in place of {link}");
        }
        for (label, link) in definitions(&page) {
            if link.contains("://") {
                continue;
            }
            let leads = definitions(&items).any(|(item, _)| item == label);
            assert!(leads, "{name}: links.md has no [{label}]");
            if let Some(item) = label.strip_prefix('`') {
                let item = item.trim_end_matches('`').rsplit("::").next();
                let code = fs::read_to_string(guide.join(link))?;
                assert!(
                    item.is_some_and(|item| code.contains(item)),
                    "{name}: {link}"
                );
            }
        }
        let is_on_the_map = name == "README.md" || definitions(&map).any(|(_, link)| link == name);
        assert!(is_on_the_map, "{name} is not on the map");
    }
    Ok(())
}

/// Checks a link to a file of the project, and its heading.
fn leads_somewhere(page: &Path, link: &str) -> Result<(), Box<dyn Error>> {
    // Such a link would show another version, or none before the first one is published.
    let is_of_docs_rs = link.starts_with("https://docs.rs/zookeeper-recipes");
    assert!(!is_of_docs_rs, "{page:?}: lead to the source of {link}");
    // On crates.io nothing is relative to the repository.
    let ours = link.strip_prefix(REPOSITORY).and_then(|link| {
        let file = link.strip_prefix("/blob/main/");
        file.or(link.strip_prefix("/tree/main/"))
    });
    let (from, link) = match ours {
        Some(link) => (root(), link),
        None if link.contains("://") => return Ok(()),
        None => (page.parent().unwrap_or(page).to_owned(), link),
    };
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if file.is_empty() {
        page.to_owned()
    } else {
        from.join(file)
    };
    assert!(target.exists(), "{page:?}: {link}");
    if !heading.is_empty() {
        let text = fs::read_to_string(&target)?;
        let found = anchors(&text).any(|anchor| anchor == heading);
        assert!(found, "{page:?}: {link}");
    }
    Ok(())
}

/// What a link to a heading of `page` ends with.
fn anchors(page: &str) -> impl Iterator<Item = String> + '_ {
    let headings = page.lines().filter_map(|line| line.split_once("# "));
    headings.map(|(_, heading)| {
        let kept = |char: &char| char.is_alphanumeric() || matches!(char, ' ' | '-' | '_');
        let kept: String = heading.chars().filter(kept).collect();
        kept.to_lowercase().replace(' ', "-")
    })
}
