//! What can go wrong around a test server.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::four_letter::word::FourLetterWord;
use crate::installation::InstallationError;

/// The error of a test server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no ZooKeeper server, or no Java, on this machine.
    #[error(transparent)]
    Installation(#[from] InstallationError),

    /// A data directory could not be made, written or read.
    #[error("cannot use {path:?} as a data directory")]
    DataDirectory {
        /// The file or directory in question.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// No free port was found on 127.0.0.1.
    #[error("cannot find a free port on 127.0.0.1")]
    NoFreePort(#[source] io::Error),

    /// A proxy between the members of an ensemble could not be started.
    #[error("cannot start a proxy on 127.0.0.1")]
    Proxy(#[source] io::Error),

    /// The ensemble was not started with proxies between its members.
    #[error("members can be cut off only in an ensemble started with partitions")]
    NoPartitions,

    /// The server's process could not be started.
    #[error("cannot start {program:?}")]
    Spawn {
        /// The program that was to be run.
        program: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },

    /// The server's process ended when it should have served.
    #[error("the ZooKeeper server on port {port} ended ({status}); the end of its log:\n{log}")]
    Exited {
        /// The port it was to serve clients on.
        port: u16,
        /// How it ended.
        status: ExitStatus,
        /// The last lines of its log.
        log: String,
    },

    /// The server runs, but did not serve in time.
    #[error(
        "the ZooKeeper server on port {port} does not serve after {after:?}; the end of its log:\n{log}"
    )]
    NotServingInTime {
        /// The port it was to serve clients on.
        port: u16,
        /// How long was waited.
        after: Duration,
        /// The last lines of its log.
        log: String,
    },

    /// No quorum of the ensemble served in time.
    #[error("no quorum of the ensemble {connect_string} serves after {after:?}: {members}")]
    NoQuorum {
        /// The ensemble's connect string.
        connect_string: String,
        /// How long was waited.
        after: Duration,
        /// What each member said last, in order.
        members: String,
    },

    /// The server is stopped or killed, and the request needs a running server.
    #[error("the ZooKeeper server on port {port} is not running")]
    NotRunning {
        /// The port it served clients on.
        port: u16,
    },

    /// The server runs, and the request needs a stopped or killed server.
    #[error("the ZooKeeper server on port {port} is running")]
    Running {
        /// The port it serves clients on.
        port: u16,
    },

    /// The data of a stopped server could not be changed.
    #[error("the data of the ZooKeeper server on port {port} could not be changed: {said}")]
    Unchanged {
        /// The port it served clients on.
        port: u16,
        /// What the program said that was to change it.
        said: String,
    },

    /// A signal could not be sent to the server's process, or its end not awaited.
    #[error("cannot control the process of the ZooKeeper server on port {port}")]
    Process {
        /// The port it serves clients on.
        port: u16,
        /// What the operating system said.
        source: io::Error,
    },

    /// A server could not be spoken to: refused, cut, or silent for too long
    /// ([`io::ErrorKind::TimedOut`]).
    #[error("no answer from {address} to {question}")]
    Unanswered {
        /// The server's address, host and port.
        address: String,
        /// What it was asked.
        question: &'static str,
        /// What the operating system said.
        source: io::Error,
    },

    /// The server answers, and says that it does not serve requests now: it starts, or looks for a
    /// quorum.
    #[error("the ZooKeeper server {address} is not currently serving requests")]
    NotServing {
        /// The server's address, host and port.
        address: String,
    },

    /// The server does not answer this four-letter word; its `4lw.commands.whitelist` says which it
    /// does.
    #[error("the ZooKeeper server {address} does not have {word} in its 4lw.commands.whitelist")]
    NotWhitelisted {
        /// The server's address, host and port.
        address: String,
        /// The word that was refused.
        word: FourLetterWord,
    },

    /// An answer that no ZooKeeper server gives.
    #[error("unexpected answer to {question}: {answer:?}")]
    Malformed {
        /// The question.
        question: &'static str,
        /// What came back, or the part of it that made no sense.
        answer: String,
    },

    /// The server knows no session with this id.
    #[error("the ZooKeeper server {address} has no session {session_id:#x}")]
    UnknownSession {
        /// The server's address, host and port.
        address: String,
        /// The session's id.
        session_id: i64,
    },

    /// The directory of a check exists already, cannot be created, or is left.
    #[error("{path}: {problem}")]
    Directory {
        /// The directory.
        path: String,
        /// What the servers answered.
        problem: String,
    },

    /// `ZOOKEEPER_CONNECT` is set, and is no connect string.
    #[error("ZOOKEEPER_CONNECT is no connect string (host:port,host:port/chroot): {value:?}")]
    ConnectString {
        /// The variable's value.
        value: String,
    },
}
