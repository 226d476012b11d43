//! Running `zkr`, and looking at what it does.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use futures_util::future::join_all;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::signal::unix::{SignalKind, signal};
use zookeeper_client::{Acls, Client, CreateMode};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_suite::{create, eventually, in_time};

/// Lets programs that this process starts begin with the default action of each signal.
///
/// If `nohup` or a shell's `&` starts the tests, SIGHUP or SIGINT is ignored in all programs below.
/// A signal that a process handles has its default action in the programs that the process starts.
fn restore_signals() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let bits = line.map(|bits| u64::from_str_radix(bits.trim(), 16).expect("a number"));
    for number in [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM].map(Signal::as_raw) {
        if bits.unwrap_or_default() >> (number - 1) & 1 == 1 {
            drop(signal(SignalKind::from_raw(number)).expect("it can be handled"));
        }
    }
}

/// The program under test, which connects to these servers.
pub(crate) fn zkr(connect: &str) -> Command {
    restore_signals();
    let mut command = Command::new(env!("CARGO_BIN_EXE_zkr"));
    for option in [
        "CREDENTIALS",
        "SESSION_TIMEOUT",
        "TICK",
        "TLS",
        "CA",
        "CERT",
        "KEY",
    ] {
        command.env_remove(format!("ZKR_{option}"));
    }
    command
        .env("ZOOKEEPER_CONNECT", connect)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// How the warning of a session that tolerates a short silence only begins.
pub(crate) const SHORT_SESSION: &str = "zkr: warning: a silence of the servers of";

/// Arguments of `zkr`: a text of words, a list, or both. An argument in a list may have spaces.
pub(crate) trait Arguments {
    fn list(&self) -> Vec<&str>;
}

impl Arguments for str {
    fn list(&self) -> Vec<&str> {
        self.split_whitespace().collect()
    }
}

impl Arguments for String {
    fn list(&self) -> Vec<&str> {
        self.as_str().list()
    }
}

impl Arguments for [&str] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl<const N: usize> Arguments for [&str; N] {
    fn list(&self) -> Vec<&str> {
        self.to_vec()
    }
}

impl Arguments for Vec<&str> {
    fn list(&self) -> Vec<&str> {
        self.clone()
    }
}

impl<P: AsRef<str>, S: AsRef<str>, const N: usize> Arguments for (P, [S; N]) {
    fn list(&self) -> Vec<&str> {
        let mut list = self.0.as_ref().list();
        list.extend(self.1.iter().map(AsRef::as_ref));
        list
    }
}

impl<A: Arguments + ?Sized> Arguments for &A {
    fn list(&self) -> Vec<&str> {
        (**self).list()
    }
}

pub(crate) fn start(connect: &str, arguments: impl Arguments) -> Child {
    start_in([], connect, arguments)
}

/// Starts `zkr` with these variables and arguments.
pub(crate) fn start_in<const N: usize>(
    variables: [(&str, &str); N],
    connect: &str,
    arguments: impl Arguments,
) -> Child {
    let mut command = zkr(connect);
    let command = command.envs(variables).args(arguments.list());
    command.spawn().expect("zkr starts")
}

/// Runs `zkr` with these arguments until it has ended.
pub(crate) async fn run(connect: &str, arguments: impl Arguments) -> Ended {
    ended(start(connect, arguments)).await
}

/// The lines that a child prints.
pub(crate) struct Printed(Lines<BufReader<ChildStdout>>);

impl Printed {
    pub(crate) fn by(child: &mut Child) -> Printed {
        Printed(BufReader::new(child.stdout.take().expect("a pipe")).lines())
    }

    pub(crate) async fn next(&mut self) -> String {
        let line = in_time("a line", self.0.next_line()).await;
        line.expect("it is read").expect("another line")
    }

    pub(crate) async fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next().await).expect("JSON")
    }
}

/// Waits until `zkr` has ended.
pub(crate) async fn ended(child: Child) -> Ended {
    let output = in_time("zkr ends", child.wait_with_output()).await;
    Ended::new(output.expect("zkr can be awaited"))
}

/// What a `zkr` that has ended left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    fn new(output: Output) -> Ended {
        let text = |bytes| String::from_utf8(bytes).expect("it prints text");
        let stderr = text(output.stderr);
        // Most sessions of these tests are short. One test is about this warning.
        let is_other = |line: &&str| !line.starts_with(SHORT_SESSION);
        Ended {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: stderr.split_inclusive('\n').filter(is_other).collect(),
        }
    }

    /// It ended well, and printed this.
    #[track_caller]
    pub(crate) fn printed(&self, text: &str) {
        assert_eq!((self.code, &*self.stdout), (Some(0), text), "{self:?}");
    }

    /// It ended with this code, and had nothing to say about it.
    #[track_caller]
    pub(crate) fn quiet(&self, code: i32) {
        assert_eq!((self.code, &*self.stderr), (Some(code), ""), "{self:?}");
    }

    #[track_caller]
    pub(crate) fn begins(&self, text: &str) {
        assert!(self.stdout.starts_with(text), "{text:?}: {self:?}");
    }

    #[track_caller]
    pub(crate) fn shows<const N: usize>(&self, parts: [&str; N]) {
        contains(&self.stdout, parts);
    }

    #[track_caller]
    pub(crate) fn coded(&self, code: i32) {
        assert_eq!(self.code, Some(code), "{self:?}");
    }

    /// What it printed for programs.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// It failed with this code, and with one line that has these parts.
    #[track_caller]
    pub(crate) fn refused<const N: usize>(&self, code: i32, parts: [&str; N]) {
        contains(self.failed_with(code), parts);
    }

    /// The one line that says why `zkr` failed with this code.
    #[track_caller]
    pub(crate) fn failed_with(&self, code: i32) -> &str {
        assert_eq!(self.code, Some(code), "{self:?}");
        assert_eq!(self.stderr.lines().count(), 1, "{self:?}");
        let line = self.stderr.trim_end().strip_prefix("zkr: ");
        line.unwrap_or_else(|| panic!("{self:?}"))
    }
}

/// The text has these parts.
#[track_caller]
pub(crate) fn contains<const N: usize>(text: &str, parts: [&str; N]) {
    for part in parts {
        assert!(text.contains(part), "{part:?}: {text}");
    }
}

/// An embedded server, and a directory for the files of commands.
pub(crate) struct Stage {
    pub(crate) server: EmbeddedServer,
    pub(crate) connect: String,
    files: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let server = EmbeddedServer::start().expect("a server starts");
        Stage {
            connect: server.connect_string(),
            server,
            files: files(),
        }
    }

    /// The path of a file that a command may write.
    ///
    /// The text is never freed: the process of the tests ends soon.
    pub(crate) fn file(&self, name: &str) -> &'static str {
        self.files.path().join(name).display().to_string().leak()
    }

    pub(crate) fn files(&self) -> &Path {
        self.files.path()
    }

    pub(crate) async fn run(&self, arguments: impl Arguments) -> Ended {
        run(&self.connect, arguments).await
    }

    pub(crate) fn start(&self, arguments: impl Arguments) -> Child {
        start(&self.connect, arguments)
    }

    /// Starts a `zkr` that holds the lock at this path for long, and waits until it is in the
    /// queue.
    pub(crate) async fn holder(&self, path: &str) -> Child {
        let holder = self.start(("lock --session-timeout 2s", [path, "--", "sleep", "60"]));
        self.queue(path, 1).await;
        holder
    }

    /// Starts a `zkr serve` that looks at this interval, and returns where it listens.
    pub(crate) async fn serve(&self, interval: &str, options: &str) -> (Child, String) {
        let arguments = format!("serve --listen 127.0.0.1:0 --interval {interval} {options}");
        let mut child = self.start(arguments);
        let line = Printed::by(&mut child).next().await;
        let address = line.strip_prefix("http://").expect("an address");
        let (address, _) = address.split_once('/').expect("its end");
        (child, address.to_owned())
    }

    pub(crate) fn contenders(&self, directory: &str) -> Vec<String> {
        self.server.administrator().children(directory)
    }

    /// Waits until so many contenders are in a directory.
    pub(crate) async fn queue(&self, directory: &str, length: usize) {
        let what = format!("{length} contenders are in {directory}");
        eventually(&what, async || self.contenders(directory).len() == length).await;
    }
}

/// The unique part of a contender's name, in Curator's form.
pub(crate) const CURATOR: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-";

/// The same in kazoo's form.
pub(crate) const KAZOO: &str = "0123456789abcdef0123456789abcdef";

/// Adds a contender for a lock as Curator does.
pub(crate) async fn queue(client: &Client, directory: &str, owner: &str) {
    queue_as(client, directory, &format!("{CURATOR}lock-"), owner).await;
}

/// Adds a contender as a client in any language does.
pub(crate) async fn queue_as(
    client: &Client,
    directory: &str,
    prefix: &str,
    data: impl AsRef<[u8]>,
) {
    let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    let path = format!("{directory}/{prefix}");
    let created = client.create(&path, data.as_ref(), &options).await;
    created.expect("a contender queues");
}

/// Some clients, and these directories.
pub(crate) async fn clients<const N: usize>(stage: &Stage, directories: &[&str]) -> [Client; N] {
    let connect = async |_| Client::connect(&stage.connect).await.expect("it connects");
    let clients = join_all((0..N).map(connect)).await;
    for directory in directories {
        create(&clients[0], directory).await;
    }
    clients.try_into().expect("so many")
}

/// Sets the mode of a file of the test.
pub(crate) fn restrict(file: impl AsRef<Path>, mode: u32) {
    let permissions = Permissions::from_mode(mode);
    std::fs::set_permissions(file, permissions).expect("it is ours");
}

pub(crate) fn files() -> TempDir {
    TempDir::new().expect("a directory can be created")
}

/// Waits until a command has written a whole line to a file, and returns the file's text.
pub(crate) async fn line_in(file: impl AsRef<Path>) -> String {
    let file = file.as_ref();
    let what = format!("a line is in {file:?}");
    eventually(&what, async || read(file).ends_with('\n')).await;
    read(file)
}

/// The text of a file; empty if there is none.
pub(crate) fn read(file: impl AsRef<Path>) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

/// Sends a signal to `zkr` itself.
pub(crate) fn send(signal: Signal, to: &Child) {
    let id = i32::try_from(to.id().expect("it lives")).expect("an id");
    kill_process(Pid::from_raw(id).expect("an id"), signal).expect("it can be sent");
}

/// True if this process runs, which a zombie does not.
pub(crate) fn runs(id: &str) -> bool {
    state_and_parent(id).is_some_and(|(state, _)| state != "Z")
}

/// The state of a process, and the id of its parent. `None` if there is no such process.
fn state_and_parent(id: &str) -> Option<(String, String)> {
    let stat = read(format!("/proc/{}/stat", id.trim()));
    let mut words = stat.rsplit_once(") ")?.1.split(' ');
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

/// The parent of a process: the guard, for a command.
pub(crate) fn parent_of(id: &str) -> Pid {
    let (_, parent) = state_and_parent(id).expect("it lives");
    Pid::from_raw(parent.parse().expect("a number")).expect("an id")
}
