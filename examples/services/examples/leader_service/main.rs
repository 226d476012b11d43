//! A service of three instances, one of which leads: kill that one, and watch the next take over.
//!
//! `cargo run --example leader_service`
//!
//! `service.rs` is the service: use it as a template. This file starts three instances of it, each a
//! process of its own, and kills the leader twice.

mod service;

use std::error::Error;
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use zookeeper_recipes_example_services::ask;
use zookeeper_recipes_examples::{Part, Playground, Process};

const SESSION_TIMEOUT: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

/// One instance of the service: runs until the process that started it orders it to end.
async fn instance(mut part: Part) -> anyhow::Result<()> {
    let session = part.connect_in_background()?;
    let id = part.name().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    part.say(&address).await?;
    let end = async move { while let Ok(Some(_)) = part.hear().await {} };
    service::run(session, id, address, listener, end).await
}

/// A running instance, as the example sees it.
struct Instance {
    id: String,
    process: Process,
    address: String,
}

impl Instance {
    async fn start(playground: &Playground, id: &str) -> Result<Instance, Box<dyn Error>> {
        let mut process = playground.start(id)?;
        Ok(Instance {
            id: id.to_owned(),
            address: process.hear().await?,
            process,
        })
    }

    /// A page of the service. `None` if its status is not 200.
    async fn page(&self, path: &str) -> Result<Option<String>, Box<dyn Error>> {
        Ok(ask(&self.address, "GET", path, "").await?)
    }
}

/// The leader that all these instances agree on: its id and its token.
async fn agreed_leader(instances: &[Instance]) -> Result<Option<(String, i64)>, Box<dyn Error>> {
    let mut agreed: Option<String> = None;
    for instance in instances {
        let told = instance.page("/leader").await?;
        if told.is_none()
            || agreed
                .as_ref()
                .is_some_and(|agreed| Some(agreed) != told.as_ref())
        {
            return Ok(None);
        }
        agreed = told;
    }
    let Some(agreed) = agreed else {
        return Ok(None);
    };
    let (id, token) = agreed.split_once(' ').ok_or("no leader's page")?;
    Ok(Some((id.to_owned(), token.parse()?)))
}

/// Waits until all these instances agree on a leader whose token is newer than this one.
async fn next_leader(instances: &[Instance], than: i64) -> Result<(String, i64), Box<dyn Error>> {
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        match agreed_leader(instances).await? {
            Some((id, token)) if token > than => return Ok((id, token)),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    Err("nobody has taken over".into())
}

/// Sends a report to each instance, and waits until the leader has written it.
async fn send_reports(
    instances: &[Instance],
    leader: &str,
    token: i64,
) -> Result<(), Box<dyn Error>> {
    let expected = format!("{leader} has written 5 bytes with token {token}");
    let deadline = Instant::now() + PATIENCE;
    for instance in instances {
        // The leader may not have proclaimed its address yet.
        let written = loop {
            if let Some(written) = ask(&instance.address, "POST", "/reports", "sales").await? {
                break written;
            }
            if Instant::now() > deadline {
                return Err("no report is written".into());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        assert_eq!(written, expected);
        println!("  a report sent to {}: {written}", instance.id);
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if let Some(part) = Part::of_this_process() {
        return Ok(instance(part).await?);
    }

    let playground = Playground::open_with(SESSION_TIMEOUT).await?;
    let mut instances = Vec::new();
    for id in ["node-1", "node-2", "node-3"] {
        let instance = Instance::start(&playground, id).await?;
        assert!(instance.page("/healthz").await?.is_some());
        instances.push(instance);
    }
    let (mut leader, mut token) = next_leader(&instances, 0).await?;
    println!("{leader} leads with token {token}");
    send_reports(&instances, &leader, token).await?;

    while instances.len() > 1 {
        let place = instances.iter().position(|instance| instance.id == leader);
        let killed = instances.swap_remove(place.ok_or("a stranger leads")?);
        killed.process.kill().await?;
        let died = Instant::now();
        let next = next_leader(&instances, token).await?;
        let gap = died.elapsed();
        println!("{leader} was killed, and {} leads after {gap:.1?}", next.0);
        assert!(
            gap <= SESSION_TIMEOUT + 2 * playground.tick(),
            "a gap of {gap:?}"
        );
        send_reports(&instances, &next.0, next.1).await?;
        (leader, token) = next;
    }
    // The last one is shut down in good order.
    for instance in instances {
        instance.process.end().await?;
    }
    Ok(playground.close().await?)
}
