//! Processes that an example stops and kills: real ones or simulated ones.

use std::fmt;
use std::pin::Pin;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines, duplex, stdin, stdout,
};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_simulation::SimulatedProcess;

use crate::place::Place;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The argument that makes this program play a part.
const PART: &str = "--part";

type Lined = Lines<BufReader<Pin<Box<dyn AsyncRead + Send + Sync>>>>;
type Writer = Pin<Box<dyn AsyncWrite + Send + Sync>>;

/// What a process has that plays a part.
pub struct Part {
    name: String,
    place: Place,
    session_timeout: Duration,
    heard: Lined,
    said: Writer,
}

/// A process that plays a part, as the process that started it sees it.
pub struct Process {
    life: Life,
    heard: Lined,
    said: Option<Writer>,
}

#[derive(Debug)]
enum Life {
    Real(Child),
    Simulated(SimulatedProcess, JoinHandle<anyhow::Result<()>>),
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
            place: Place::Server(connect_string.clone()),
            session_timeout: Duration::from_millis(milliseconds),
            heard: lines(stdin()),
            said: Box::pin(stdout()),
        })
    }

    /// The name of the process.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens a session, as [`Playground::connect`](crate::Playground::connect) does.
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn connect(&self) -> Result<Session, zookeeper_recipes_core::Error> {
        self.place.connect(self.session_timeout).await
    }

    /// Sends a line to the process that started it.
    ///
    /// # Errors
    ///
    /// When that process has gone.
    pub async fn say(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        say(&mut self.said, line).await
    }

    /// The next line that it is sent; `None` when it is told to end.
    ///
    /// # Errors
    ///
    /// When that process has gone.
    pub async fn hear(&mut self) -> anyhow::Result<Option<String>> {
        Ok(self.heard.next_line().await?)
    }
}

impl Process {
    pub(crate) fn start<F>(
        name: &str,
        place: Place,
        session_timeout: Duration,
        part: fn(Part) -> F,
    ) -> anyhow::Result<Process>
    where
        F: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        match place {
            Place::Server(connect_string) => {
                let milliseconds = session_timeout.as_millis().to_string();
                let mut child = Command::new(std::env::current_exe()?)
                    .args([PART, &connect_string, &milliseconds, name])
                    .stdin(Stdio::piped())
                    .stdout(Stdio::piped())
                    .kill_on_drop(true)
                    .spawn()?;
                let heard = child.stdout.take().context("it has no output")?;
                let said = child.stdin.take().context("it has no input")?;
                Ok(Process {
                    life: Life::Real(child),
                    heard: lines(heard),
                    said: Some(Box::pin(said)),
                })
            }
            Place::Simulation(process) => {
                // One pipe each way, so that each can be closed by itself.
                let ((told, hears), (says, heard)) = (duplex(1024), duplex(1024));
                let played = part(Part {
                    name: name.to_owned(),
                    place: Place::Simulation(process.clone()),
                    session_timeout,
                    heard: lines(hears),
                    said: Box::pin(says),
                });
                let alive = process.clone();
                let task = tokio::spawn(async move { alive.while_awake(played).await });
                Ok(Process {
                    life: Life::Simulated(process, task),
                    heard: lines(heard),
                    said: Some(Box::pin(told)),
                })
            }
        }
    }

    /// The next line that it sends.
    ///
    /// # Errors
    ///
    /// When it sends nothing for half a minute, or has ended.
    pub async fn hear(&mut self) -> anyhow::Result<String> {
        let line = timeout(PATIENCE, self.heard.next_line()).await??;
        line.context("it has ended")
    }

    /// Sends a line to it.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub async fn say(&mut self, line: impl fmt::Display) -> anyhow::Result<()> {
        let said = self.said.as_mut().context("it was told to end")?;
        say(said, line).await
    }

    /// Stops it: SIGSTOP.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn stop(&self) -> anyhow::Result<()> {
        match &self.life {
            Life::Real(child) => signal(child, Signal::STOP),
            Life::Simulated(process, _) => {
                process.sleep(Duration::from_secs(3600));
                Ok(())
            }
        }
    }

    /// Has it go on after [`stop`](Self::stop): SIGCONT.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub fn go_on(&self) -> anyhow::Result<()> {
        match &self.life {
            Life::Real(child) => signal(child, Signal::CONT),
            Life::Simulated(process, _) => {
                process.wake();
                Ok(())
            }
        }
    }

    /// Kills it: SIGKILL.
    ///
    /// # Errors
    ///
    /// When it has ended.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        match &mut self.life {
            Life::Real(child) => child.kill().await?,
            Life::Simulated(process, task) => {
                process.kill();
                task.abort();
            }
        }
        Ok(())
    }

    /// Tells it to end, and waits until it has.
    ///
    /// # Errors
    ///
    /// Why it has failed, if it has.
    pub async fn end(mut self) -> anyhow::Result<()> {
        drop(self.said.take());
        match self.life {
            Life::Real(mut child) => match timeout(PATIENCE, child.wait()).await?? {
                status if status.success() => Ok(()),
                status => bail!("it ended with {status}"),
            },
            Life::Simulated(_, task) => timeout(PATIENCE, task).await??,
        }
    }
}

fn lines(reader: impl AsyncRead + Send + Sync + 'static) -> Lined {
    let reader: Pin<Box<dyn AsyncRead + Send + Sync>> = Box::pin(reader);
    BufReader::new(reader).lines()
}

async fn say(writer: &mut Writer, line: impl fmt::Display) -> anyhow::Result<()> {
    writer.write_all(format!("{line}\n").as_bytes()).await?;
    Ok(writer.flush().await?)
}

fn signal(child: &Child, signal: Signal) -> anyhow::Result<()> {
    let id = i32::try_from(child.id().context("it has ended already")?)?;
    let process = Pid::from_raw(id).context("no process has this id")?;
    Ok(kill_process(process, signal)?)
}

impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Part")
            .field("name", &self.name)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Process")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}
