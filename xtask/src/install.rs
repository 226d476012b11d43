//! `cargo xtask install`: installs the programs that the other tasks need.

mod apt;
mod needs;
mod programs;

use anyhow::bail;

use self::apt::Privilege;
use self::needs::{NEEDS, Need, PEERS, PYTHON, STORES};
use crate::kazoo;

/// Installs the server and the Java runtime if they are missing, and says so.
///
/// The call prints nothing if both are there.
///
/// # Errors
///
/// The error says what to install on which system if this machine has no apt-get that may be run.
pub(crate) fn run() -> anyhow::Result<()> {
    provide(NEEDS)
}

/// Installs a Python that can make virtual environments, if it is missing.
pub(crate) fn run_python() -> anyhow::Result<()> {
    provide(PYTHON)
}

/// Installs the libraries of other languages, each as far as that is possible.
///
/// The call reports which of them stay missing. That is no error: each test and bench that uses a
/// library can do without.
pub(crate) fn run_peers() {
    let provided = PEERS
        .iter()
        .chain(PYTHON)
        .map(|need| provide(std::slice::from_ref(need)))
        .chain(std::iter::once_with(kazoo::install));
    for error in provided.filter_map(Result::err) {
        println!("Not every library of another language is there. {error:#}");
    }
}

/// Installs the store that an example writes to, if that is possible.
///
/// The call reports if the store stays missing. That is no error: the tests do without.
pub(crate) fn run_stores() {
    if let Err(error) = provide(STORES) {
        println!("One example is not tested. {error:#}");
    }
}

fn provide(needs: &'static [Need]) -> anyhow::Result<()> {
    let missing = missing(needs)?;
    if missing.is_empty() {
        return Ok(());
    }
    let Some(privilege) = apt::privilege() else {
        bail!("{}", advice(&missing));
    };
    let packages = packages(&missing);
    println!(
        "Installing {} with apt-get{}: {}",
        names(&missing),
        if privilege == Privilege::Sudo {
            " (through sudo)"
        } else {
            ""
        },
        packages.join(" "),
    );
    apt::install(privilege, &packages)?;
    let missing = self::missing(needs)?;
    if !missing.is_empty() {
        bail!(
            "{} installed, and yet: {}",
            packages.join(" "),
            advice(&missing)
        );
    }
    Ok(())
}

fn missing(needs: &'static [Need]) -> anyhow::Result<Vec<&'static Need>> {
    let mut missing = Vec::new();
    for need in needs {
        if !(need.is_met)()? {
            missing.push(need);
        }
    }
    Ok(missing)
}

fn packages(missing: &[&Need]) -> Vec<&'static str> {
    missing
        .iter()
        .flat_map(|need| need.debian)
        .copied()
        .collect()
}

fn names(missing: &[&Need]) -> String {
    let names: Vec<&str> = missing.iter().map(|need| need.name).collect();
    names.join(" and ")
}

fn advice(missing: &[&Need]) -> String {
    let mut advice = format!("This machine lacks {}. To install:", names(missing));
    for need in missing {
        advice.push_str(&format!("\n{}", need.name));
        for (system, what) in need.advice {
            advice.push_str(&format!("\n  {system}: {what}"));
        }
    }
    advice
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_names_each_system_for_each_need() {
        let all: Vec<&Need> = [NEEDS, PEERS, STORES, PYTHON]
            .into_iter()
            .flatten()
            .collect();
        let advice = advice(&all);
        for need in &all {
            assert!(advice.contains(need.name), "{advice}");
        }
        for part in [
            "Debian",
            "Fedora",
            "macOS",
            "any system",
            "ZOOKEEPER_HOME",
            "JAVA_HOME",
            "CURATOR_CLASSPATH",
            "KAZOO_PYTHON",
            "POSTGRES_BIN",
        ] {
            assert!(advice.contains(part), "{part} in {advice}");
        }
    }

    #[test]
    fn only_what_is_missing_is_installed() {
        let server = NEEDS
            .iter()
            .filter(|need| need.name == "a ZooKeeper server");
        assert_eq!(packages(&server.collect::<Vec<_>>()), ["zookeeper"]);
        assert!(packages(&[]).is_empty());
    }
}
