//! The referee that contenders of every language talk to.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::bail;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};

use crate::judge::{Judge, Report};

/// Answers contenders on a port of its own, until the process ends.
#[derive(Debug)]
pub struct Referee {
    address: SocketAddr,
    hall: Arc<Hall>,
}

#[derive(Debug)]
struct Hall {
    expected: usize,
    ready: Mutex<usize>,
    all_ready: Condvar,
    judge: Mutex<Judge>,
}

impl Referee {
    /// Starts to listen. Answers no `ready` before so many contenders are ready.
    ///
    /// # Errors
    ///
    /// When there is no free port.
    pub fn listen(expected: usize) -> io::Result<Referee> {
        let hall = Arc::new(Hall {
            expected,
            ready: Mutex::new(0),
            all_ready: Condvar::new(),
            judge: Mutex::new(Judge::default()),
        });
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let referee = Referee {
            address: listener.local_addr()?,
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has seen up to now.
    pub fn report(&self) -> Report {
        lock(&self.hall.judge).report().clone()
    }
}

impl Hall {
    fn serve(&self, connection: TcpStream) -> anyhow::Result<()> {
        connection.set_nodelay(true)?;
        let mut answers = connection.try_clone()?;
        let mut name = String::new();
        for line in BufReader::new(connection).lines() {
            // A contender that was killed resets its connection.
            let Ok(line) = line else { break };
            let answer = match line.split_once(' ') {
                Some(("ready", ready)) => {
                    ready.clone_into(&mut name);
                    self.wait_for_all();
                    "go".to_owned()
                }
                None if line == "report" => serde_json::to_string(lock(&self.judge).report())?,
                _ => lock(&self.judge).hear(&line)?,
            };
            if writeln!(answers, "{answer}").is_err() {
                break;
            }
        }
        lock(&self.judge).gone(&name);
        Ok(())
    }

    fn wait_for_all(&self) {
        let mut ready = lock(&self.ready);
        *ready += 1;
        self.all_ready.notify_all();
        while *ready < self.expected {
            ready = self
                .all_ready
                .wait(ready)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A contender's conversation with the referee.
#[derive(Debug)]
pub struct Conversation {
    connection: tokio::io::BufReader<tokio::net::TcpStream>,
}

impl Conversation {
    /// Connects to the referee at this address.
    ///
    /// # Errors
    ///
    /// When nobody listens there.
    pub async fn connect(address: &str) -> anyhow::Result<Conversation> {
        let connection = tokio::net::TcpStream::connect(address).await?;
        connection.set_nodelay(true)?;
        Ok(Conversation {
            connection: tokio::io::BufReader::new(connection),
        })
    }

    /// Says a line, and waits for the answer. What the referee judges is for the test to read.
    ///
    /// # Errors
    ///
    /// When the referee has gone.
    pub async fn tell(&mut self, line: &str) -> anyhow::Result<()> {
        self.connection
            .write_all(format!("{line}\n").as_bytes())
            .await?;
        let mut answer = String::new();
        match self.connection.read_line(&mut answer).await? {
            0 => bail!("the referee has gone"),
            _ => Ok(()),
        }
    }
}
