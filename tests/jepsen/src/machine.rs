//! The disk of the servers.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::namespace::run;
use tempfile::TempDir;

const DISK_BYTES: u64 = 512 << 20;

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
        let (image, path) = (image.display(), disk.path());
        run(&format!("mkfs.ext4 -q {image}"))?;
        run(&format!("mount -o loop {image} {}", path.display()))?;
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
        if let Err(error) = run(&format!("umount {}", self.path().display())) {
            eprintln!("{error:#}");
        }
    }
}
