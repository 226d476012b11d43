//! `cargo xtask licences`: the licence of every dependency against the list in `deny.toml`.
//!
//! It reads the same part of that file as `cargo deny check licenses`, and needs no program but
//! cargo. It also compares the licences in each published crate with those of the project.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;
use spdx::{Expression, Licensee, ParseMode};

use crate::cargo::{Package, packages, root};

/// Checks all crates of the tree, and names each violation.
pub(crate) fn run() -> anyhow::Result<()> {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path:?}"))?;
    let allowed = Allowed::parse(&text).with_context(|| format!("cannot use {path:?}"))?;
    let packages = packages()?;
    let violations: Vec<String> = packages
        .iter()
        .filter_map(|package| allowed.violation(package))
        .collect();
    if !violations.is_empty() {
        bail!(
            "licences that deny.toml does not allow:\n{}",
            violations.join("\n")
        );
    }
    for package in packages.iter().filter(|it| it.is_published_here()) {
        let manifest = &package.manifest_path;
        let directory = manifest.parent().context("a manifest is in a directory")?;
        compare_texts(directory, &root())?;
    }
    println!("{} crates, all with allowed licences", packages.len());
    Ok(())
}

/// The licences that a dependency may have.
#[derive(Debug)]
struct Allowed {
    everywhere: Vec<Licensee>,
    /// The licences of single crates, by the crate's name.
    exceptions: Vec<(String, Vec<Licensee>)>,
}

impl Allowed {
    fn parse(deny_toml: &str) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct Deny {
            licenses: Licenses,
        }
        #[derive(Deserialize)]
        struct Licenses {
            allow: Vec<String>,
            #[serde(default)]
            exceptions: Vec<Exception>,
        }
        #[derive(Deserialize)]
        struct Exception {
            #[serde(rename = "crate")]
            name: String,
            allow: Vec<String>,
        }

        let licenses = toml::from_str::<Deny>(deny_toml)?.licenses;
        let exceptions: anyhow::Result<_> = licenses
            .exceptions
            .into_iter()
            .map(|exception| Ok((exception.name, licensees(&exception.allow)?)))
            .collect();
        Ok(Self {
            everywhere: licensees(&licenses.allow)?,
            exceptions: exceptions?,
        })
    }

    /// Names the crate, its version and its licence, if the licence is not allowed.
    fn violation(&self, package: &Package) -> Option<String> {
        let Package { name, version, .. } = package;
        let Some(license) = &package.license else {
            return Some(format!("{name} {version}: no licence expression"));
        };
        // Older crates write MIT/Apache-2.0.
        let expression = match Expression::parse_mode(license, ParseMode::LAX) {
            Ok(expression) => expression,
            Err(error) => return Some(format!("{name} {version}: {license:?}: {}", error.reason)),
        };
        let exceptions = self
            .exceptions
            .iter()
            .filter(|(excepted, _)| excepted == name)
            .flat_map(|(_, licensees)| licensees);
        let allowed: Vec<&Licensee> = self.everywhere.iter().chain(exceptions).collect();
        let satisfied = expression.evaluate(|requirement| {
            allowed
                .iter()
                .any(|licensee| licensee.satisfies(requirement))
        });
        (!satisfied).then(|| format!("{name} {version}: {license}"))
    }
}

/// Compares the licences that a crate packages with those of the project.
fn compare_texts(directory: &Path, project: &Path) -> anyhow::Result<()> {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let (own, expected) = (directory.join(name), project.join(name));
        let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {path:?}"));
        if read(&own)? != read(&expected)? {
            bail!("{own:?} is not the text of {expected:?}: make it a link");
        }
    }
    Ok(())
}

fn licensees(names: &[String]) -> anyhow::Result<Vec<Licensee>> {
    names
        .iter()
        .map(|name| Licensee::parse(name).with_context(|| format!("no SPDX licence: {name:?}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENY: &str = r#"
        [licenses]
        allow = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
        exceptions = [{ crate = "rare", allow = ["Zlib"] }]
    "#;

    fn violation(name: &str, license: Option<&str>) -> Option<String> {
        let package = serde_json::json!({
            "name": name, "version": "1.2.3", "license": license,
            "source": "registry", "publish": null, "manifest_path": "Cargo.toml",
            "features": {}, "targets": [],
        });
        let package: Package = serde_json::from_value(package).expect("a package");
        Allowed::parse(DENY).expect("a list").violation(&package)
    }

    #[test]
    fn licences_are_allowed_by_their_expressions_and_by_exceptions_for_one_crate() {
        for (name, license) in [
            ("a", "GPL-3.0-only OR MIT"),
            ("a", "MIT/Apache-2.0"),
            ("a", "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only"),
            ("a", "MIT AND Apache-2.0"),
            ("rare", "Zlib"),
        ] {
            assert_eq!(violation(name, Some(license)), None);
        }
        for (name, license) in [
            ("a", Some("MIT AND Unicode-3.0")),
            ("a", None),
            ("a", Some("see the file")),
            ("common", Some("Zlib")),
        ] {
            assert!(violation(name, license).is_some(), "{license:?}");
        }
    }

    #[test]
    fn violation_names_crate_version_and_expression() {
        let violation = violation("copyleft", Some("GPL-3.0-only")).expect("a violation");
        for part in ["copyleft", "1.2.3", "GPL-3.0-only"] {
            assert!(violation.contains(part), "{violation}");
        }
    }

    #[test]
    fn unknown_licence_in_the_list_is_an_error_that_quotes_it() {
        let error = Allowed::parse("[licenses]\nallow = [\"Nonsense-1.0\"]").expect_err("no SPDX");
        assert!(error.to_string().contains("Nonsense-1.0"), "{error}");
    }

    #[test]
    fn licence_file_with_another_text_is_an_error_that_names_it() {
        compare_texts(&root().join("crates/lock"), &root()).expect("links to the licences");

        // As a link is that was committed as a plain file.
        let directory = std::env::temp_dir().join(format!("licences-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
            fs::write(directory.join(name), format!("../../{name}")).expect("a file");
        }
        let error = compare_texts(&directory, &root()).expect_err("another text");
        fs::remove_dir_all(&directory).expect("the directory is there");
        assert!(error.to_string().contains("LICENSE-APACHE"), "{error}");
    }

    #[test]
    fn list_of_this_project_can_be_read() {
        let text = fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
        assert!(!Allowed::parse(&text).expect("a list").everywhere.is_empty());
    }
}
