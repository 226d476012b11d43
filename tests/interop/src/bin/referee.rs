//! The referee: an outside process that contenders of every language tell when they go in and
//! when they come out.
//!
//! `referee <expected>` answers no `ready` before that many contenders are. It prints its address,
//! and ends when its standard input does.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;
use zookeeper_recipes_interop::Judge;

struct Referee {
    expected: usize,
    ready: Mutex<usize>,
    all_ready: Condvar,
    judge: Mutex<Judge>,
}

fn main() -> anyhow::Result<()> {
    let expected = std::env::args().nth(1).context("referee <expected>")?;
    let referee = Arc::new(Referee {
        expected: expected.parse().context("not a number of contenders")?,
        ready: Mutex::new(0),
        all_ready: Condvar::new(),
        judge: Mutex::new(Judge::default()),
    });
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    thread::spawn(move || {
        for connection in listener.incoming() {
            let referee = Arc::clone(&referee);
            thread::spawn(move || {
                if let Err(error) = connection
                    .map_err(Into::into)
                    .and_then(|connection| referee.serve(connection))
                {
                    eprintln!("{error:#}");
                }
            });
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Referee {
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
