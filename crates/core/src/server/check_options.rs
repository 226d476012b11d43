//! The options that no session can be opened with.

use std::time::Duration;

use crate::invalid_input::InvalidInput;
use crate::owner::check_service;
use crate::server::options::{ConnectOptions, SHORTEST_TIMEOUT};
use crate::server::request_limit;

impl ConnectOptions {
    pub(crate) fn check(&self) -> Result<(), InvalidInput> {
        const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);
        let too_long = || format!("is too long for ZooKeeper's protocol: the most is {LONGEST:?}");
        if let Some(timeout) = self.session_timeout {
            let given = format!("{timeout:?}");
            if timeout < SHORTEST_TIMEOUT {
                let problem =
                    format!("is too short to keep a session: the least is {SHORTEST_TIMEOUT:?}");
                return Err(InvalidInput::new("session timeout", given, problem));
            }
            if timeout > LONGEST {
                return Err(InvalidInput::new("session timeout", given, too_long()));
            }
        }
        for (scheme, credentials) in &self.auth {
            if ["digest", "sasl"].contains(&&**scheme) && !credentials.contains(&b':') {
                let problem = "needs credentials of the form user:password";
                return Err(InvalidInput::new("scheme", scheme.clone(), problem));
            }
        }
        if let Some(owner) = &self.owner {
            check_service(owner)?;
        }
        request_limit::check_option(self.jute_maxbuffer)?;
        for (scheme, credentials) in &self.auth {
            request_limit::check_credentials(self.jute_maxbuffer, scheme, credentials)?;
        }
        let Some(tick) = self.tick else { return Ok(()) };
        if tick.is_zero() {
            return Err(InvalidInput::new("tick", "0", "must not be zero"));
        }
        if tick > LONGEST {
            return Err(InvalidInput::new("tick", format!("{tick:?}"), too_long()));
        }
        Ok(())
    }
}
