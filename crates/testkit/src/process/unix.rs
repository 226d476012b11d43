//! The process of one server on Unix, which never outlives this one.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::time::{Instant, sleep};

/// How often the end of a process is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// Becomes the server, and leaves behind a watcher that holds the other end of a pipe to us. When
/// we are gone, however we went, the pipe ends: the watcher kills the server and removes its
/// directory. A line through the pipe sends the watcher home.
///
/// The kernel's own "kill me when my parent dies" will not do: it means the *thread* that started
/// the process, and a test's threads come and go while a server they share should stay.
const WATCHED: &str = r#"
directory=$1
shift
exec 3<&0 </dev/null
{
    read -r farewell <&3 && exit
    kill -KILL $$
    for attempt in 1 2 3 4 5 6 7 8 9; do
        rm -rf -- "$directory" && break
    done
} >/dev/null 2>&1 &
exec 3<&-
exec "$@"
"#;

/// A running (or paused, or just ended) server process. Killed and awaited when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    lifeline: ChildStdin,
    /// Its end has been seen, and its id may be another process's by now.
    reaped: bool,
}

impl Process {
    /// Starts `program`, which writes what it has to say to the end of `log`, and whose `directory`
    /// is removed should this process die first.
    pub(crate) fn spawn(
        program: &Path,
        arguments: &[OsString],
        directory: &Path,
        log: &Path,
    ) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        let mut child = Command::new("/bin/sh")
            .args(["-c", WATCHED, "sh"])
            .arg(directory)
            .arg(program)
            .args(arguments)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            // A Ctrl-C in the terminal is for us: we end the server in our own time.
            .process_group(0)
            .spawn()?;
        match child.stdin.take() {
            Some(lifeline) => Ok(Self {
                child,
                lifeline,
                reaped: false,
            }),
            None => Err(io::Error::other("a child without its stdin")),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, or `None` while it lives.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() && !self.reaped {
            self.reaped = true;
            self.send_watcher_home();
        }
        Ok(status)
    }

    /// The watcher must not kill the next process with the server's id.
    fn send_watcher_home(&mut self) {
        // An error here means that it has gone already.
        let _ = self.lifeline.write_all(b"\n");
    }

    fn pid(&self) -> io::Result<Pid> {
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        match id {
            Some(id) if !self.reaped => Ok(id),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid()?, signal)?)
    }

    /// Stops the process, and returns when all its threads have stopped.
    pub(crate) fn pause(&self) -> io::Result<()> {
        let pid = self.pid()?;
        kill_process(pid, Signal::STOP)?;
        // The signal stops the process only when one of its threads runs. On a busy machine,
        // another thread may answer a request before that. If the process has ended, `ended` sees
        // it.
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        retry_on_intr(|| waitid(WaitId::Pid(pid), stopped))?;
        Ok(())
    }

    /// Resumes the process.
    pub(crate) fn resume(&self) -> io::Result<()> {
        self.signal(Signal::CONT)
    }

    /// Asks it to end, waits for at most `patience`, and kills it then.
    pub(crate) async fn terminate(mut self, patience: Duration) -> io::Result<()> {
        if self.ended()?.is_none() {
            self.signal(Signal::TERM)?;
            // A stopped process gets its signals when it resumes.
            self.signal(Signal::CONT)?;
            let deadline = Instant::now() + patience;
            while self.ended()?.is_none() && Instant::now() < deadline {
                sleep(LOOK).await;
            }
        }
        self.kill().await
    }

    /// Kills it, and waits until it is gone.
    pub(crate) async fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        while self.ended()?.is_none() {
            sleep(LOOK).await;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // An error here means that it has ended already, which is what we want.
        let _ = self.child.kill();
        if !self.reaped {
            self.send_watcher_home();
            let _ = self.child.wait();
        }
    }
}
