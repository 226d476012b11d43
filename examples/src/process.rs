//! Processes that an example stops and kills.

use std::fmt;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{
    AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader, Lines, Stdin, Stdout, stdin, stdout,
};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;
use zookeeper_recipes_core::{ConnectOptions, Error, InvalidInput, Session};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The argument that makes this program play a part.
const PART: &str = "--part";

/// What a process has that plays a part.
#[derive(Debug)]
pub struct Part {
    name: String,
    connect_string: String,
    session_timeout: Duration,
    heard: Lines<BufReader<Stdin>>,
    said: Stdout,
}

/// A process that plays a part, as the process that started it sees it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    heard: Lines<BufReader<ChildStdout>>,
    said: Option<ChildStdin>,
}

impl Part {
    /// The part that this process was started for; `None` if it was started by hand.
    pub fn of_this_process() -> Option<Part> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [part, connect_string, milliseconds, name] = &arguments[..] else {
            return None;
        };
        let milliseconds = milliseconds.parse().ok().filter(|_| part == PART)?;
        Some(Part {
            name: name.clone(),
            connect_string: connect_string.clone(),
            session_timeout: Duration::from_millis(milliseconds),
            heard: BufReader::new(stdin()).lines(),
            said: stdout(),
        })
    }

    /// The name of the process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens a session, as [`Playground::connect`](crate::Playground::connect) does.
    pub async fn connect(&self) -> Result<Session, zookeeper_recipes_core::Error> {
        connect(&self.connect_string, self.session_timeout).await
    }

    /// Opens a session in the background: [`Session::connect_in_background`].
    pub fn connect_in_background(&self) -> Result<Session, InvalidInput> {
        let options = ConnectOptions::new().session_timeout(self.session_timeout);
        Session::connect_in_background(&self.connect_string, options)
    }

    /// Sends a line to the process that started it.
    pub async fn say(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        say(&mut self.said, line).await
    }

    /// The next line that it is sent; `None` when it is ordered to end.
    pub async fn hear(&mut self) -> anyhow::Result<Option<String>> {
        Ok(self.heard.next_line().await?)
    }
}

impl Process {
    pub(crate) fn start(
        name: &str,
        connect_string: &str,
        session_timeout: Duration,
    ) -> anyhow::Result<Process> {
        let milliseconds = session_timeout.as_millis().to_string();
        let mut child = Command::new(std::env::current_exe()?)
            .args([PART, connect_string, &milliseconds, name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let heard = child.stdout.take().context("it has no output")?;
        let said = child.stdin.take().context("it has no input")?;
        Ok(Process {
            child,
            heard: BufReader::new(heard).lines(),
            said: Some(said),
        })
    }

    /// The next line that it sends.
    pub async fn hear(&mut self) -> anyhow::Result<String> {
        let line = timeout(PATIENCE, self.heard.next_line()).await??;
        line.context("it has ended")
    }

    /// Sends a line to it.
    pub async fn say(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        let said = self.said.as_mut().context("it was ordered to end")?;
        say(said, line).await
    }

    /// Stops it: SIGSTOP.
    pub fn stop(&self) -> anyhow::Result<()> {
        self.signal(Signal::STOP)
    }

    /// Continues it after [`stop`](Self::stop): SIGCONT.
    pub fn go_on(&self) -> anyhow::Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        let id = i32::try_from(self.child.id().context("it has ended already")?)?;
        let process = Pid::from_raw(id).context("no process has this id")?;
        Ok(kill_process(process, signal)?)
    }

    /// Kills it: SIGKILL.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Orders it to end, and waits until it has ended.
    pub async fn end(mut self) -> anyhow::Result<()> {
        drop(self.said.take());
        match timeout(PATIENCE, self.child.wait()).await?? {
            status if status.success() => Ok(()),
            status => bail!("it ended with {status}"),
        }
    }
}

pub(crate) async fn connect(
    connect_string: &str,
    session_timeout: Duration,
) -> Result<Session, Error> {
    let options = ConnectOptions::new().session_timeout(session_timeout);
    Session::connect_with(connect_string, options).await
}

async fn say(mut writer: impl AsyncWrite + Unpin, line: impl fmt::Display) -> anyhow::Result<()> {
    writer.write_all(format!("{line}\n").as_bytes()).await?;
    Ok(writer.flush().await?)
}
