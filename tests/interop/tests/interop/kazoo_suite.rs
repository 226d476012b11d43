//! kazoo's own tests, against the embedded ensemble in place of Apache's.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use zookeeper_recipes_interop::{Program, can_run};
use zookeeper_recipes_simulation::{EmbeddedOptions, EmbeddedServer, SimulationOptions};

/// As long as a disk takes for a write.
const A_DISK: Duration = Duration::from_millis(3);

/// How many parts of the tests run side by side. They mostly wait.
const PARTS: usize = 4;

/// The directory of kazoo's sources, and the program that runs its tests.
fn suite() -> Result<(PathBuf, Program), Vec<String>> {
    let target = crate::peers::target();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/kazoo_suite.py");
    let program = Program::with_kazoo(&script, &target).map_err(|error| vec![error.to_string()])?;
    let sources = target.join("kazoo/sources");
    let mut inside = std::fs::read_dir(&sources).into_iter().flatten().flatten();
    let unpacked = inside.find(|entry| entry.path().is_dir());
    let unpacked = unpacked.ok_or_else(|| {
        let sources = sources.display();
        vec![format!(
            "no sources of kazoo in {sources}: `cargo xtask install`"
        )]
    })?;
    Ok((unpacked.path(), program))
}

fn ensemble() -> EmbeddedServer {
    let defaults = EmbeddedOptions::default();
    let options = EmbeddedOptions {
        members: 3,
        admin_port: Some(0),
        simulation: SimulationOptions {
            read_only_mode: true,
            // test_connection_dropped drops its connection before the answer to a large write comes.
            commit_delay: A_DISK..=A_DISK,
            ..defaults.simulation
        },
        ..defaults
    };
    EmbeddedServer::start_with(options).expect("it starts")
}

#[test]
fn kazoos_own_tests_pass_on_the_embedded_ensemble() {
    let suite = suite();
    let missing = suite.as_ref().err().map_or(&[][..], Vec::as_slice);
    if !can_run("kazoo's own tests", missing) {
        return;
    }
    let (sources, program) = suite.expect("nothing is missing");
    let ensembles = [(); PARTS].map(|()| ensemble());
    let parts = ensembles.iter().enumerate().map(|(part, ensemble)| {
        let mut command = program.command();
        command.arg(&sources).arg(ensemble.connect_string());
        command.arg(ensemble.admin_address().expect("an admin port"));
        command
            .arg(format!("{part}/{PARTS}"))
            .stdout(Stdio::piped());
        command.spawn().expect("it can be run")
    });
    let parts: Vec<_> = parts.collect();
    for part in parts {
        let output = part.wait_with_output().expect("it can be waited for");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}
