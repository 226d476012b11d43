//! The examples of the README's section on the command line, run as they are written there.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;
use zookeeper_recipes_suite::server;

use crate::support::{ended, files, read};

const README: &str = include_str!("../../../../README.md");
const HEADING: &str = "## On the command line, and who holds what\n";

fn examples() -> &'static str {
    let (_, section) = README.split_once(HEADING).expect("the section");
    let (_, block) = section.split_once("```sh\n").expect("a block");
    block.split_once("```").expect("its end").0
}

#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_readme_run_as_they_stand_there() {
    let (server, files) = (server().await, files());
    // The only thing that differs is where the server listens.
    let address = "127.0.0.1:2181";
    assert!(examples().contains(address));
    let script = examples().replace(address, &server.connect_string());
    let programs = Path::new(env!("CARGO_BIN_EXE_zkr"))
        .parent()
        .expect("a directory");
    let path = std::env::var("PATH").expect("text");
    let child = Command::new("sh")
        .args(["-eu", "-c", &script])
        .current_dir(files.path())
        .env("PATH", format!("{}:{path}", programs.display()))
        .env_remove("ZKR_CREDENTIALS")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let ended = ended(child.expect("a shell starts")).await;
    ended.quiet(0);
    assert!(read(files.path().join("report.txt")).starts_with("token "));
    ended.shows([
        "at most once a day, on one machine\n",
        "node-7 leads\n",
        "/locks/report: nobody holds and nobody waits\n",
    ]);
}
