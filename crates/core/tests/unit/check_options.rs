//! Which options are refused, and what they say of a session's identity.

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);

fn timeout(timeout: Duration) -> ConnectOptions {
    ConnectOptions::new().session_timeout(timeout)
}

fn is_anonymous(options: &ConnectOptions) -> bool {
    options.scope("/").is_anonymous
}

#[test]
fn session_timeout_is_between_its_limits() {
    for accepted in [SHORTEST_TIMEOUT, LONGEST] {
        assert!(timeout(accepted).check().is_ok(), "{accepted:?}");
    }
    for refused in [SHORTEST_TIMEOUT - MILLISECOND, LONGEST + MILLISECOND] {
        assert!(timeout(refused).check().is_err(), "{refused:?}");
    }
}

/// A session without a certificate has no identity by TLS.
#[cfg(feature = "tls")]
#[test]
fn only_a_certificate_is_an_identity_by_tls() {
    use zookeeper_recipes_connection::TlsOptions;

    let options = |tls| ConnectOptions::new().tls(tls);
    assert!(is_anonymous(&options(TlsOptions::new())));
    let shown = TlsOptions::new().client_certificate(b"a certificate", b"its key");
    assert!(!is_anonymous(&options(shown)));
}

#[test]
fn tick_is_not_zero_and_not_too_long() {
    for accepted in [MILLISECOND, LONGEST] {
        let options = timeout(LONGEST).tick(accepted);
        assert!(options.check().is_ok(), "{accepted:?}");
    }
    for refused in [Duration::ZERO, LONGEST + MILLISECOND] {
        let options = timeout(LONGEST).tick(refused);
        assert!(options.check().is_err(), "{refused:?}");
    }
}

#[test]
fn session_is_anonymous_if_it_shows_no_credentials() {
    assert!(is_anonymous(&ConnectOptions::new()));
    let known = ConnectOptions::new().auth("digest", "user:password");
    assert!(!is_anonymous(&known));
}

#[test]
fn credentials_that_no_request_can_carry_are_refused() {
    const LIMIT: usize = MIN_LIMIT;
    let of = |scheme: &str, bytes: usize| {
        let options = ConnectOptions::new().jute_maxbuffer(LIMIT);
        options.auth(scheme, vec![b'x'; bytes]).check()
    };
    let most = |scheme: &str| {
        let mut accepted = LIMIT - 1_000..LIMIT;
        let most = accepted.rfind(|bytes| of(scheme, *bytes).is_ok());
        most.expect("shorter ones are accepted")
    };
    // The request contains both.
    assert_eq!(most("other"), most("longer") + 1);
    let error = of("other", most("other") + 1).expect_err("it is too long");
    let text = error.to_string();
    assert!(text.contains(&format!("of {} bytes", LIMIT + 1)), "{text}");
}
