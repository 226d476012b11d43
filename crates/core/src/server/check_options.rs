//! The options that no session can be opened with, and those that an ensemble does not use.

use std::fmt;
use std::time::Duration;

use crate::invalid_input::InvalidInput;
use crate::owner::check_service;
use crate::server::connect_string::ConnectString;
use crate::server::options::{ConnectOptions, SHORTEST_TIMEOUT};
use crate::server::scope::{MIN_LIMIT, OVERHEAD};

/// The longest time of ZooKeeper's protocol.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// The largest `jute.maxbuffer` that a server can have.
const MAX_LIMIT: usize = i32::MAX as usize;

impl ConnectOptions {
    /// Refuses options that no session can be opened with. No error contains credentials.
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        let timeout = self.session_timeout.unwrap_or(LONGEST);
        let tick = self.tick.unwrap_or(LONGEST);
        let limit = self.jute_maxbuffer;
        check_range("session timeout", timeout, SHORTEST_TIMEOUT, LONGEST)?;
        check_range("tick", tick, Duration::from_nanos(1), LONGEST)?;
        check_range("jute.maxbuffer", limit, MIN_LIMIT, MAX_LIMIT)?;
        let of_sasl = self.auth.iter().filter(|(scheme, _)| scheme == "sasl");
        let has_two_users = of_sasl.count() > 1;
        for (scheme, credentials) in &self.auth {
            let refuse = |problem| Err(InvalidInput::new("scheme", scheme, problem));
            let has_user = matches!(&**scheme, "digest" | "sasl");
            if has_user && !credentials.contains(&b':') {
                return refuse("needs credentials of the form user:password");
            }
            if scheme == "sasl" && has_two_users {
                return refuse("is given twice, and a session shows one user by SASL");
            }
            let bytes = OVERHEAD + scheme.len() + credentials.len();
            if bytes > limit {
                let problem = format!("are longer than the {limit} bytes that the servers accept");
                let given = format!("of {bytes} bytes");
                return Err(InvalidInput::new("credentials", given, problem));
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
    /// The options for the connections are `session_timeout`, `auth` and `tls`. An
    /// [`Ensemble`](crate::Ensemble) names the ones that it uses. The session uses all others.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`], which names the option and the way.
    pub fn refuse_all_but(&self, used: &[&str], way: &str) -> Result<(), InvalidInput> {
        let options = [
            ("session_timeout", self.session_timeout.is_some()),
            ("auth", !self.auth.is_empty()),
            ("tls", self.is_encrypted),
        ];
        let unused = options.into_iter().filter(|(name, _)| !used.contains(name));
        InvalidInput::refuse_set(unused, way)
    }
}

/// Refuses a value that is out of range.
fn check_range<T: PartialOrd + fmt::Debug>(
    subject: &'static str,
    given: T,
    least: T,
    most: T,
) -> Result<(), InvalidInput> {
    if given >= least && given <= most {
        return Ok(());
    }
    let problem = format!("is not between {least:?} and {most:?}");
    Err(InvalidInput::new(subject, format!("{given:?}"), problem))
}

/// The error of options of TLS that cannot be used.
#[cfg(feature = "tls")]
pub(crate) fn refused_tls(error: &std::io::Error) -> InvalidInput {
    InvalidInput::new("option", "tls", format!("cannot be used: {error}"))
}

#[cfg(test)]
#[path = "../../tests/unit/check_options.rs"]
mod tests;
