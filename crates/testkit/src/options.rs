//! How a test server is to run.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::data_directory::DataDirectory;
use crate::error::Error;
use crate::installation::Installation;

/// How hard the Java runtime works on making the server fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compiler {
    /// Only the first tier, for tests: Java starts soonest and takes the least processor time.
    #[default]
    Quick,
    /// All tiers, as in production, for benchmarks, which should let Java warm up.
    Full,
}

/// How a [`Server`](crate::Server), or each member of an [`Ensemble`](crate::Ensemble), is to run.
///
/// The defaults suit tests: a tick of 500 ms, so that sessions of a second are possible; nothing
/// waits for a disk; every four-letter word is answered; no limit on connections; no admin server.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_testkit::ServerOptions;
///
/// let options = ServerOptions::new()
///     .tick_time(Duration::from_millis(200))
///     .container_check_interval(Duration::from_secs(1))
///     .configuration("globalOutstandingLimit", "10");
/// ```
#[derive(Clone, Debug)]
pub struct ServerOptions {
    pub(crate) start_timeout: Duration,
    pub(crate) installation: Option<Installation>,
    pub(crate) data_in: Option<PathBuf>,
    tick_time: Duration,
    max_session_timeout: Duration,
    configuration: Vec<(String, String)>,
    system_properties: Vec<(String, String)>,
    compiler: Compiler,
    heap_mebibytes: u32,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            start_timeout: Duration::from_secs(60),
            installation: None,
            data_in: None,
            tick_time: Duration::from_millis(500),
            max_session_timeout: Duration::from_secs(60),
            configuration: Vec::new(),
            system_properties: Vec::new(),
            compiler: Compiler::default(),
            heap_mebibytes: 256,
        }
    }
}

impl ServerOptions {
    /// The defaults, which suit tests.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The server's clock: sessions expire at a tick, and the shortest session lasts two. The unit
    /// is whole milliseconds, the default 500 ms.
    #[must_use]
    pub fn tick_time(mut self, tick_time: Duration) -> Self {
        self.tick_time = tick_time;
        self
    }

    /// The shortest session timeout that a client gets; two ticks unless set.
    #[must_use]
    pub fn min_session_timeout(self, timeout: Duration) -> Self {
        self.configuration("minSessionTimeout", timeout.as_millis().to_string())
    }

    /// The longest session timeout that a client gets; 60 s unless set.
    #[must_use]
    pub fn max_session_timeout(mut self, timeout: Duration) -> Self {
        self.max_session_timeout = timeout;
        self
    }

    /// How often the server removes empty containers. The default is once a minute.
    ///
    /// Only containers that have had a child are removed.
    #[must_use]
    pub fn container_check_interval(self, interval: Duration) -> Self {
        self.system_property(
            "znode.container.checkIntervalMs",
            interval.as_millis().to_string(),
        )
    }

    /// Enables znodes with a time to live.
    ///
    /// They need a part of the numbers for session ids.
    #[must_use]
    pub fn extended_types(self) -> Self {
        self.system_property("zookeeper.extendedTypesEnabled", "true")
    }

    /// A line of `zoo.cfg`. It replaces the default line with the same key.
    #[must_use]
    pub fn configuration(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        let key = key.into();
        self.configuration.retain(|(given, _)| *given != key);
        self.configuration.push((key, value.into()));
        self
    }

    /// A Java system property, as `-Dname=value`.
    #[must_use]
    pub fn system_property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.system_properties.push((name.into(), value.into()));
        self
    }

    /// How far the Java runtime optimizes the server.
    #[must_use]
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.compiler = compiler;
        self
    }

    /// The largest heap, in MiB; 256 unless set.
    #[must_use]
    pub fn heap_mebibytes(mut self, mebibytes: u32) -> Self {
        self.heap_mebibytes = mebibytes;
        self
    }

    /// How long a start may take until the server serves; 60 s unless set.
    #[must_use]
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = timeout;
        self
    }

    /// The server and Java runtime to use; what [`Installation::find`] finds unless set.
    #[must_use]
    pub fn installation(mut self, installation: Installation) -> Self {
        self.installation = Some(installation);
        self
    }

    /// Keeps the data below this directory, and waits for the disk at each commit. Unless set, the
    /// data is on tmpfs if the system has it, and no commit waits.
    #[must_use]
    pub fn data_on_disk(mut self, below: impl Into<PathBuf>) -> Self {
        self.data_in = Some(below.into());
        self.system_property("zookeeper.forceSync", "yes")
    }

    /// The content of `zoo.cfg` for a server on `port`, member of the ensemble whose `server.N`
    /// lines `members` holds.
    pub(crate) fn zoo_cfg(
        &self,
        directory: &DataDirectory,
        port: u16,
        members: &[(String, String)],
    ) -> String {
        let lines = [
            ("tickTime", self.tick_time.as_millis().to_string()),
            ("initLimit", "20".to_owned()),
            ("syncLimit", "5".to_owned()),
            ("dataDir", directory.data().display().to_string()),
            ("clientPort", port.to_string()),
            ("clientPortAddress", "127.0.0.1".to_owned()),
            ("maxClientCnxns", "0".to_owned()),
            (
                "maxSessionTimeout",
                self.max_session_timeout.as_millis().to_string(),
            ),
            ("admin.enableServer", "false".to_owned()),
            ("4lw.commands.whitelist", "*".to_owned()),
        ];
        let mut zoo_cfg = String::new();
        let given = |key: &str| self.configuration.iter().any(|(given, _)| given == key);
        let defaults = lines
            .iter()
            .map(|(key, value)| (*key, value.as_str()))
            .filter(|(key, _)| !given(key));
        let rest = self.configuration.iter().chain(members);
        for (key, value) in defaults.chain(rest.map(|(key, value)| (key.as_str(), value.as_str())))
        {
            // Writing to a String does not fail.
            let _ = writeln!(zoo_cfg, "{key}={value}");
        }
        zoo_cfg
    }

    /// What `java` is given to run a server.
    pub(crate) fn java_arguments(
        &self,
        installation: &Installation,
        directory: &DataDirectory,
    ) -> Result<Vec<OsString>, Error> {
        let mut arguments: Vec<OsString> = vec![
            format!("-Xmx{}m", self.heap_mebibytes).into(),
            "-XX:+UseSerialGC".into(),
            // The file it would keep among the temporary ones stays there when it is killed.
            "-XX:-UsePerfData".into(),
            "-Djava.awt.headless=true".into(),
            "-Dzookeeper.forceSync=no".into(),
            "-Dzookeeper.jmx.log4j.disable=true".into(),
            "-Dorg.slf4j.simpleLogger.showDateTime=true".into(),
            "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS".into(),
        ];
        if self.compiler == Compiler::Quick {
            arguments.push("-XX:TieredStopAtLevel=1".into());
        }
        for (name, value) in &self.system_properties {
            arguments.push(format!("-D{name}={value}").into());
        }
        let mut class_path = directory.class_path().into_os_string();
        class_path.push(":");
        class_path.push(installation.class_path());
        arguments.extend([
            "-cp".into(),
            class_path,
            "org.apache.zookeeper.server.quorum.QuorumPeerMain".into(),
            directory.configuration().into_os_string(),
        ]);
        Ok(arguments)
    }
}
