//! The clocks of the clients and the disk of the servers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::namespace::run;
use anyhow::{Context, ensure};
use tempfile::TempDir;

/// Where Debian keeps libfaketime, which gives a process a wall clock of its own.
const FAKETIME: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

const DISK_BYTES: u64 = 512 << 20;

/// The wall clock of one client. Its other clocks are those of the machine.
#[derive(Debug)]
pub(crate) struct WallClock {
    file: PathBuf,
}

impl WallClock {
    /// # Errors
    ///
    /// If the machine has no libfaketime.
    pub(crate) fn new(directory: &Path, client: usize) -> anyhow::Result<WallClock> {
        ensure!(
            Path::new(FAKETIME).exists(),
            "--clocks needs {FAKETIME}, of Debian's package libfaketime"
        );
        let clock = WallClock {
            file: directory.join(format!("clock-{client}")),
        };
        clock.jump("+0")?;
        Ok(clock)
    }

    /// The variables of the environment for the client.
    pub(crate) fn variables(&self) -> [(&'static str, String); 4] {
        [
            ("LD_PRELOAD", FAKETIME.to_owned()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_CACHE_DURATION", "1".to_owned()),
            // The monotonic clock of a system never jumps.
            ("DONT_FAKE_MONOTONIC", "1".to_owned()),
        ]
    }

    /// Sets how far the clock is from the machine's, as libfaketime reads it.
    pub(crate) fn jump(&self, offset: &str) -> anyhow::Result<()> {
        fs::write(&self.file, offset).with_context(|| format!("cannot write {:?}", self.file))
    }
}

/// A disk for the data of the servers, in a file. It can stand still.
#[derive(Debug)]
pub(crate) struct Disk {
    directory: TempDir,
}

impl Disk {
    /// Makes it in this directory, and mounts it in the mount namespace of this process.
    pub(crate) fn new(below: &Path) -> anyhow::Result<Disk> {
        let directory = tempfile::tempdir_in(below)?;
        let image = directory.path().join("image");
        File::create(&image)?.set_len(DISK_BYTES)?;
        let disk = Disk { directory };
        fs::create_dir(disk.path())?;
        let (image, path) = (
            image.display().to_string(),
            disk.path().display().to_string(),
        );
        run(&["mkfs.ext4", "-q", &image])?;
        run(&["mount", "-o", "loop", &image, &path])?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    /// Lets each write to the disk wait for this long. Another process ends that, also if this one
    /// has ended by then.
    pub(crate) async fn stall(&self, time: Duration) -> anyhow::Result<()> {
        let path = self.path();
        let line = format!(
            "fsfreeze -f {path:?}; sleep {}; fsfreeze -u {path:?}",
            time.as_secs_f64()
        );
        tokio::process::Command::new("sh")
            .args(["-c", &line])
            .status()
            .await?;
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let path = self.path().display().to_string();
        if let Err(error) = run(&["umount", &path]) {
            eprintln!("{error:#}");
        }
    }
}
