//! The machine and the server that a bench ran on.

use std::fmt;
use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use zookeeper_recipes_testkit::{Error, FourLetterWord, Server};

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
    /// Describes this machine and this server.
    ///
    /// # Errors
    ///
    /// If the server does not answer.
    pub async fn with(server: &Server) -> Result<Machine, Error> {
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
            servers: 1,
        })
    }

    /// The same, with clients that reach the servers by this network.
    #[must_use]
    pub fn over(mut self, network: impl Into<String>) -> Machine {
        self.network = network.into();
        self
    }

    /// The same, with this many servers in one ensemble.
    #[must_use]
    pub fn of_an_ensemble(mut self, servers: usize) -> Machine {
        self.servers = servers;
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
    let of_linux = fs::read_to_string("/proc/cpuinfo").ok().and_then(|lines| {
        let models = lines.lines().filter_map(|line| line.split_once(':'));
        let mut models = models.filter(|(key, _)| key.trim() == "model name");
        Some(models.next()?.1.trim().to_owned())
    });
    let of_macos = || {
        let mut sysctl = Command::new("sysctl");
        let output = sysctl.args(["-n", "machdep.cpu.brand_string"]).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    of_linux
        .or_else(of_macos)
        .unwrap_or_else(|| format!("{} processor", std::env::consts::ARCH))
}

#[cfg(unix)]
fn kernel() -> String {
    let kernel = rustix::system::uname();
    let name = kernel.sysname().to_string_lossy();
    let release = kernel.release().to_string_lossy();
    format!("{name} {release}")
}

#[cfg(not(unix))]
fn kernel() -> String {
    std::env::consts::OS.to_owned()
}

fn system() -> String {
    let kernel = kernel();
    let distribution = fs::read_to_string("/etc/os-release")
        .ok()
        .and_then(|lines| {
            let name = value(&lines, "PRETTY_NAME")?;
            Some(name.trim_matches('"').to_owned())
        });
    match distribution {
        Some(distribution) => format!("{distribution}, {kernel}"),
        None => kernel,
    }
}

#[cfg(test)]
mod tests {
    use zookeeper_recipes_testkit::ServerOptions;

    use super::*;

    #[tokio::test]
    async fn machine_says_what_it_runs_and_not_where() -> Result<(), Error> {
        let server = Server::start(ServerOptions::new()).await?;
        let machine = Machine::with(&server).await?;
        let starts_with_a_digit = |text: &str| text.starts_with(|first: char| first.is_numeric());
        assert!(starts_with_a_digit(&machine.zookeeper), "{machine:?}");
        assert!(starts_with_a_digit(&machine.java), "{machine:?}");
        assert!(!machine.processor.is_empty() && machine.cores > 0);
        assert!(!machine.slug().contains(|character: char| {
            !character.is_ascii_alphanumeric() && character != '-'
        }));
        Ok(())
    }
}
