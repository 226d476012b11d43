//! Every example is run: it says what it should, ends by itself and leaves nothing behind.

use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use zookeeper_recipes_example_services::postgres;
use zookeeper_recipes_examples::CONNECT_VARIABLE;
use zookeeper_recipes_interop::can_run;
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::{Server, ServerOptions};

/// Each example, and a part of a line that it prints.
const EXAMPLES: &[(&str, &str)] = &[
    (
        "exclusive_lock",
        "the work was stopped: the hold is lost: its session is closed",
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
    ("once_per_slot", "node-1: the report is written"),
    ("priorities", "printed: today's paper, a book, a poster"),
    (
        "own_client",
        "held in the session of the program's own client",
    ),
    (
        "prometheus",
        r#"zookeeper_recipes_acquired_total{recipe="lock",name="report"} 3"#,
    ),
    ("semaphore", "of 3 permits in use"),
    (
        "sharded_workers",
        "worker-2 was drained, and worker-1 owns all",
    ),
    ("synchronous_code", "held to the end: true"),
];

/// The program of the README: a package of its own, which starts no server and has no directory of
/// its own.
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

/// The sources of all examples: files, and directories of files.
fn sources() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let services = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = vec![services.join("..").join(NEEDS_A_SERVER)];
    for directory in [services.join("examples"), services.join("../examples")] {
        for entry in directory.read_dir()? {
            sources.push(entry?.path());
        }
    }
    Ok(sources)
}

/// Where cargo has put an example as it built this test: it builds the examples and the programs of
/// a package together with its tests, unless it builds this test and nothing else.
fn program(name: &str) -> Result<PathBuf, Box<dyn Error>> {
    let test = std::env::current_exe()?;
    let profile = test.ancestors().nth(2).ok_or("a test in no directory")?;
    let program = match name {
        NEEDS_A_SERVER => profile.join(name),
        _ => profile.join("examples").join(name),
    };
    let built = program.metadata().and_then(|metadata| metadata.modified());
    let mut sources = sources()?;
    sources.retain(|source| source.file_stem() == Some(name.as_ref()));
    let source = sources.first().ok_or("no source")?;
    let directories = [source.clone(), source.join("src")];
    for directory in directories.iter().filter_map(|it| it.read_dir().ok()) {
        for file in directory {
            sources.push(file?.path());
        }
    }
    for source in sources.iter().filter(|source| source.is_file()) {
        let written = source.metadata()?.modified()?;
        if !built.as_ref().is_ok_and(|built| *built >= written) {
            let call = "cargo test -p first_lock -p zookeeper-recipes-examples -p";
            let problem = format!("is not built from its present source: {call}");
            return Err(format!("{name} {problem} {}", env!("CARGO_PKG_NAME")).into());
        }
    }
    Ok(program)
}

/// Runs an example to its end on this server, and returns what it printed.
async fn run(name: &str, server: &str) -> Result<String, Box<dyn Error>> {
    let mut command = Command::new(program(name)?);
    command.env(CONNECT_VARIABLE, server);
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(PATIENCE, command.output())
        .await
        .map_err(|_| format!("{name} had not ended after {PATIENCE:?}"))??;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {printed}{complaints}");
    Ok(printed)
}

/// Runs each example that this machine can run. Each says what it should, and leaves nothing but
/// the directory of the README's program.
async fn run_all(server: &str, left: impl AsyncFn() -> usize) -> Result<(), Box<dyn Error>> {
    let before = left().await;
    for (name, expected) in runnable() {
        let printed = run(name, server).await?;
        assert!(printed.contains(expected), "{name}: {printed}");
        assert_eq!(left().await, before, "znodes after {name}");
    }
    let printed = run(NEEDS_A_SERVER, server).await?;
    assert!(
        printed.contains("writing the report under token"),
        "{printed}"
    );
    Ok(())
}

#[test]
fn no_example_is_forgotten() -> Result<(), Box<dyn Error>> {
    let name = |source: &PathBuf| Some(source.file_stem()?.to_string_lossy().into_owned());
    let there: BTreeSet<_> = sources()?.iter().filter_map(name).collect();
    let listed = EXAMPLES.iter().map(|(name, _)| (*name).to_owned());
    assert_eq!(there, listed.collect());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_show_what_they_are_for_and_leave_nothing_behind() -> Result<(), Box<dyn Error>> {
    let server = EmbeddedServer::start()?;
    let left = async || server.administrator().tree().len();
    run_all(&server.connect_string(), left).await
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
