//! `cargo xtask install`: what the other tasks need on this machine, installed where it can be.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::bail;
use zookeeper_recipes_testkit::{Installation, InstallationError};

use crate::cargo::{line, run as run_command};
use crate::kazoo;

/// Something that has to be on the machine.
struct Need {
    name: &'static str,
    /// Whether it is there; an error when somebody asked for one that is not.
    is_met: fn() -> anyhow::Result<bool>,
    /// The packages that bring it on Debian and its kin.
    debian: &'static [&'static str],
    /// What to do about it, by system, where it cannot be installed from here.
    advice: &'static [(&'static str, &'static str)],
}

/// What the tests need.
const NEEDS: &[Need] = &[
    Need {
        name: "a Java runtime",
        is_met: has_java,
        debian: &["default-jre-headless"],
        advice: &[
            (
                "Debian, Ubuntu",
                "apt-get install --no-install-recommends default-jre-headless",
            ),
            ("Fedora", "dnf install java-latest-openjdk-headless"),
            (
                "macOS",
                "brew install openjdk, and set JAVA_HOME to $(brew --prefix openjdk)",
            ),
            (
                "any system",
                "install a Java runtime and set JAVA_HOME to its directory",
            ),
        ],
    },
    Need {
        name: "a ZooKeeper server",
        is_met: has_server,
        // This one has the server and starts none: the service is in another, zookeeperd.
        debian: &["zookeeper"],
        advice: &[
            (
                "Debian, Ubuntu",
                "apt-get install --no-install-recommends zookeeper",
            ),
            ("macOS", "brew install zookeeper"),
            (
                "Fedora, any system",
                "unpack a release from https://zookeeper.apache.org/releases.html \
                 and set ZOOKEEPER_HOME to its directory",
            ),
        ],
    },
];

/// What the interoperability tests and the bench of the peers need besides. Without it the tests
/// say that they did not run, and the bench what it has left out.
const PEERS: &[Need] = &[
    Need {
        name: "a Java compiler",
        is_met: has_compiler,
        debian: &["default-jdk-headless"],
        advice: &[
            (
                "Debian, Ubuntu",
                "apt-get install --no-install-recommends default-jdk-headless",
            ),
            ("Fedora", "dnf install java-latest-openjdk-devel"),
            (
                "macOS, any system",
                "install a JDK and set JAVA_HOME to its directory",
            ),
        ],
    },
    Need {
        name: "Apache Curator",
        is_met: has_curator,
        debian: &["libcurator-recipes-java", "libslf4j-java"],
        advice: &[
            (
                "Debian, Ubuntu",
                "apt-get install --no-install-recommends libcurator-recipes-java",
            ),
            (
                "any system",
                "set CURATOR_CLASSPATH to the jars of curator-recipes and of what it depends on",
            ),
        ],
    },
    Need {
        name: "a Python with venv and pip",
        is_met: has_python,
        debian: &["python3-venv"],
        advice: &[
            (
                "Debian, Ubuntu",
                "apt-get install --no-install-recommends python3-venv",
            ),
            ("Fedora", "dnf install python3-pip"),
            ("macOS", "brew install python"),
            (
                "any system",
                "set KAZOO_PYTHON to a Python that can import kazoo",
            ),
        ],
    },
];

fn has_compiler() -> anyhow::Result<bool> {
    Ok(match env::var_os("JAVA_HOME") {
        Some(home) if !home.is_empty() => Path::new(&home).join("bin/javac").is_file(),
        _ => in_path("javac"),
    })
}

fn has_curator() -> anyhow::Result<bool> {
    let named = env::var_os("CURATOR_CLASSPATH").is_some_and(|value| !value.is_empty());
    Ok(named || Path::new("/usr/share/java/curator-recipes.jar").exists())
}

fn has_python() -> anyhow::Result<bool> {
    let named = env::var_os("KAZOO_PYTHON").is_some_and(|value| !value.is_empty());
    Ok(named || succeeds(Command::new("python3").args(["-c", "import venv, ensurepip"])))
}

fn has_java() -> anyhow::Result<bool> {
    match Installation::find_java() {
        Ok(_) => Ok(true),
        Err(InstallationError::NoJava) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn has_server() -> anyhow::Result<bool> {
    match Installation::find_class_path() {
        Ok(_) => Ok(true),
        Err(InstallationError::NoServer) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Installs what is missing, saying so; or says what to install on which system. In silence when
/// all is there.
pub(crate) fn run() -> anyhow::Result<()> {
    provide(NEEDS)
}

/// Installs what is missing of what the libraries of other languages need, each as far as it can
/// be; says what stays missing, which is no error: what uses them knows whether it can do without.
pub(crate) fn run_peers() {
    let provided = PEERS
        .iter()
        .map(|need| provide(std::slice::from_ref(need)))
        .chain(std::iter::once_with(kazoo::install));
    for error in provided.filter_map(Result::err) {
        println!("Not every library of another language is there. {error:#}");
    }
}

fn provide(needs: &'static [Need]) -> anyhow::Result<()> {
    let missing = missing(needs)?;
    if missing.is_empty() {
        return Ok(());
    }
    let Some(privilege) = apt_privilege() else {
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
    install(privilege, &packages)?;
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

/// What apt-get is run with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privilege {
    Root,
    Sudo,
}

/// How apt-get can be run here without asking anybody; `None` when it cannot.
fn apt_privilege() -> Option<Privilege> {
    if !in_path("apt-get") {
        return None;
    }
    if rustix::process::geteuid().is_root() {
        return Some(Privilege::Root);
    }
    let sudo = in_path("sudo") && succeeds(Command::new("sudo").args(["-n", "true"]));
    sudo.then_some(Privilege::Sudo)
}

fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn install(privilege: Privilege, packages: &[&str]) -> anyhow::Result<()> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    // On a fresh machine apt has no lists yet, and on an old one they name files that are gone.
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
    fn advice_names_each_system_for_each_need() {
        let all: Vec<&Need> = NEEDS.iter().chain(PEERS).collect();
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
