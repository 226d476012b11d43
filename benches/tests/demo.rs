//! The demo as its user runs it.

use std::error::Error;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::timeout;
use zookeeper_recipes_testkit::{CONNECT_VARIABLE, Server, ServerOptions};

const PATIENCE: Duration = Duration::from_secs(60);

fn demo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_demo"));
    command.args(arguments).kill_on_drop(true);
    command.env_remove(CONNECT_VARIABLE);
    command
}

/// What a small demo prints with these further arguments.
async fn shown(arguments: &[&str]) -> Result<String, Box<dyn Error>> {
    let small = ["--contenders", "3", "--hold", "5ms"];
    let mut command = demo(&[&small, arguments].concat());
    let output = timeout(PATIENCE, command.output()).await??;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    for part in [
        "| single node |",
        "| poll        |",
        "| parent      |",
        "| predecessor |",
        "predecessor    3/3 contender",
        "Never two at once: 12 holds",
        "Order kept, predecessor: 3 of 3",
        "Left behind: nothing.",
    ] {
        assert!(printed.contains(part), "{part:?} is not in\n{printed}");
    }
    Ok(printed)
}

/// The counts of the default way to wait, which are the same in each run.
fn counts(printed: &str) -> Option<String> {
    let mut lines = printed.lines();
    let row = lines.find(|line| line.starts_with("| predecessor |"))?;
    let cells: Vec<&str> = row.split('|').map(str::trim).collect();
    Some(cells.get(3..)?.join(" "))
}

#[tokio::test(flavor = "multi_thread")]
async fn demo_shows_four_ways_and_leaves_nothing_behind() -> Result<(), Box<dyn Error>> {
    let server = Server::start(ServerOptions::new()).await?;
    let before = server.monitor().await?;
    let on_apaches = shown(&["--connect", &server.connect_string()]).await?;
    assert_eq!(server.monitor().await?.znodes, before.znodes);
    let embedded = shown(&[]).await?;
    assert!(embedded.contains("Started an embedded server"));
    assert!(counts(&embedded).is_some());
    assert_eq!(counts(&embedded), counts(&on_apaches));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_demo_cleans_up() -> Result<(), Box<dyn Error>> {
    let server = Server::start(ServerOptions::new()).await?;
    let before = server.monitor().await?;
    let connect = server.connect_string();
    let mut child = demo(&["--hold", "1s", "--connect", &connect])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let holds = async {
        while let Some(line) = lines.next_line().await? {
            if line.contains("holds, token") {
                return Ok(());
            }
        }
        Err(Box::<dyn Error>::from("nobody held"))
    };
    timeout(PATIENCE, holds).await??;
    assert!(server.monitor().await?.znodes > before.znodes);

    let id = i32::try_from(child.id().ok_or("it has ended")?)?;
    kill_process(Pid::from_raw(id).ok_or("no id")?, Signal::INT)?;
    let output = timeout(PATIENCE, child.wait_with_output()).await??;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(complaints.contains("interrupted"), "{complaints}");
    let after = server.monitor().await?;
    assert_eq!((after.znodes, after.ephemerals), (before.znodes, 0));
    Ok(())
}
