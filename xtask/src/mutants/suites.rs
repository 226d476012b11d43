//! The suites of the workspace, and which mistakes each can see.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

use super::copy::Copy;
use super::mutant::Mutant;
use crate::cargo::{Package, of_lowest_priority, packages, root};
use crate::test::Artifact;

/// The package of the simulation.
pub(crate) const SCHEDULES: &str = "zookeeper-recipes-schedules";

/// The suite of the seeds, as many as the gate runs.
const SEEDS: &str = "seeds";

/// Programs that are run one after the other.
pub(super) struct Suite {
    pub(super) name: String,
    programs: Vec<Program>,
}

pub(super) struct Program {
    run: Run,
    /// The directories of the crates that it is compiled of.
    sees: BTreeSet<PathBuf>,
}

enum Run {
    Tests(Artifact),
    Seeds(PathBuf),
}

/// The suites of these names, or all suites: the unit tests of all crates, the integration tests of
/// each package, and the seeds.
pub(super) fn all(copy: Copy, names: &[String]) -> anyhow::Result<Vec<Suite>> {
    let packages = packages()?;
    let mut programs: BTreeMap<String, Vec<Program>> = BTreeMap::new();
    for artifact in copy.programs {
        let package = artifact.package();
        let short = package.strip_prefix("zookeeper-recipes-");
        let suite = match artifact.integration_test() {
            None if artifact.is_library() => "unit",
            None => continue,
            Some(_) => short.unwrap_or("recipes"),
        };
        let of_suite = programs.entry(suite.to_owned()).or_default();
        of_suite.push(Program {
            sees: seen_by(package, &packages),
            run: Run::Tests(artifact),
        });
    }
    let seeds = Program {
        sees: seen_by(SCHEDULES, &packages),
        run: Run::Seeds(copy.simulation),
    };
    programs.insert(SEEDS.to_owned(), vec![seeds]);
    for name in names {
        let known: Vec<&String> = programs.keys().collect();
        ensure!(
            programs.contains_key(name),
            "no suite is named {name}; there are {known:?}"
        );
    }
    programs.retain(|name, _| names.is_empty() || names.contains(name));
    let suites = programs.into_iter();
    let suites = suites.map(|(name, programs)| Suite { name, programs });
    Ok(suites.collect())
}

impl Suite {
    /// True if a mutant can change what the suite finds.
    pub(super) fn sees(&self, mutant: &Mutant) -> bool {
        self.programs.iter().any(|program| program.sees(mutant))
    }

    /// The programs that a mutant can change. All programs without one.
    pub(super) fn programs(&self, mutant: Option<&Mutant>) -> impl Iterator<Item = &Program> {
        let programs = self.programs.iter();
        programs.filter(move |program| mutant.is_none_or(|it| program.sees(it)))
    }
}

impl Program {
    fn sees(&self, mutant: &Mutant) -> bool {
        let is_seen = |file: &&str| self.sees.iter().any(|it| Path::new(file).starts_with(it));
        mutant.files().iter().any(is_seen)
    }

    pub(super) fn command(&self) -> Command {
        match &self.run {
            Run::Tests(artifact) => artifact.command(true),
            Run::Seeds(simulation) => {
                let mut command = of_lowest_priority(simulation);
                command.args(["--seeds", "250"]);
                command
            }
        }
    }
}

/// The directories of the crates that the tests of a package are compiled of.
fn seen_by(package: &str, packages: &[Package]) -> BTreeSet<PathBuf> {
    let package = match package {
        // A workspace of its own.
        "zookeeper-recipes-shuttle" => "zookeeper-recipes-core",
        package => package,
    };
    let mut waiting = vec![package];
    let mut seen = BTreeSet::new();
    while let Some(name) = waiting.pop() {
        let found = packages
            .iter()
            .find(|it| it.is_of_workspace() && it.name == name);
        let Some(found) = found else { continue };
        let directory = found.manifest_path.parent().unwrap_or(Path::new(""));
        if seen.insert(
            directory
                .strip_prefix(root())
                .unwrap_or(directory)
                .to_owned(),
        ) {
            let needed = found.dependencies.iter();
            let needed = needed.filter(|it| name == package || !it.is_for_tests());
            waiting.extend(needed.map(|it| it.name.as_str()));
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_see_the_crates_that_they_are_compiled_of() {
        let packages = packages().expect("cargo knows its packages");
        let sees = |package: &str, directory: &str| {
            seen_by(package, &packages).contains(Path::new(directory))
        };
        assert!(sees("zookeeper-recipes-lock", "crates/core"));
        assert!(sees("zookeeper-recipes-lock", "crates/simulation"));
        assert!(!sees("zookeeper-recipes-connection", "crates/core"));
        assert!(!sees("zookeeper-recipes-lock", "crates/assignment"));
    }
}
