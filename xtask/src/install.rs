//! `cargo xtask install`: installs the programs that the other tasks need.

mod needs;

use std::process::{Command, Stdio};

use anyhow::{bail, ensure};

use self::needs::{NEEDS, Need, PAGE, PEERS, PYTHON, STORES, in_path, succeeds};
use crate::cargo::{line, run as run_command};
use crate::kazoo;

/// Installs the server and the Java runtime if they are missing, and says so.
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

/// Installs a browser and Prometheus's checks, if they are missing.
pub(crate) fn run_page() -> anyhow::Result<()> {
    provide(PAGE)
}

fn provide(needs: &'static [Need]) -> anyhow::Result<()> {
    let missing: Vec<&Need> = needs.iter().filter(|need| !(need.is_met)()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages = missing.iter().flat_map(|need| need.debian);
    let packages: Vec<&str> = packages.copied().collect();
    ensure!(apt_install(&packages)?, "{}", advice(&missing));
    if let Some(need) = missing.iter().find(|need| !(need.is_met)()) {
        bail!("{packages:?} installed, and yet: {}", advice(&[need]));
    }
    Ok(())
}

fn advice(missing: &[&Need]) -> String {
    let mut advice = "This machine lacks programs. To install:".to_owned();
    for need in missing {
        let apt = need.debian.join(" ");
        advice += &format!("\n{}\n  Debian, Ubuntu: apt-get install {apt}", need.name);
        for (system, what) in need.advice {
            advice += &format!("\n  {system}: {what}");
        }
    }
    advice
}

/// Installs packages, without a question. False if this process may not, or there is no apt-get.
fn apt_install(packages: &[&str]) -> anyhow::Result<bool> {
    let is_root = succeeds(Command::new("sh").args(["-c", "[ $(id -u) = 0 ]"]));
    if !in_path("apt-get") || !(is_root || succeeds(Command::new("sudo").args(["-n", "true"]))) {
        return Ok(false);
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = match is_root {
            true => Command::new("env"),
            false => Command::new("sudo"),
        };
        command.args(if is_root { &[][..] } else { &["-n", "env"] });
        command.args(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]);
        command.args(arguments).stdin(Stdio::null());
        println!("{}", line(&command));
        run_command(&mut command)
    };
    let install = [&["install", "--yes", "--no-install-recommends"], packages].concat();
    // A fresh machine has no lists yet, and the lists of an old one name files that are gone.
    let mut simulated = Command::new("apt-get");
    let has_lists = succeeds(simulated.args(["install", "--simulate"]).args(packages));
    if !has_lists || apt_get(&install).is_err() {
        apt_get(&["update"])?;
        apt_get(&install)?;
    }
    Ok(true)
}
