//! Whether a command could be started.

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::exit::Exit;
use crate::failure::{Failure, warn};

/// The file of a program. A program is refused that is not on the `PATH`, or that this user cannot
/// execute.
///
/// The system has the last word: it may refuse a file that is executable, such as a script whose
/// interpreter is missing.
pub(super) fn find(program: &OsStr) -> Result<PathBuf, Failure> {
    let mut refused = Errno::NOENT;
    for candidate in candidates(program) {
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            // As the system does: a file that is no program is remembered, and the search continues.
            Err(error) if error == Errno::ACCESS => refused = error,
            Err(_) => {}
        }
    }
    Err(not_started(program, &refused.into()))
}

/// Warns if the program becomes another user, as `sudo` does, whom the guard cannot signal.
pub(super) fn warn_of_another_user(file: &Path) {
    const SETUID: u32 = 0o4000;
    let own = geteuid();
    let becomes_another = file.metadata().is_ok_and(|metadata| {
        metadata.mode() & SETUID != 0 && metadata.uid() != own.as_raw() && !own.is_root()
    });
    if becomes_another {
        warn(&format!(
            "{} can become another user, whom zkr cannot stop when the hold is lost: run zkr as \
             that user",
            file.display()
        ));
    }
}

/// The failure of a command that cannot be started, with the exit code that shells have for it.
pub(super) fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        io::ErrorKind::NotFound => Exit::Code(127),
        _ => Exit::Code(126),
    };
    Failure::new(exit, format!("cannot start {program:?}: {error}"))
}

/// The files that the system would try, in order.
fn candidates(program: &OsStr) -> Vec<PathBuf> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.into()];
    }
    // Each system has a path of its own for a process without one.
    let path = env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/bin:/usr/bin".into());
    env::split_paths(&path).map(|it| it.join(program)).collect()
}

fn executable(file: &Path) -> Result<(), Errno> {
    access(file, Access::EXEC_OK)?;
    // A directory has the permission, too.
    match file.is_file() {
        true => Ok(()),
        false => Err(Errno::ACCESS),
    }
}
