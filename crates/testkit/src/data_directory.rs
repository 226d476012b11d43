//! The data directory of a server.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::Error;

/// Memory that looks like a disk, on Linux.
const TMPFS: &str = "/dev/shm";

const PREFIX: &str = "zookeeper-recipes-testkit-";

/// A directory of one server: its data, its configuration, its log. Removed when dropped.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    directory: TempDir,
}

impl DataDirectory {
    /// Creates a directory below this one; without it on tmpfs, where a commit costs no disk, or
    /// else among the temporary files.
    pub(crate) fn new(below: Option<&Path>) -> Result<Self, Error> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        let directory = match below {
            Some(below) => builder.tempdir_in(below),
            None => builder.tempdir_in(TMPFS).or_else(|_| builder.tempdir()),
        };
        let directory = directory.map_err(|source| Error::DataDirectory {
            path: below.map_or_else(std::env::temp_dir, Path::to_path_buf),
            source,
        })?;
        let this = Self { directory };
        for inner in [this.data(), this.class_path()] {
            fs::create_dir(&inner).map_err(at(&inner))?;
        }
        Ok(this)
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The server's `dataDir`.
    pub(crate) fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// A directory that goes before all jars, so that our logging configuration is the one found.
    pub(crate) fn class_path(&self) -> PathBuf {
        self.path().join("class_path")
    }

    pub(crate) fn configuration(&self) -> PathBuf {
        self.path().join("zoo.cfg")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path().join("server.log")
    }

    pub(crate) fn write(&self, path: &Path, content: &str) -> Result<(), Error> {
        fs::write(path, content).map_err(at(path))
    }

    /// Everything the server has written to its log since it was first started; empty before.
    pub(crate) fn read_log(&self) -> String {
        match fs::read(self.log()) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => String::new(),
        }
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_path_buf();
    move |source| Error::DataDirectory { path, source }
}
