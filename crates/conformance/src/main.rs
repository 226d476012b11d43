//! `zkr-conformance`: checks on servers that run already what each recipe promises.

mod assignment;
mod recipes;
mod report;

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use zookeeper_recipes_core::NodePath;
use zookeeper_recipes_testkit::Error;
use zookeeper_recipes_testkit::conformance::RunningEnsemble;

use crate::recipes::CheckedRecipe;
use crate::report::Report;

const USAGE: u8 = 64;
const UNAVAILABLE: u8 = 69;
const INTERNAL: u8 = 70;
const BROKEN: u8 = 76;

const HELP: &str = "\
Exit codes:
  0    no promise is broken
  64   the arguments, the connect string or the path are wrong
  69   no server answered, or the znode exists or is left
  70   an error of zkr-conformance itself or of the machine
  76   a promise is broken";

/// Check on your ZooKeeper servers what each recipe promises.
///
/// Works below a znode of its own, and deletes it at the end. Other clients may use the servers.
#[derive(Debug, Parser)]
#[command(name = "zkr-conformance", version, after_help = HELP)]
struct Arguments {
    /// The servers, with a chroot if there is one: `zk1:2181,zk2:2181/app`.
    #[arg(long, value_name = "HOSTS", env = "ZOOKEEPER_CONNECT")]
    connect: String,

    /// The znode to create, and to delete at the end. It must not exist.
    #[arg(long, default_value = "/zkr-conformance")]
    path: String,

    /// Check this recipe only. May be given several times. By default all are checked.
    #[arg(long, value_enum)]
    recipe: Vec<CheckedRecipe>,

    /// Print the outcomes as one JSON object, for programs.
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // An error means that nobody reads it.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let runtime = tokio::runtime::Runtime::new();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(check(arguments)),
        Err(error) => Err((INTERNAL, error.to_string())),
    };
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err((code, message)) => {
            eprintln!("zkr-conformance: {message}");
            ExitCode::from(code)
        }
    }
}

/// Checks the recipes. Returns the exit code.
///
/// # Errors
///
/// The exit code of what kept it from checking, with the cause.
async fn check(arguments: Arguments) -> Result<u8, (u8, String)> {
    let path = NodePath::new(&arguments.path).map_err(|error| (USAGE, error.to_string()))?;
    let servers = RunningEnsemble::connect(&arguments.connect, path).await;
    let servers = servers.map_err(failure)?;
    let mut report = Report::new(&arguments.connect, arguments.json);
    let recipes = match arguments.recipe.is_empty() {
        true => CheckedRecipe::value_variants().to_vec(),
        false => arguments.recipe,
    };
    for recipe in recipes {
        let note = |promise: &'static str, outcome: &_| report.add(recipe, promise, outcome);
        match recipe.on(&servers) {
            Some(conformance) => conformance.check_each(note).await,
            None => assignment::check_each(&servers, note).await,
        }
    }
    let is_broken = report.end();
    servers.remove().await.map_err(failure)?;
    Ok(if is_broken { BROKEN } else { 0 })
}

/// The exit code of an error, and its message with its causes.
fn failure(error: Error) -> (u8, String) {
    let code = match error {
        Error::ConnectString { .. } => USAGE,
        Error::Proxy(_) => INTERNAL,
        _ => UNAVAILABLE,
    };
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        message += &format!(": {error}");
        cause = error.source();
    }
    (code, message)
}
