//! Every example is run: it says what it should, ends by itself and leaves nothing behind.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use zookeeper_recipes_examples::postgres;
use zookeeper_recipes_interop::can_run;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::{CONNECT_VARIABLE, Server, ServerOptions};

/// Each example, and a part of a line that it prints.
const EXAMPLES: &[(&str, &str)] = &[
    ("custom_recipe", "the southbound contender crosses"),
    (
        "exclusive_lock",
        "the work was stopped: the hold is lost: its session is closed",
    ),
    (
        "fencing_object_store",
        "after the claim: the old holder's write is refused",
    ),
    (
        NEEDS_POSTGRES,
        "its write is refused: this token has not claimed the row",
    ),
    (NEEDS_A_SERVER, "writing the report under token"),
    ("fleet_job", "interrupted, and the lock is free at once"),
    (
        "guarded_write",
        "without a guard: written, over what is newer",
    ),
    ("leader_service", "was killed, and"),
    ("many_locks", "each shared by the tasks of the process"),
    ("once_per_slot", "node-1: the report is written"),
    ("priorities", "printed: today's paper, a book, a poster"),
    (
        "prometheus",
        r#"zookeeper_recipes_acquired_total{recipe="lock",name="report"} 3"#,
    ),
    ("semaphore", "of 3 permits in use"),
    ("rw_lock", "downgraded: the writer reads on"),
    (
        "sharded_workers",
        "worker-2 was drained, and worker-1 owns all",
    ),
    ("synchronous_code", "held to the end: true"),
];

/// The program of the README, which starts no server and has no directory of its own.
const NEEDS_A_SERVER: &str = "first_lock";

/// The example that needs PostgreSQL.
const NEEDS_POSTGRES: &str = "fencing_postgres";

const PATIENCE: Duration = Duration::from_secs(60);

/// The examples that this machine can run.
fn runnable() -> Vec<(&'static str, &'static str)> {
    let missing = postgres::missing().map(|missing| format!("{missing:#}"));
    let has_postgres = can_run("fencing in PostgreSQL", missing.as_slice());
    let examples = EXAMPLES.iter().copied();
    examples
        .filter(|(name, _)| has_postgres || *name != NEEDS_POSTGRES)
        .filter(|(name, _)| *name != NEEDS_A_SERVER)
        .collect()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// An example's file, or the files in its directory.
fn files(name: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let file = sources().join(format!("{name}.rs"));
    if file.is_file() {
        return Ok(vec![file]);
    }
    let entries = sources().join(name).read_dir()?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    paths.collect()
}

/// Where cargo has put an example as it built this test: it builds them together, unless it builds
/// this test and nothing else.
fn program(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).ok_or("a test in no directory")?;
    let program = profile.join("examples").join(name);
    let built = program.metadata().and_then(|metadata| metadata.modified());
    let mut is_stale = built.is_err();
    for file in files(name)? {
        let written = file.metadata()?.modified()?;
        is_stale |= built.as_ref().is_ok_and(|built| *built < written);
    }
    if is_stale {
        let problem = "is not built from its present source: cargo test -p";
        return Err(format!("{name} {problem} {}", env!("CARGO_PKG_NAME")).into());
    }
    Ok(program)
}

/// Runs an example to its end on this server, and returns what it printed. The example starts
/// Apache's server if none is named.
async fn run(name: &str, server: Option<&str>) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(program(name)?);
    match server {
        Some(address) => command.env(CONNECT_VARIABLE, address),
        None => command.env_remove(CONNECT_VARIABLE).arg("--server"),
    };
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .map_err(|_| format!("{name} had not ended after {PATIENCE:?}"))??;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {printed}{complaints}");
    Ok(printed)
}

/// Runs each example that this machine can run. Each says what it should.
async fn run_all(server: &str, left: impl AsyncFn() -> usize) -> Result<(), Box<dyn Error>> {
    let before = left().await;
    for (name, expected) in runnable() {
        let printed = run(name, Some(server)).await?;
        assert!(printed.contains(expected), "{name}: {printed}");
        assert_eq!(left().await, before, "znodes after {name}");
    }
    Ok(())
}

#[test]
fn no_example_is_forgotten() -> Result<(), Box<dyn Error>> {
    let mut there = BTreeSet::new();
    for entry in sources().read_dir()? {
        let path = entry?.path();
        let name = path.file_stem().ok_or("a file without a name")?;
        there.insert(name.to_string_lossy().into_owned());
    }
    let listed = EXAMPLES.iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(there, listed.collect());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_show_what_they_are_for_and_leave_nothing_behind() -> Result<(), Box<dyn Error>> {
    let server = EmbeddedServer::start()?;
    let address = server.connect_string();
    run_all(&address, async || server.administrator().tree().len()).await?;
    let printed = run(NEEDS_A_SERVER, Some(&address)).await?;
    assert!(printed.contains("under token"), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn example_starts_apaches_server_if_it_is_asked_to() -> Result<(), Box<dyn Error>> {
    let printed = run("exclusive_lock", None).await?;
    assert!(printed.contains("under token"), "{printed}");
    Ok(())
}

mod at_night {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn examples_show_the_same_on_apaches_server() -> Result<(), Box<dyn Error>> {
        let server = Server::start(ServerOptions::new()).await?;
        let left = async || match server.monitor().await {
            Ok(left) => usize::try_from(left.znodes).unwrap_or(usize::MAX),
            Err(error) => panic!("{error}"),
        };
        run_all(&server.connect_string(), left).await
    }
}
