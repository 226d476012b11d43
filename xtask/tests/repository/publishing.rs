//! The published crates can be published one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::process::Command;

use serde_json::Value;

/// The packages of the workspace, as cargo describes them.
fn packages() -> Result<Vec<Value>, Box<dyn Error>> {
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--no-deps", "--locked", "--format-version=1"]);
    let output = metadata.current_dir(env!("CARGO_MANIFEST_DIR")).output()?;
    let mut metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(serde_json::from_value(metadata["packages"].take())?)
}

/// The crates that a published manifest names, with the crates that only its tests use.
///
/// Cargo leaves out a path without a version, which it shows as `*`.
fn named_by(package: &Value) -> BTreeSet<String> {
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    let local = dependencies.filter(|it| it["path"].is_string() && it["req"] != "*");
    let names = local.filter_map(|it| it["name"].as_str());
    names.map(str::to_owned).collect()
}

#[test]
fn each_crate_is_published_after_the_crates_that_its_manifest_names() -> Result<(), Box<dyn Error>>
{
    let packages = packages()?;
    let published = packages.iter().filter(|it| it["publish"].is_null());
    let mut left: BTreeMap<&str, BTreeSet<String>> = published
        .filter_map(|it| Some((it["name"].as_str()?, named_by(it))))
        .collect();
    assert!(left.contains_key("zookeeper-recipes-core"), "{left:?}");
    while !left.is_empty() {
        let ready = |names: &BTreeSet<String>| names.iter().all(|it| !left.contains_key(&**it));
        let next = left.iter().find(|(_, names)| ready(names));
        let Some((&next, _)) = next else {
            return Err(format!("no order: each names another of these: {left:#?}").into());
        };
        left.remove(next);
    }
    Ok(())
}

#[test]
fn documentation_of_each_library_is_built_with_all_features() -> Result<(), Box<dyn Error>> {
    for package in packages()?.iter().filter(|it| it["publish"].is_null()) {
        let targets = package["targets"].as_array().into_iter().flatten();
        if targets.into_iter().any(|it| it["kind"][0] == "lib") {
            let built = &package["metadata"]["docs"]["rs"]["all-features"];
            assert_eq!(*built, true, "{}", package["name"]);
        }
    }
    Ok(())
}

/// Built by itself, the documentation of a crate leads to the items of another crate at this
/// address. Without it, each of these links is dead.
#[test]
fn each_library_names_the_address_of_its_documentation() -> Result<(), Box<dyn Error>> {
    for package in packages()?.iter().filter(|it| it["publish"].is_null()) {
        let targets = package["targets"].as_array().into_iter().flatten();
        let Some(library) = targets.into_iter().find(|it| it["kind"][0] == "lib") else {
            continue;
        };
        let name = package["name"].as_str().ok_or("a package has a name")?;
        let path = library["src_path"].as_str().ok_or("a library has a file")?;
        let address = format!("#![doc(html_root_url = \"https://docs.rs/{name}/latest\")]");
        assert!(
            std::fs::read_to_string(path)?.contains(&address),
            "{path} lacks {address}"
        );
    }
    Ok(())
}

/// Most tests use crates that are not published, so `cargo test` in the package would not compile.
#[test]
fn no_package_has_its_tests() -> Result<(), Box<dyn Error>> {
    for package in packages()?.iter().filter(|it| it["publish"].is_null()) {
        let manifest = package["manifest_path"]
            .as_str()
            .ok_or("a package has a manifest")?;
        let text = std::fs::read_to_string(manifest)?;
        let mut excludes = text.lines().filter(|line| line.starts_with("exclude = ["));
        assert!(
            excludes.any(|line| line.contains("\"/tests\"")),
            "{manifest}"
        );
    }
    Ok(())
}
