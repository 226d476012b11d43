//! The referee, to which contenders of every language report.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::bail;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::judge::{Judge, Report};

/// Answers contenders on a port of its own, until the process ends.
#[derive(Debug)]
pub struct Referee {
    address: String,
    hall: Arc<Hall>,
}

#[derive(Debug)]
struct Hall {
    all_ready: Barrier,
    judge: Mutex<Judge>,
}

impl Referee {
    /// Starts to listen. The referee answers no `ready` before this number of contenders is ready.
    pub fn listen(expected: usize) -> io::Result<Referee> {
        let hall = Arc::new(Hall {
            all_ready: Barrier::new(expected),
            judge: Mutex::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let referee = Referee {
            address: listener.local_addr()?.to_string(),
            hall: Arc::clone(&hall),
        };
        thread::spawn(move || {
            for connection in listener.incoming() {
                let hall = Arc::clone(&hall);
                thread::spawn(move || {
                    let served = connection.map_err(Into::into);
                    if let Err(error) = served.and_then(|connection| hall.serve(connection)) {
                        eprintln!("{error:#}");
                    }
                });
            }
        });
        Ok(referee)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// A worker's process is stopped (SIGSTOP). The worker owns nothing from now on.
    pub fn stopped(&self, worker: &str) {
        self.hall.judge().owners().stopped(worker);
    }

    /// A worker's process is about to continue (SIGCONT).
    pub fn continues(&self, worker: &str) {
        self.hall.judge().owners().continues(worker);
    }

    pub fn report(&self) -> Report {
        self.hall.judge().report()
    }
}

impl Hall {
    fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, connection: TcpStream) -> anyhow::Result<()> {
        connection.set_nodelay(true)?;
        let mut answers = connection.try_clone()?;
        let mut name = String::new();
        for line in BufReader::new(connection).lines() {
            // A contender that was killed resets its connection.
            let Ok(line) = line else { break };
            match line.strip_prefix("ready ") {
                Some(ready) => {
                    ready.clone_into(&mut name);
                    self.all_ready.wait();
                }
                None => self.judge().hear(&line)?,
            }
            if writeln!(answers, "ok").is_err() {
                break;
            }
        }
        self.judge().gone(&name);
        Ok(())
    }
}

/// A contender's connection to the referee.
#[derive(Debug)]
pub struct Conversation {
    connection: tokio::io::BufReader<tokio::net::TcpStream>,
}

impl Conversation {
    pub async fn connect(address: &str) -> anyhow::Result<Conversation> {
        let connection = tokio::net::TcpStream::connect(address).await?;
        connection.set_nodelay(true)?;
        Ok(Conversation {
            connection: tokio::io::BufReader::new(connection),
        })
    }

    /// Sends a line, and waits until the referee has read it.
    pub async fn report(&mut self, line: &str) -> anyhow::Result<()> {
        self.connection
            .write_all(format!("{line}\n").as_bytes())
            .await?;
        let mut answer = String::new();
        match self.connection.read_line(&mut answer).await? {
            0 => bail!("the referee has closed the connection at {line:?}"),
            _ => Ok(()),
        }
    }
}
