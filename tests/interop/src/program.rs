//! Programs that use the libraries of other languages, if the machine has these.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use thiserror::Error;

/// A class path with Apache Curator's recipes, instead of Debian's.
const CURATOR_CLASSPATH: &str = "CURATOR_CLASSPATH";

/// A Python that has kazoo, instead of the one in the project's virtual environment.
const KAZOO_PYTHON: &str = "KAZOO_PYTHON";

/// Where Debian keeps Curator. Its manifest names the jars it needs.
const DEBIAN_CURATOR: &str = "/usr/share/java/curator-recipes.jar";

const CURATOR_ADVICE: &str = "`cargo xtask install` installs it on Debian and its kin \
    (libcurator-recipes-java, default-jdk-headless); elsewhere install a JDK and set \
    CURATOR_CLASSPATH to the jars of curator-recipes and what it depends on";

const KAZOO_ADVICE: &str = "`cargo xtask install` installs it, given a Python with venv and pip \
    (Debian: python3-venv); or set KAZOO_PYTHON to a Python that can import kazoo";

/// Why a program cannot be run.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// The machine lacks what it needs.
    #[error("no {what}: {advice}")]
    Missing { what: String, advice: &'static str },
    /// What is there does not work.
    #[error("{0}")]
    Broken(String),
}

/// A program in another language, ready to be run.
#[derive(Clone, Debug)]
pub struct Program {
    words: Vec<OsString>,
}

impl Program {
    /// The options with which Java starts soonest, and takes the least processor time.
    pub const QUICK_JAVA: [&str; 3] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx192m"];

    /// The program with Apache Curator, in a Java virtual machine with these options.
    ///
    /// It is compiled into the build directory, unless that has been done before.
    pub fn curator(target: &Path, options: &[&str]) -> Result<Program, ProgramError> {
        let class_path = match env::var_os(CURATOR_CLASSPATH) {
            Some(class_path) if !class_path.is_empty() => class_path,
            _ if Path::new(DEBIAN_CURATOR).exists() => {
                // Without a binding for its log, Curator says so each time.
                let silence = "/usr/share/java/slf4j-nop.jar";
                format!("{DEBIAN_CURATOR}:{silence}").into()
            }
            _ => {
                return Err(ProgramError::Missing {
                    what: "Apache Curator".to_owned(),
                    advice: CURATOR_ADVICE,
                });
            }
        };
        let jdk = |program: &str| match env::var_os("JAVA_HOME") {
            Some(home) if !home.is_empty() => Path::new(&home).join("bin").join(program),
            _ => PathBuf::from(program),
        };
        let classes = compiled(&jdk("javac"), &class_path, target)?;
        let class_path =
            env::join_paths([classes].into_iter().chain(env::split_paths(&class_path)))
                .map_err(|error| ProgramError::Broken(error.to_string()))?;
        let mut words: Vec<OsString> = vec![jdk("java").into()];
        words.extend(options.iter().map(OsString::from));
        words.extend(["-cp".into(), class_path, "Peer".into()]);
        Ok(Program { words })
    }

    pub fn kazoo(target: &Path) -> Result<Program, ProgramError> {
        Program::with_kazoo(&source("python/peer.py"), target)
    }

    /// This program in Python, in the virtual environment with kazoo that is kept in the build
    /// directory.
    pub fn with_kazoo(source: &Path, target: &Path) -> Result<Program, ProgramError> {
        let named = env::var_os(KAZOO_PYTHON).filter(|python| !python.is_empty());
        let python = match &named {
            Some(python) => PathBuf::from(python),
            None => target.join("kazoo/bin/python"),
        };
        let imports = Command::new(&python).args(["-c", "import kazoo"]).output();
        if imports.is_ok_and(|output| output.status.success()) {
            let words = vec![python.into(), source.into()];
            return Ok(Program { words });
        }
        Err(match named {
            // What someone asked for is never replaced in silence.
            Some(_) => ProgramError::Broken(format!(
                "{KAZOO_PYTHON} is {python:?}, which cannot import kazoo"
            )),
            None => ProgramError::Missing {
                what: "kazoo".to_owned(),
                advice: KAZOO_ADVICE,
            },
        })
    }

    /// A command that runs it, to which arguments can be added.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]);
        command
    }
}

/// The source of a program of this package.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Compiles the program in Java, unless that has been done, and says where to.
fn compiled(javac: &Path, class_path: &OsStr, target: &Path) -> Result<PathBuf, ProgramError> {
    let broken = |what: &str, error: std::io::Error| {
        ProgramError::Broken(format!("cannot compile the peer: {what}: {error}"))
    };
    let read = |error| broken("reading it", error);
    let mut sources = Vec::new();
    for file in fs::read_dir(source("java")).map_err(read)? {
        sources.push(file.map_err(read)?.path());
    }
    sources.sort();
    let mut hasher = DefaultHasher::new();
    class_path.hash(&mut hasher);
    for source in &sources {
        (source, fs::read(source).map_err(read)?).hash(&mut hasher);
    }
    let directory = target.join("java");
    let classes = directory.join(format!("{:016x}", hasher.finish()));
    if classes.exists() {
        return Ok(classes);
    }
    fs::create_dir_all(&directory).map_err(|error| broken("making a directory", error))?;
    let fresh =
        tempfile::tempdir_in(&directory).map_err(|error| broken("making a directory", error))?;
    let output = Command::new(javac)
        .arg("-cp")
        .arg(class_path)
        .arg("-d")
        .arg(fresh.path())
        .args(sources)
        .output()
        .map_err(|error| ProgramError::Missing {
            what: format!("Java compiler ({error})"),
            advice: CURATOR_ADVICE,
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(ProgramError::Broken(format!(
            "the peer does not compile with {class_path:?}: {said}"
        )));
    }
    // Another process may have been faster, and has compiled the same.
    match fs::rename(fresh.path(), &classes) {
        Err(error) if !classes.exists() => Err(broken("keeping the classes", error)),
        _ => Ok(classes),
    }
}
