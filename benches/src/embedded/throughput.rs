//! What many clients get done together.

use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use zookeeper_client::{Client, CreateMode};

use crate::operation::{DATA, connect, open};

/// How many clients connect at the same time.
const CONNECTED_AT_ONCE: usize = 100;

/// What all clients do again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    /// Each client reads the same znode.
    Gets,
    /// Each client sets the data of a znode of its own.
    Sets,
}

pub(crate) const LOADS: [Load; 2] = [Load::Gets, Load::Sets];

impl Load {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Load::Gets => "gets",
            Load::Sets => "sets",
        }
    }
}

/// Clients of one server, each with an ephemeral znode of its own.
#[derive(Debug)]
pub(crate) struct Crowd {
    clients: Vec<(Client, String)>,
}

impl Crowd {
    pub(crate) async fn connect(address: &str, number: usize) -> anyhow::Result<Crowd> {
        let numbers: Vec<usize> = (0..number).collect();
        let mut clients = Vec::new();
        for some in numbers.chunks(CONNECTED_AT_ONCE) {
            let connecting = some.iter().map(|number| async move {
                let client = connect(address).await?;
                let path = format!("/of-{number}");
                let mode = open(CreateMode::Ephemeral);
                client.create(&path, &DATA, &mode).await?;
                anyhow::Ok((client, path))
            });
            clients.extend(try_join_all(connecting).await?);
        }
        Ok(Crowd { clients })
    }

    /// How many requests a second are answered. Each client waits for its answer before it asks
    /// again.
    pub(crate) async fn rate(&self, load: Load, time: Duration) -> anyhow::Result<f64> {
        let began = Instant::now();
        let asking = self.clients.iter().map(|(client, path)| {
            let (client, path) = (client.clone(), path.clone());
            tokio::spawn(async move {
                let mut answered = 0_u64;
                while began.elapsed() < time {
                    match load {
                        Load::Gets => drop(client.get_data("/one").await?),
                        Load::Sets => drop(client.set_data(&path, &DATA, None).await?),
                    }
                    answered += 1;
                }
                anyhow::Ok(answered)
            })
        });
        let asking: Vec<_> = asking.collect();
        let mut answered = 0;
        for client in asking {
            answered += client.await??;
        }
        Ok(answered as f64 / began.elapsed().as_secs_f64())
    }
}
