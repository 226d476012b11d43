//! The tests of the session's state machine and of its driver.

/// Fails, and shows the value, if it does not have this form.
macro_rules! assert_matches {
    ($value:expr, $pattern:pat $(if $guard:expr)?) => {
        match &$value {
            $pattern $(if $guard)? => {}
            other => panic!("{other:?}"),
        }
    };
}

mod bytes;
mod peer;
mod steps;
mod world;

mod closing;
mod credentials;
mod cuts;
mod driver;
mod errors;
mod handshake;
mod hostile;
mod hosts;
mod liveness;
mod names;
mod queue;
mod random;
mod refused_sessions;
mod sasl;
mod secrets;
#[cfg(target_os = "linux")]
mod sleep;
mod slow_handshakes;
mod trees;
mod watches;
