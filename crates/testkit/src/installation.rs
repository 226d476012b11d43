//! Finding a ZooKeeper server and a Java to run it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What to install on which system, for messages to people.
const ADVICE: &str = "\
Debian, Ubuntu: apt-get install --no-install-recommends zookeeper default-jre-headless
Fedora:         dnf install java-latest-openjdk-headless, then as on any system
macOS:          brew install zookeeper
any system:     install a Java runtime, unpack a release from https://zookeeper.apache.org/releases.html
                and set ZOOKEEPER_HOME to its directory";

/// What to install for a compiler.
const COMPILER_ADVICE: &str = "\
Debian, Ubuntu: apt-get install --no-install-recommends default-jdk-headless
Fedora:         dnf install java-latest-openjdk-devel
any system:     install a JDK and set JAVA_HOME to its directory";

/// The server's jar in Debian and its derivatives. Its manifest names the jars that it needs.
const DEBIAN_SERVER: &str = "/usr/share/java/zookeeper.jar";

/// Without a binding to write its log through, the server says nothing when it fails.
const DEBIAN_LOGGING: &str = "/usr/share/java/slf4j-simple.jar";

/// What the manifest leaves out and a server needs for TLS.
const DEBIAN_NETTY: [&str; 2] = [
    "/usr/share/java/netty-codec.jar",
    "/usr/share/java/netty-resolver.jar",
];

/// Homebrew's directories for `ZOOKEEPER_HOME`.
const HOMEBREW_HOMES: [&str; 2] = [
    "/opt/homebrew/opt/zookeeper/libexec",
    "/usr/local/opt/zookeeper/libexec",
];

/// Why no server can be started on this machine.
///
/// The message says what to install on which system.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InstallationError {
    /// No ZooKeeper server was found.
    #[error(
        "no ZooKeeper server found: neither ZOOKEEPER_CLASSPATH nor ZOOKEEPER_HOME is set, \
         and there is no {DEBIAN_SERVER}\n{ADVICE}"
    )]
    NoServer,

    /// No Java runtime was found.
    #[error("no Java runtime found: JAVA_HOME is not set, and there is no java in PATH\n{ADVICE}")]
    NoJava,

    /// The Java runtime has no compiler, which only few things need.
    #[error("the Java runtime has no compiler; install a JDK\n{COMPILER_ADVICE}")]
    NoCompiler,

    /// An environment variable names a place without a server or a Java runtime.
    #[error("{variable} is set to {value:?}, but {problem}")]
    Misleading {
        /// The variable's name.
        variable: &'static str,
        /// Its value.
        value: OsString,
        /// What is missing there.
        problem: &'static str,
    },
}

/// A ZooKeeper server and a Java runtime on this machine.
///
/// # Examples
///
/// ```
/// # fn main() -> Result<(), zookeeper_recipes_testkit::InstallationError> {
/// use zookeeper_recipes_testkit::Installation;
///
/// let installation = Installation::find()?;
/// assert!(installation.java().exists());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    java: PathBuf,
    class_path: OsString,
}

impl Installation {
    /// Finds a server and a Java runtime: see [`find_class_path`](Self::find_class_path) and
    /// [`find_java`](Self::find_java).
    ///
    /// # Errors
    ///
    /// [`InstallationError`], whose message says what to install on which system.
    pub fn find() -> Result<Self, InstallationError> {
        Ok(Self {
            class_path: Self::find_class_path()?,
            java: Self::find_java()?,
        })
    }

    /// An installation in any other place.
    pub fn new(java: impl Into<PathBuf>, class_path: impl Into<OsString>) -> Self {
        Self {
            java: java.into(),
            class_path: class_path.into(),
        }
    }

    /// Finds the class path of a server: `ZOOKEEPER_CLASSPATH` as it is; else the jars of
    /// `ZOOKEEPER_HOME` and of its `lib`; else Debian's `zookeeper.jar`; else Homebrew's package.
    ///
    /// # Errors
    ///
    /// [`InstallationError::NoServer`], or [`InstallationError::Misleading`] when one of the
    /// variables is set and nothing is there. A wrong variable is an error, and not ignored.
    pub fn find_class_path() -> Result<OsString, InstallationError> {
        class_path(|variable| env::var_os(variable), Path::new("/"))
    }

    /// Finds a Java runtime: `bin/java` of `JAVA_HOME`, else `java` in `PATH`.
    ///
    /// # Errors
    ///
    /// [`InstallationError::NoJava`], or [`InstallationError::Misleading`] when `JAVA_HOME` is set
    /// and has no Java.
    pub fn find_java() -> Result<PathBuf, InstallationError> {
        java(|variable| env::var_os(variable))
    }

    /// The `java` program.
    pub fn java(&self) -> &Path {
        &self.java
    }

    /// Whether the Java runtime has the compiler, as a JDK's has. Runs it, for a fraction of a
    /// second.
    pub fn has_compiler(&self) -> bool {
        // This fails before Java 9, which could not run a program from its source either.
        let modules = Command::new(&self.java).arg("--list-modules").output();
        modules.is_ok_and(|output| {
            let modules = String::from_utf8_lossy(&output.stdout);
            modules.lines().any(|line| line.starts_with("jdk.compiler"))
        })
    }

    /// The class path with the server's main class, in the form `java -cp` takes.
    pub fn class_path(&self) -> &OsStr {
        &self.class_path
    }
}

fn set(environment: &impl Fn(&str) -> Option<OsString>, variable: &str) -> Option<OsString> {
    environment(variable).filter(|value| !value.is_empty())
}

fn class_path(
    environment: impl Fn(&str) -> Option<OsString>,
    root: &Path,
) -> Result<OsString, InstallationError> {
    if let Some(value) = set(&environment, "ZOOKEEPER_CLASSPATH") {
        let exists = env::split_paths(&value).any(|entry| {
            // Java expands `directory/*` itself.
            let entry = match entry.file_name() {
                Some(name) if name == "*" => entry.parent().map(Path::to_path_buf),
                _ => Some(entry),
            };
            entry.is_some_and(|entry| entry.exists())
        });
        if exists {
            return Ok(value);
        }
        return Err(InstallationError::Misleading {
            variable: "ZOOKEEPER_CLASSPATH",
            value,
            problem: "none of its entries exists",
        });
    }
    if let Some(value) = set(&environment, "ZOOKEEPER_HOME") {
        return home_class_path(Path::new(&value)).ok_or(InstallationError::Misleading {
            variable: "ZOOKEEPER_HOME",
            value,
            problem: "neither it nor its lib holds a zookeeper jar",
        });
    }
    let under_root = |path: &str| root.join(path.trim_start_matches('/'));
    let debian = under_root(DEBIAN_SERVER);
    if debian.exists() {
        let optional = [DEBIAN_LOGGING, DEBIAN_NETTY[0], DEBIAN_NETTY[1]].map(under_root);
        let optional = optional.into_iter().filter(|jar| jar.exists());
        let jars = std::iter::once(debian).chain(optional);
        return env::join_paths(jars).map_err(|_| InstallationError::NoServer);
    }
    HOMEBREW_HOMES
        .iter()
        .find_map(|home| home_class_path(&under_root(home)))
        .ok_or(InstallationError::NoServer)
}

fn home_class_path(home: &Path) -> Option<OsString> {
    let mut jars: Vec<PathBuf> = [home.to_path_buf(), home.join("lib")]
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "jar"))
        .collect();
    jars.sort();
    let has_server = jars.iter().any(|jar| {
        jar.file_name()
            .and_then(OsStr::to_str)
            .and_then(|name| name.strip_prefix("zookeeper"))
            .is_some_and(|rest| {
                rest == ".jar"
                    || rest.strip_prefix('-').is_some_and(|version| {
                        version.starts_with(|first: char| first.is_ascii_digit())
                    })
            })
    });
    if !has_server {
        return None;
    }
    env::join_paths(jars).ok()
}

fn java(environment: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, InstallationError> {
    if let Some(value) = set(&environment, "JAVA_HOME") {
        let java = Path::new(&value).join("bin/java");
        if java.is_file() {
            return Ok(java);
        }
        return Err(InstallationError::Misleading {
            variable: "JAVA_HOME",
            value,
            problem: "it has no bin/java",
        });
    }
    set(&environment, "PATH")
        .iter()
        .flat_map(env::split_paths)
        .map(|directory| directory.join("java"))
        .find(|java| java.is_file())
        .ok_or(InstallationError::NoJava)
}

#[cfg(test)]
#[path = "../tests/unit/installation.rs"]
mod tests;
