//! The machine and the server that a bench ran on.

use std::fmt;
use std::fs;
use std::thread::available_parallelism;

use zookeeper_recipes_testkit::{Ensemble, Error, FourLetterWord};

/// A machine, and the software on it that decides the figures. It has no name and no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    processor: String,
    cores: usize,
    system: String,
    zookeeper: String,
    java: String,
    data: &'static str,
    network: String,
    servers: usize,
}

impl Machine {
    /// Describes this machine and these servers.
    pub async fn with(ensemble: &Ensemble) -> Result<Machine, Error> {
        let server = &ensemble.members()[0];
        let environment = server.ask(FourLetterWord::Envi).await?;
        let configuration = server.ask(FourLetterWord::Conf).await?;
        let java = value(&environment, "java.version").unwrap_or("of unknown version");
        let zookeeper = server.status().await?.version;
        // The version is followed by the build.
        let zookeeper = zookeeper.split(['-', ',']).next().unwrap_or_default();
        let data = value(&configuration, "dataDir").unwrap_or_default();
        Ok(Machine {
            processor: processor(),
            cores: available_parallelism().map_or(1, usize::from),
            system: system(),
            zookeeper: zookeeper.trim().to_owned(),
            java: java.to_owned(),
            data: match data.starts_with("/dev/shm") {
                true => "tmpfs",
                false => "disk",
            },
            network: "clients over loopback".to_owned(),
            servers: ensemble.members().len(),
        })
    }

    /// The same, with clients that reach the servers by this network.
    #[must_use]
    pub fn over(mut self, network: impl Into<String>) -> Machine {
        self.network = network.into();
        self
    }

    /// The machine's name, fit to be part of a file's name.
    pub(super) fn slug(&self) -> String {
        let processor = self.processor.replace("(R)", "").replace("(TM)", "");
        let name = format!("{processor} {} cores", self.cores);
        let mut slug = String::new();
        for character in name.chars() {
            match character {
                _ if character.is_ascii_alphanumeric() => slug.push(character.to_ascii_lowercase()),
                _ if slug.is_empty() || slug.ends_with('-') => {}
                _ => slug.push('-'),
            }
        }
        slug.trim_end_matches('-').to_owned()
    }
}

/// Writes whole sentences.
impl fmt::Display for Machine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            processor,
            cores,
            system,
            zookeeper,
            java,
            data,
            network,
            servers,
        } = self;
        let place = match servers {
            1 => "alone".to_owned(),
            servers => format!("one of {servers} in an ensemble"),
        };
        write!(
            formatter,
            "Machine: {processor}, {cores} cores for clients and server; {system}. \
             Server: ZooKeeper {zookeeper} on Java {java}, {place}, its data on {data}; \
             {network}."
        )
    }
}

/// The text behind `name=` in one of the lines.
fn value<'a>(lines: &'a str, name: &str) -> Option<&'a str> {
    lines
        .lines()
        .filter_map(|line| line.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim())
}

fn processor() -> String {
    let lines = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut pairs = lines.lines().filter_map(|line| line.split_once(':'));
    let model = pairs.find(|(key, _)| key.trim() == "model name");
    model.map_or_else(
        || format!("{} processor", std::env::consts::ARCH),
        |(_, model)| model.trim().to_owned(),
    )
}

fn system() -> String {
    let kernel = rustix::system::uname();
    let name = kernel.sysname().to_string_lossy();
    let kernel = format!("{name} {}", kernel.release().to_string_lossy());
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    match value(&release, "PRETTY_NAME") {
        Some(distribution) => format!("{}, {kernel}", distribution.trim_matches('"')),
        None => kernel,
    }
}
