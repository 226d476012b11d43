//! One server.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::create_counter;
use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::four_letter::{self, FourLetterWord, Monitor, Status};
use crate::handshake;
use crate::installation::Installation;
use crate::options::ServerOptions;
use crate::ports::free_port;
use crate::process::Process;

/// The number of attempts if another process takes a port before the server does.
pub(crate) const PORT_TRIES: usize = 5;

/// How often a starting server is asked whether it serves.
const LOOK: Duration = Duration::from_millis(20);

/// How long a starting server may take for one answer, before it is asked again.
const ANSWER: Duration = Duration::from_secs(2);

/// How long a server may take to end in good order.
const STOP: Duration = Duration::from_secs(5);

/// How many lines of its log an error shows.
const TAIL: usize = 30;

/// Read by the log4j of ZooKeeper up to 3.7.
const LOG4J: &str = "\
log4j.rootLogger=INFO, console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss,SSS} %-5p [%t] %c{1} - %m%n
";

/// Read by the logback of ZooKeeper from 3.8.
const LOGBACK: &str = r#"<configuration>
  <appender name="console" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5p [%t] %c{1} - %m%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="console"/></root>
</configuration>
"#;

/// A ZooKeeper server on loopback, with a port and a data directory of its own.
///
/// If this value is dropped, the server is killed and its data is deleted, also if a test panics.
/// The server does not outlive the test's process, even if that process is killed.
///
/// # Examples
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use zookeeper_recipes_testkit::{Server, ServerOptions};
///
/// let server = Server::start(ServerOptions::new()).await?;
/// let client = zookeeper_client::Client::connect(&server.connect_string()).await?;
/// assert!(client.check_stat("/zookeeper").await?.is_some());
/// assert_eq!(server.monitor().await?.watches, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    // Before the directory, so that it is gone when the directory goes.
    process: Option<Process>,
    paused: AtomicBool,
    directory: DataDirectory,
    installation: Installation,
    options: ServerOptions,
    port: u16,
    /// The `server.N` lines of its `zoo.cfg`.
    members: Vec<(String, String)>,
}

impl Server {
    /// Starts a server and waits until it serves clients. Dropping the future ends it.
    ///
    /// # Errors
    ///
    /// [`Error::Installation`] when there is no server or no Java on this machine;
    /// [`Error::Exited`] and [`Error::NotServingInTime`], with the end of its log, when it does not
    /// come up; [`Error::DataDirectory`], [`Error::NoFreePort`] and [`Error::Spawn`].
    pub async fn start(options: ServerOptions) -> Result<Self, Error> {
        let mut tries = 1;
        loop {
            let mut server = Self::prepare(options.clone(), free_port()?)?;
            server.configure()?;
            server.launch()?;
            match server.wait_until_serving().await {
                Ok(()) => return Ok(server),
                Err(_) if server.port_was_taken() && tries < PORT_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// A server that has its directory and port, and no configuration yet.
    pub(crate) fn prepare(options: ServerOptions, port: u16) -> Result<Self, Error> {
        let installation = match &options.installation {
            Some(installation) => installation.clone(),
            None => Installation::find()?,
        };
        let directory = DataDirectory::new(options.data_in.as_deref())?;
        let logging = directory.class_path();
        directory.write(&logging.join("log4j.properties"), LOG4J)?;
        directory.write(&logging.join("logback.xml"), LOGBACK)?;
        Ok(Self {
            process: None,
            paused: AtomicBool::new(false),
            directory,
            installation,
            options,
            port,
            members: Vec::new(),
        })
    }

    /// Makes it member `number` of the ensemble whose `server.N` lines these are.
    pub(crate) fn join(
        &mut self,
        members: Vec<(String, String)>,
        number: usize,
    ) -> Result<(), Error> {
        self.members = members;
        let myid = self.directory.data().join("myid");
        self.directory.write(&myid, &number.to_string())
    }

    /// Writes `zoo.cfg`.
    pub(crate) fn configure(&self) -> Result<(), Error> {
        let members = &self.members;
        let zoo_cfg = self.options.zoo_cfg(&self.directory, self.port, members);
        self.directory
            .write(&self.directory.configuration(), &zoo_cfg)
    }

    /// Sets a line of `zoo.cfg`, which takes effect when the server is [restarted](Self::restart).
    ///
    /// # Errors
    ///
    /// [`Error::DataDirectory`].
    pub fn set_configuration(
        &mut self,
        key: impl Into<String>,
        value: impl Into<String>,
    ) -> Result<(), Error> {
        self.options = self.options.clone().configuration(key, value);
        self.configure()
    }

    /// Starts the process without waiting for anything.
    pub(crate) fn launch(&mut self) -> Result<(), Error> {
        let arguments = self
            .options
            .java_arguments(&self.installation, &self.directory)?;
        let java = self.installation.java();
        let process = Process::spawn(
            java,
            &arguments,
            self.directory.path(),
            &self.directory.log(),
        )
        .map_err(|source| Error::Spawn {
            program: java.to_path_buf(),
            source,
        })?;
        self.paused.store(false, Ordering::Relaxed);
        self.process = Some(process);
        Ok(())
    }

    /// Waits until the server serves clients: it answers `srvr`, and a session can be opened.
    ///
    /// A member of an ensemble serves only with a quorum.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`] when it was stopped or killed; [`Error::Exited`] when its process
    /// ended by itself; [`Error::NotServingInTime`] after [`ServerOptions::start_timeout`].
    pub async fn wait_until_serving(&mut self) -> Result<(), Error> {
        let deadline = Instant::now() + self.options.start_timeout;
        loop {
            self.check_process()?;
            if self.serves().await {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::NotServingInTime {
                    port: self.port,
                    after: self.options.start_timeout,
                    log: self.log_tail(),
                });
            }
            sleep(LOOK).await;
        }
    }

    async fn serves(&self) -> bool {
        let address = self.connect_string();
        // Another process's server may have taken the port.
        let data = self.directory.data().display().to_string();
        match four_letter::ask_within(&address, FourLetterWord::Conf, ANSWER).await {
            Ok(configuration) if configuration.contains(&data) => {}
            _ => return false,
        }
        four_letter::ask_within(&address, FourLetterWord::Srvr, ANSWER)
            .await
            .is_ok()
            && handshake::open_and_close(&address, ANSWER).await.is_ok()
    }

    /// An error when the process is not there, or no longer.
    pub(crate) fn check_process(&mut self) -> Result<(), Error> {
        match self.exit_status()? {
            Some(status) => Err(Error::Exited {
                port: self.port,
                status,
                log: self.log_tail(),
            }),
            None => Ok(()),
        }
    }

    fn exit_status(&mut self) -> Result<Option<ExitStatus>, Error> {
        let port = self.port;
        match &mut self.process {
            Some(process) => process
                .ended()
                .map_err(|source| Error::Process { port, source }),
            None => Err(Error::NotRunning { port }),
        }
    }

    /// True if the server ended because another process had one of its ports.
    pub(crate) fn port_was_taken(&self) -> bool {
        self.log().contains("Address already in use")
    }

    /// Ends the server in good order, and waits until its process has ended.
    ///
    /// Its data stays. The server is killed if it takes more than 5 s, or if the future is dropped.
    /// The call does nothing if the server does not run.
    ///
    /// # Errors
    ///
    /// [`Error::Process`].
    pub async fn stop(&mut self) -> Result<(), Error> {
        match self.process.take() {
            Some(process) => process.terminate(STOP).await.map_err(self.process_error()),
            None => Ok(()),
        }
    }

    /// Kills the server (SIGKILL), and waits until its process has ended.
    ///
    /// Committed data stays. The call does nothing if the server does not run.
    ///
    /// # Errors
    ///
    /// [`Error::Process`].
    pub async fn kill(&mut self) -> Result<(), Error> {
        match self.process.take() {
            Some(process) => process.kill().await.map_err(self.process_error()),
            None => Ok(()),
        }
    }

    /// Stops the server if it runs, and starts it again with its data and port.
    ///
    /// The call waits until the server serves clients. If the future is dropped after the start,
    /// the server runs on.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start). The port stays the same: if another process has taken it, the
    /// error is [`Error::Exited`].
    pub async fn restart(&mut self) -> Result<(), Error> {
        self.stop().await?;
        self.launch()?;
        self.wait_until_serving().await
    }

    /// Sets the create counter of these znodes, in the data of a stopped server.
    ///
    /// The next sequential child gets the number `next`. The counter cannot be lowered. Its last
    /// number is 2147483647, and the behaviour of a server after that depends on its version.
    ///
    /// A Java program with the server's own classes changes the data, in a second or two. It needs
    /// a Java runtime with a compiler.
    ///
    /// # Errors
    ///
    /// [`Error::Running`] unless it has been stopped or killed;
    /// [`InstallationError::NoCompiler`](crate::InstallationError::NoCompiler);
    /// [`Error::Unchanged`] when there is no such znode, or its counter is beyond that number;
    /// [`Error::DataDirectory`] and [`Error::Spawn`].
    pub async fn set_create_counter(&mut self, paths: &[&str], next: i32) -> Result<(), Error> {
        let port = self.port;
        if self.process.is_some() {
            return Err(Error::Running { port });
        }
        let installation = self.installation.clone();
        create_counter::set(installation, &self.directory, port, paths, next).await
    }

    /// Pauses the server (SIGSTOP), and returns when it has stopped.
    ///
    /// Connections stay open, and the server does not answer. Its clock runs on, so sessions may
    /// expire when it resumes.
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], [`Error::Process`].
    pub fn pause(&self) -> Result<(), Error> {
        self.process()?.pause().map_err(self.process_error())?;
        self.paused.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Resumes a paused server (SIGCONT).
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`], [`Error::Process`].
    pub fn resume(&self) -> Result<(), Error> {
        self.process()?.resume().map_err(self.process_error())?;
        self.paused.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn process(&self) -> Result<&Process, Error> {
        self.process
            .as_ref()
            .ok_or(Error::NotRunning { port: self.port })
    }

    fn process_error(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let port = self.port;
        move |source| Error::Process { port, source }
    }

    /// True if the server was started, and is not stopped, killed or paused.
    pub fn is_running(&self) -> bool {
        self.process.is_some() && !self.paused.load(Ordering::Relaxed)
    }

    /// The id of the server's process; `None` when it was stopped or killed.
    pub fn process_id(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// The `dataDir` of the server. It is removed with the server.
    ///
    /// A copy of a running server's is a backup. Change it only while the server is stopped.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.data()
    }

    /// The port on 127.0.0.1 that it serves clients on, all its life.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:<port>`, for clients and four-letter words.
    pub fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Its log since it was first started.
    pub fn log(&self) -> String {
        self.directory.read_log()
    }

    fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL)..].join("\n")
    }

    /// Asks it a four-letter word.
    ///
    /// # Errors
    ///
    /// As [`four_letter::ask`].
    pub async fn ask(&self, word: FourLetterWord) -> Result<String, Error> {
        four_letter::ask(&self.connect_string(), word).await
    }

    /// Its figures (`mntr`): packets, watches, znodes, connections.
    ///
    /// # Errors
    ///
    /// As [`Monitor::read`].
    pub async fn monitor(&self) -> Result<Monitor, Error> {
        Monitor::read(&self.connect_string()).await
    }

    /// Its role and progress (`srvr`).
    ///
    /// # Errors
    ///
    /// As [`Status::read`].
    pub async fn status(&self) -> Result<Status, Error> {
        Status::read(&self.connect_string()).await
    }

    /// The paths that clients of this server watch, each with the watching sessions (`wchp`).
    ///
    /// # Errors
    ///
    /// As [`four_letter::ask`].
    pub async fn watches(&self) -> Result<BTreeMap<String, BTreeSet<i64>>, Error> {
        let answer = self.ask(FourLetterWord::Wchp).await?;
        Ok(four_letter::parse_watches(&answer))
    }

    /// The sessions that have ephemeral znodes, each with their paths (`dump`).
    ///
    /// # Errors
    ///
    /// As [`four_letter::ask`].
    pub async fn ephemerals(&self) -> Result<BTreeMap<i64, BTreeSet<String>>, Error> {
        let answer = self.ask(FourLetterWord::Dump).await?;
        Ok(four_letter::parse_ephemerals(&answer))
    }

    /// Ends a session as if it had expired. The server deletes its ephemeral znodes at once and cuts
    /// its connection. The client learns of the expiry when it reconnects.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownSession`] when there is none with this id; [`Error::Unanswered`] when it is
    /// not gone within the time of [`four_letter::PATIENCE`].
    pub async fn expire_session(&self, session_id: i64) -> Result<(), Error> {
        handshake::end_session(&self.connect_string(), session_id, four_letter::PATIENCE).await
    }
}
