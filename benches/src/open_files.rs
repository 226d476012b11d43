//! The number of open files that a bench may have.

use anyhow::{Context, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Allows this many open files.
pub fn allow_open_files(needed: u64) -> anyhow::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let enough = |limit: Option<u64>| limit.is_none_or(|limit| limit >= needed);
    if enough(limit.current) {
        return Ok(());
    }
    ensure!(
        enough(limit.maximum),
        "the bench needs {needed} open files, and this process may have {}; see ulimit -Hn",
        limit.maximum.unwrap_or(0)
    );
    let raised = Rlimit {
        current: Some(needed),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).context("cannot allow as many open files as are needed")
}
