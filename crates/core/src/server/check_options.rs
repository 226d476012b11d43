//! The options that no session can be opened with, and those that an ensemble does not use.

use std::mem;
use std::time::Duration;

use crate::invalid_input::InvalidInput;
use crate::owner::check_service;
use crate::server::connect_string::ConnectString;
use crate::server::options::{ConnectOptions, ConnectionOption, SHORTEST_TIMEOUT};
use crate::server::scope;

/// The longest time of ZooKeeper's protocol.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// The largest `jute.maxbuffer` that a server can have.
const MAX_LIMIT: usize = i32::MAX as usize;

impl ConnectOptions {
    /// Refuses options that no session can be opened with. No error contains credentials.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let refuse = |subject, given: String, problem: String| {
            Err(InvalidInput::new(subject, given, problem))
        };
        let times = [
            ("session timeout", self.session_timeout, SHORTEST_TIMEOUT),
            ("tick", self.tick, Duration::from_nanos(1)),
        ];
        for (subject, given, least) in times {
            let Some(given) = given else { continue };
            let shown = format!("{given:?}");
            if given < least {
                return refuse(
                    subject,
                    shown,
                    format!("is too short: the least is {least:?}"),
                );
            }
            if given > LONGEST {
                let problem = "is too long for ZooKeeper's protocol: the most is";
                return refuse(subject, shown, format!("{problem} {LONGEST:?}"));
            }
        }
        let limit = self.jute_maxbuffer;
        if !(scope::MIN_LIMIT..=MAX_LIMIT).contains(&limit) {
            let problem = format!("is not between {} and {MAX_LIMIT}", scope::MIN_LIMIT);
            return refuse("jute.maxbuffer", format!("of {limit} bytes"), problem);
        }
        let mut has_sasl = false;
        for (scheme, credentials) in &self.auth {
            let problem = match &**scheme {
                "digest" | "sasl" if !credentials.contains(&b':') => {
                    "needs credentials of the form user:password"
                }
                "sasl" if mem::replace(&mut has_sasl, true) => {
                    "is given twice, and a session shows one user by SASL"
                }
                _ => "",
            };
            if !problem.is_empty() {
                return refuse("scheme", scheme.clone(), problem.to_owned());
            }
            let bytes = scope::OVERHEAD + scheme.len() + credentials.len();
            if bytes > limit {
                let problem = format!("are longer than the {limit} bytes that the servers accept");
                return refuse("credentials", format!("of {bytes} bytes"), problem);
            }
        }
        self.owner.as_deref().map_or(Ok(()), check_service)
    }

    /// Refuses a host whose scheme contradicts the options, and a host that no certificate can be
    /// valid for, if connections are encrypted.
    pub(crate) fn check_hosts(&self, connect_string: &ConnectString) -> Result<(), InvalidInput> {
        connect_string.check_schemes(self.is_encrypted)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            for host in &connect_string.hosts {
                tls.check_host(host).map_err(|error| refused_tls(&error))?;
            }
        }
        Ok(())
    }

    /// Refuses the options that are set and that this `way` of opening a session does not use.
    ///
    /// An [`Ensemble`](crate::Ensemble) names the options that it uses.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`], which names the option and the way.
    pub fn refuse_all_but(&self, used: &[ConnectionOption], way: &str) -> Result<(), InvalidInput> {
        use ConnectionOption::{Auth, SessionTimeout, Tls};
        let options = [
            (
                SessionTimeout,
                "session_timeout",
                self.session_timeout.is_some(),
            ),
            (Auth, "auth", !self.auth.is_empty()),
            (Tls, "tls", self.is_encrypted),
        ];
        let unused = options
            .into_iter()
            .filter(|(option, ..)| !used.contains(option));
        InvalidInput::refuse_set(unused.map(|(_, name, is_set)| (name, is_set)), way)
    }
}

/// The error of options of TLS that cannot be used.
#[cfg(feature = "tls")]
pub(crate) fn refused_tls(error: &std::io::Error) -> InvalidInput {
    InvalidInput::new("option", "tls", format!("cannot be used: {error}"))
}

#[cfg(test)]
#[path = "../../tests/unit/check_options.rs"]
mod tests;
