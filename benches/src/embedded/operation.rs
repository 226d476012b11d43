//! The operations that are compared, one at a time.

use std::fmt;
use std::time::{Duration, Instant};

use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};
use zookeeper_recipes_benches::SESSION_TIMEOUT;

/// A name as long as a contender's, without its sequence number.
const CONTENDER: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";

/// The data of each znode.
pub(crate) const DATA: [u8; 100] = [7; 100];

/// How many children are created in one transaction.
const CHILDREN_AT_ONCE: usize = 500;

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    CreateEphemeralSequential,
    Get,
    Set,
    Exists,
    /// A list of this many children.
    List(usize),
    Delete,
    /// A check, a set of data, a create and a delete in one transaction.
    Multi,
    /// From the set of data until the watch has fired.
    Watch,
    /// From the first packet until there is a session.
    Connect,
}

/// The operations, in the order of the report.
pub(crate) const OPERATIONS: [Operation; 12] = [
    Operation::Create,
    Operation::CreateEphemeralSequential,
    Operation::Get,
    Operation::Set,
    Operation::Exists,
    Operation::List(10),
    Operation::List(1_000),
    Operation::List(10_000),
    Operation::Delete,
    Operation::Multi,
    Operation::Watch,
    Operation::Connect,
];

impl fmt::Display for Operation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Operation::Create => "create",
            Operation::CreateEphemeralSequential => "create ephemeral sequential",
            Operation::Get => "get",
            Operation::Set => "set",
            Operation::Exists => "exists",
            Operation::List(count) => return write!(formatter, "list of {count} children"),
            Operation::Delete => "delete",
            Operation::Multi => "multi of four operations",
            Operation::Watch => "watch that fires",
            Operation::Connect => "connect",
        };
        formatter.write_str(name)
    }
}

/// A server, with a client and the znodes that the operations need.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) address: String,
    client: Client,
}

/// A new session.
pub(crate) async fn connect(address: &str) -> anyhow::Result<Client> {
    let connector = Client::connector().with_session_timeout(SESSION_TIMEOUT);
    Ok(connector.connect(address).await?)
}

pub(crate) fn open(mode: CreateMode) -> CreateOptions<'static> {
    mode.with_acls(Acls::anyone_all())
}

impl Place {
    /// Connects, and creates what the operations need.
    pub(crate) async fn prepare(address: &str) -> anyhow::Result<Place> {
        let client = connect(address).await?;
        let persistent = open(CreateMode::Persistent);
        for path in ["/one", "/sequential"] {
            client.create(path, &DATA, &persistent).await?;
        }
        for operation in OPERATIONS {
            if let Operation::List(count) = operation {
                fill(&client, count).await?;
            }
        }
        Ok(Place {
            address: address.to_owned(),
            client,
        })
    }

    /// Does an operation once, and returns how long that took. What it leaves is removed afterwards.
    pub(crate) async fn time(&self, operation: Operation) -> anyhow::Result<Duration> {
        let client = &self.client;
        let persistent = open(CreateMode::Persistent);
        let began = Instant::now();
        match operation {
            Operation::Create => {
                client.create("/new", &DATA, &persistent).await?;
                let took = began.elapsed();
                client.delete("/new", None).await?;
                return Ok(took);
            }
            Operation::CreateEphemeralSequential => {
                let path = format!("/sequential/{CONTENDER}");
                let mode = open(CreateMode::EphemeralSequential);
                let (_, sequence) = client.create(&path, b"", &mode).await?;
                let took = began.elapsed();
                client.delete(&format!("{path}{sequence}"), None).await?;
                return Ok(took);
            }
            Operation::Get => drop(client.get_data("/one").await?),
            Operation::Set => drop(client.set_data("/one", &DATA, None).await?),
            Operation::Exists => drop(client.check_stat("/one").await?),
            Operation::List(count) => {
                let names = client.list_children(&format!("/{count}")).await?;
                anyhow::ensure!(names.len() == count, "{} names", names.len());
            }
            Operation::Delete => {
                client.create("/old", &DATA, &persistent).await?;
                let began = Instant::now();
                client.delete("/old", None).await?;
                return Ok(began.elapsed());
            }
            Operation::Multi => {
                let mut writer = client.new_multi_writer();
                writer.add_check_version("/sequential", 0)?;
                writer.add_set_data("/one", &DATA, None)?;
                writer.add_create("/both", &DATA, &persistent)?;
                writer.add_delete("/both", None)?;
                writer.commit().await?;
            }
            Operation::Watch => {
                let (_, _, watcher) = client.get_and_watch_data("/one").await?;
                let began = Instant::now();
                client.set_data("/one", &DATA, None).await?;
                watcher.changed().await;
                return Ok(began.elapsed());
            }
            Operation::Connect => {
                let session = connect(&self.address).await?;
                let took = began.elapsed();
                drop(session);
                return Ok(took);
            }
        }
        Ok(began.elapsed())
    }
}

/// Creates a znode with this many children.
async fn fill(client: &Client, count: usize) -> anyhow::Result<()> {
    let persistent = open(CreateMode::Persistent);
    let directory = format!("/{count}");
    client.create(&directory, b"", &persistent).await?;
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(CHILDREN_AT_ONCE) {
        let mut writer = client.new_multi_writer();
        for number in some {
            let path = format!("{directory}/{CONTENDER}{number:010}");
            writer.add_create(&path, b"", &persistent)?;
        }
        writer.commit().await?;
    }
    Ok(())
}
