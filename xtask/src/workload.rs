//! The programs of `tests` that run for long, and write a report.

use std::process::Command;

use crate::bench::Arguments;
use crate::cargo::{cargo, root};

/// The command that builds and runs a program of `tests`, which names the commit in its report.
pub(crate) fn program(name: &str, arguments: &Arguments) -> Command {
    let package = format!("zookeeper-recipes-{name}");
    let words = ["run", "--quiet", "--release", "--locked", "--package"];
    let mut command = cargo(&words);
    command.args([&*package, "--bin", name, "--"]);
    command.args(&arguments.words);
    command.env("REPORT_COMMIT", commit());
    command
}

/// The commit of the sources, and whether they have changes.
fn commit() -> String {
    let (head, changes) = (
        git(&["rev-parse", "--short", "HEAD"]),
        git(&["status", "--porcelain"]),
    );
    named(head.as_deref(), changes.as_deref())
}

fn named(head: Option<&str>, changes: Option<&str>) -> String {
    match (head, changes) {
        (None, _) => "unknown".to_owned(),
        (Some(head), Some("")) => head.to_owned(),
        (Some(head), Some(_)) => format!("{head} with changes"),
        (Some(head), None) => format!("{head}, changes unknown"),
    }
}

/// What git prints, or `None` if git is missing or fails, as outside a repository.
fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).current_dir(root()).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(words: &[&str]) -> Arguments {
        Arguments {
            words: words.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    #[test]
    fn help_needs_nothing_installed_and_reaches_the_program() {
        for word in ["--help", "-h"] {
            let arguments = arguments(&["--quick", word]);
            assert!(arguments.ask_for_help());
            let line = crate::cargo::line(&program("soak", &arguments));
            let end = format!("--package zookeeper-recipes-soak --bin soak -- --quick {word}");
            assert!(line.ends_with(&end), "{line}");
        }
        assert!(!arguments(&["--minutes", "5"]).ask_for_help());
    }

    #[test]
    fn commit_is_named_with_its_changes() {
        assert_eq!(named(Some("0dfee9ac"), Some("")), "0dfee9ac");
        assert_eq!(
            named(Some("0dfee9ac"), Some("M a")),
            "0dfee9ac with changes"
        );
        assert_eq!(named(None, None), "unknown");
        let command = program("jepsen", &arguments(&[]));
        let mut variables = command.get_envs();
        assert!(variables.any(|(name, value)| name == "REPORT_COMMIT" && value.is_some()));
    }
}
