//! The create counter of a znode, which numbers its sequential children.

use std::process::Command;

use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::installation::{Installation, InstallationError};

/// Changes the data with the server's own classes. Run from its source, for which the Java runtime
/// has to have the compiler.
const PROGRAM: &str = include_str!("../java/CreateCounter.java");

/// Sets the counter in the data of the server on `port`, which must not run.
pub(crate) async fn set(
    installation: Installation,
    directory: &DataDirectory,
    port: u16,
    paths: &[&str],
    next: i32,
) -> Result<(), Error> {
    let program = directory.path().join("CreateCounter.java");
    directory.write(&program, PROGRAM)?;
    let mut class_path = directory.class_path().into_os_string();
    class_path.push(":");
    class_path.push(installation.class_path());
    let mut command = Command::new(installation.java());
    command
        // With these options Java starts soonest, and takes the least processor time.
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"])
        .args(["-XX:-UsePerfData", "-cp"])
        .arg(class_path)
        .arg(program)
        .arg(directory.data())
        .arg(next.to_string())
        .args(paths)
        .current_dir(directory.path());
    let run = move || match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(_) if !installation.has_compiler() => Err(InstallationError::NoCompiler.into()),
        Ok(output) => Err(Error::Unchanged {
            port,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        }),
        Err(source) => Err(Error::Spawn {
            program: installation.java().to_path_buf(),
            source,
        }),
    };
    match tokio::task::spawn_blocking(run).await {
        Ok(outcome) => outcome,
        Err(failure) => std::panic::resume_unwind(failure.into_panic()),
    }
}
