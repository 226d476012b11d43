//! The libraries of other languages, where the machine has them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use zookeeper_recipes_fleet::can_run;

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

/// A library of another language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Curator,
    Kazoo,
}

impl Peer {
    /// The command that runs its contenders, or why there is none.
    fn command(self) -> &'static Result<Vec<OsString>, String> {
        static CURATOR: OnceLock<Result<Vec<OsString>, String>> = OnceLock::new();
        static KAZOO: OnceLock<Result<Vec<OsString>, String>> = OnceLock::new();
        match self {
            Peer::Curator => CURATOR.get_or_init(curator),
            Peer::Kazoo => KAZOO.get_or_init(kazoo),
        }
    }

    pub(crate) fn run(self) -> Command {
        let words = self
            .command()
            .as_ref()
            .expect("only asked for where it is available");
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command
    }
}

/// Whether Curator's downgraded readers keep the writer's place, as from 5.5.0 on.
pub(crate) fn curator_keeps_place_on_downgrade() -> bool {
    let output = Peer::Curator.run().arg("keeps-place-on-downgrade").output();
    let output = output.expect("Curator's contender runs");
    match String::from_utf8_lossy(&output.stdout).trim() {
        "true" => true,
        "false" => false,
        _ => panic!("no answer: {}", String::from_utf8_lossy(&output.stderr)),
    }
}

/// Whether the suite can run. It says so, for `cargo xtask test` to repeat at the end; where `CI`
/// is set to `true`, a suite that cannot run is a failure.
pub(crate) fn available(suite: &str, peers: &[Peer]) -> bool {
    let missing: Vec<String> = peers
        .iter()
        .filter_map(|peer| peer.command().as_ref().err())
        .cloned()
        .collect();
    can_run(&format!("mixed fleets, {suite}"), &missing)
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn curator() -> Result<Vec<OsString>, String> {
    let class_path = match env::var_os(CURATOR_CLASSPATH) {
        Some(class_path) if !class_path.is_empty() => class_path,
        _ if Path::new(DEBIAN_CURATOR).exists() => {
            // Without a binding for its log, it says so each time.
            let silence = "/usr/share/java/slf4j-nop.jar";
            format!("{DEBIAN_CURATOR}:{silence}").into()
        }
        _ => return Err(format!("no Apache Curator: {CURATOR_ADVICE}")),
    };
    let jdk = |program: &str| match env::var_os("JAVA_HOME") {
        Some(home) if !home.is_empty() => Path::new(&home).join("bin").join(program),
        _ => PathBuf::from(program),
    };
    let classes = compiled(&jdk("javac"), &class_path)
        .map_err(|error| format!("no Java compiler ({error}): {CURATOR_ADVICE}"))?;
    let class_path = env::join_paths([classes].into_iter().chain(env::split_paths(&class_path)))
        .map_err(|error| error.to_string())?;
    Ok(vec![
        jdk("java").into(),
        // Starts soonest, and takes the least of the processors.
        "-XX:TieredStopAtLevel=1".into(),
        "-XX:+UseSerialGC".into(),
        "-Xmx192m".into(),
        "-cp".into(),
        class_path,
        "Contender".into(),
    ])
}

/// Compiles the contender in Java, unless that has been done, and says where to.
fn compiled(javac: &Path, class_path: &OsStr) -> io::Result<PathBuf> {
    let source = package().join("java/Contender.java");
    let mut hasher = DefaultHasher::new();
    (fs::read(&source)?, class_path).hash(&mut hasher);
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let classes = directory.join(format!("contender-{:016x}", hasher.finish()));
    if classes.exists() {
        return Ok(classes);
    }
    let fresh = tempfile::tempdir_in(directory)?;
    let output = Command::new(javac)
        .arg("-cp")
        .arg(class_path)
        .arg("-d")
        .arg(fresh.path())
        .arg(source)
        .output()?;
    assert!(
        output.status.success(),
        "the contender in Java does not compile with {class_path:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    // Another run of the tests may have been faster, and has compiled the same.
    match fs::rename(fresh.path(), &classes) {
        Err(error) if !classes.exists() => Err(error),
        _ => Ok(classes),
    }
}

fn kazoo() -> Result<Vec<OsString>, String> {
    let named = env::var_os(KAZOO_PYTHON).filter(|python| !python.is_empty());
    let python = match &named {
        Some(python) => PathBuf::from(python),
        None => Path::new(env!("CARGO_TARGET_TMPDIR")).join("../kazoo/bin/python"),
    };
    let imports = Command::new(&python).args(["-c", "import kazoo"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        // What someone asked for is never replaced in silence.
        assert!(
            named.is_none(),
            "{KAZOO_PYTHON} is {python:?}, which cannot import kazoo"
        );
        return Err(format!("no kazoo: {KAZOO_ADVICE}"));
    }
    Ok(vec![
        python.into(),
        package().join("python/contender.py").into(),
    ])
}
