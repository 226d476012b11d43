//! A PostgreSQL server of this process, for the examples that write to one.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;

/// Starts a server, says so, and stops it when the standard input ends.
///
/// The input ends with this process, however that ends.
const SCRIPT: &str = r#"
set -e
"$1/initdb" --pgdata data --username postgres --auth trust --no-sync --no-instructions \
    --encoding UTF8 --locale C > log 2>&1
"$1/pg_ctl" --pgdata data --wait --log log --options \
    "-c listen_addresses='' -c unix_socket_directories='$PWD' -c fsync=off" start >> log 2>&1
echo started
cat > /dev/null
"$1/pg_ctl" --pgdata data --mode immediate stop >> log 2>&1
"#;

/// The user that runs the server if this process is root's: PostgreSQL refuses to run as root.
const NOBODY: &str = "nobody";

/// A PostgreSQL server in a directory of its own, which is gone with this value.
///
/// It listens on a socket in that directory, and on no port.
#[derive(Debug)]
pub struct Postgres {
    shell: Child,
    directory: TempDir,
}

impl Postgres {
    /// Creates an empty database, and starts a server of it.
    pub fn start() -> anyhow::Result<Postgres> {
        let programs = programs()?;
        let directory = TempDir::new().context("no temporary directory")?;
        let mut shell = Command::new("sh");
        shell.args(["-c", SCRIPT, "sh"]).arg(&programs);
        shell.current_dir(directory.path());
        if rustix::process::geteuid().is_root() {
            let (user, group) = (id("-u")?, id("-g")?);
            chown(directory.path(), Some(user), Some(group))?;
            shell.uid(user).gid(group);
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut shell = shell.spawn().context("no shell")?;
        let mut said = String::new();
        let output = shell.stdout.take().context("it has no output")?;
        let read = BufReader::new(output).read_line(&mut said);
        let postgres = Postgres { shell, directory };
        read.context("the shell has ended")?;
        if said.trim() != "started" {
            let log = fs::read_to_string(postgres.directory.path().join("log"));
            bail!("no PostgreSQL server starts: {}", log.unwrap_or_default());
        }
        Ok(postgres)
    }

    /// The directory of the server's socket, by which [`Client`]s in any process find it.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The shell stops the server then. If it fails to, nobody is there to handle the error.
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// A client of a [`Postgres`], by the program `psql`.
///
/// A service uses a driver, such as the crate `tokio-postgres`, with the same statements.
#[derive(Debug)]
pub struct Client {
    psql: PathBuf,
    directory: PathBuf,
}

impl Client {
    /// A client of the server whose socket is in this directory. The call connects to nothing.
    pub fn new(directory: impl Into<PathBuf>) -> anyhow::Result<Client> {
        Ok(Client {
            psql: programs()?.join("psql"),
            directory: directory.into(),
        })
    }

    /// Runs statements, each a transaction of its own, and returns what `psql` prints.
    ///
    /// `psql` prints the rows that a statement returns, and for a write how many rows it changed:
    /// `UPDATE 1`. In a statement, `:name` is the value of that variable, and `:'name'` is the value
    /// as a text.
    pub fn run(&self, statements: &str, variables: &[(&str, &str)]) -> anyhow::Result<String> {
        let mut psql = self.start(variables)?;
        let mut input = psql.stdin.take().context("it has no input")?;
        input.write_all(statements.as_bytes())?;
        drop(input);
        let output = psql.wait_with_output()?;
        ensure!(output.status.success(), "psql: {}", output.status);
        Ok(String::from_utf8(output.stdout)?.trim_end().to_owned())
    }

    /// Begins a transaction with these statements, and returns it with what `psql` prints.
    pub fn begin(
        &self,
        statements: &str,
        variables: &[(&str, &str)],
    ) -> anyhow::Result<(Transaction, String)> {
        let mut psql = self.start(variables)?;
        let mut input = psql.stdin.take().context("it has no input")?;
        let output = psql.stdout.take().context("it has no output")?;
        write!(input, "BEGIN;\n{statements};\n\\echo {BEGUN}\n")?;
        let mut transaction = Transaction {
            psql,
            input,
            output: BufReader::new(output),
        };
        let printed = transaction.printed()?;
        Ok((transaction, printed))
    }

    fn start(&self, variables: &[(&str, &str)]) -> anyhow::Result<Child> {
        let mut psql = Command::new(&self.psql);
        psql.args(["--no-psqlrc", "--no-align", "--tuples-only"]);
        psql.args(["--username", "postgres", "--variable", "ON_ERROR_STOP=1"]);
        psql.arg("--host").arg(&self.directory);
        for (name, value) in variables {
            psql.arg("--variable").arg(format!("{name}={value}"));
        }
        psql.stdin(Stdio::piped()).stdout(Stdio::piped());
        psql.spawn().context("psql does not start")
    }
}

/// A transaction of a [`Client`] that is not committed yet. A drop rolls it back.
#[derive(Debug)]
pub struct Transaction {
    psql: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Transaction {
    /// Commits the transaction.
    pub fn commit(mut self) -> anyhow::Result<()> {
        self.input.write_all(b"COMMIT;\n")?;
        drop(self.input);
        let mut printed = String::new();
        self.output.read_to_string(&mut printed)?;
        let status = self.psql.wait()?;
        ensure!(
            status.success() && printed.trim() == "COMMIT",
            "not committed: {printed}"
        );
        Ok(())
    }

    /// What `psql` prints until the mark.
    fn printed(&mut self) -> anyhow::Result<String> {
        let mut printed = String::new();
        loop {
            let start = printed.len();
            if self.output.read_line(&mut printed)? == 0 {
                bail!("psql has ended: {}", self.psql.wait()?);
            }
            if printed[start..].trim() == BEGUN {
                printed.truncate(start);
                return Ok(printed.trim().trim_start_matches("BEGIN").trim().to_owned());
            }
        }
    }
}

/// What marks the end of the statements that begin a transaction.
const BEGUN: &str = "the transaction has begun";

/// Why no server can be started here. `None` if this machine has PostgreSQL.
pub fn missing() -> Option<anyhow::Error> {
    programs().err()
}

/// The directory of PostgreSQL's programs.
fn programs() -> anyhow::Result<PathBuf> {
    if let Some(named) = std::env::var_os("POSTGRES_BIN") {
        return Ok(named.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    // Debian and its derivatives have a directory for each version, and do not put it into PATH.
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    directories.extend(versions);
    let has_all = |directory: &PathBuf| {
        let programs = ["initdb", "pg_ctl", "psql"];
        programs.iter().all(|it| directory.join(it).is_file())
    };
    let found = directories.into_iter().find(has_all);
    found.context("no PostgreSQL is installed: on Debian, `apt-get install postgresql`")
}

/// The number of the user nobody, or of its group.
fn id(which: &str) -> anyhow::Result<u32> {
    let output = Command::new("id").args([which, NOBODY]).output()?;
    let number = String::from_utf8(output.stdout)?;
    number
        .trim()
        .parse()
        .with_context(|| format!("there is no user {NOBODY}"))
}
