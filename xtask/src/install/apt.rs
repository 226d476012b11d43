//! apt-get, run without questions.

use std::process::{Command, Stdio};

use super::programs::{in_path, succeeds};
use crate::cargo::{line, run as run_command};

/// The privilege that apt-get is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privilege {
    Root,
    Sudo,
}

/// How apt-get can be run on this machine without a question; `None` if it cannot.
pub(crate) fn privilege() -> Option<Privilege> {
    if !in_path("apt-get") {
        return None;
    }
    if is_root() {
        return Some(Privilege::Root);
    }
    let sudo = in_path("sudo") && succeeds(Command::new("sudo").args(["-n", "true"]));
    sudo.then_some(Privilege::Sudo)
}

#[cfg(unix)]
fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Installs packages.
pub(crate) fn install(privilege: Privilege, packages: &[&str]) -> anyhow::Result<()> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    // A fresh machine has no lists yet, and the lists of an old one name files that are gone.
    let has_lists = succeeds(
        Command::new("apt-get")
            .args(["install", "--simulate"])
            .args(packages),
    );
    if has_lists && run_command(&mut apt_get(privilege, &arguments)).is_ok() {
        return Ok(());
    }
    run_command(&mut apt_get(privilege, &["update"]))?;
    run_command(&mut apt_get(privilege, &arguments))
}

fn apt_get(privilege: Privilege, arguments: &[&str]) -> Command {
    let mut words = match privilege {
        Privilege::Root => vec!["env"],
        Privilege::Sudo => vec!["sudo", "-n", "env"],
    };
    words.extend(["DEBIAN_FRONTEND=noninteractive", "apt-get", "--quiet"]);
    words.extend(arguments);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).stdin(Stdio::null());
    println!("{}", line(&command));
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apt_get_never_asks() {
        let root = line(&apt_get(Privilege::Root, &["update"]));
        assert_eq!(
            root,
            "env DEBIAN_FRONTEND=noninteractive apt-get --quiet update"
        );
        let sudo = line(&apt_get(Privilege::Sudo, &["update"]));
        assert!(sudo.starts_with("sudo -n env "), "{sudo}");
    }
}
