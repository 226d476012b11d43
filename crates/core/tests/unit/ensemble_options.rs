//! Options of several sources, and ensembles that take none.

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn credentials(names: &[&str]) -> Vec<(String, Vec<u8>)> {
    let each = names
        .iter()
        .map(|name| ("digest".to_owned(), name.as_bytes().to_vec()));
    each.collect()
}

#[test]
fn options_of_a_session_count_before_those_of_its_ensemble_and_credentials_are_added() {
    let ensemble = EnsembleOptions {
        session_timeout: Some(SECOND),
        auth: credentials(&["a:1", "b:2"]),
    };
    let session = EnsembleOptions {
        session_timeout: Some(3 * SECOND),
        auth: credentials(&["b:2", "c:3"]),
    };
    let both = ensemble.and(&session);
    assert_eq!(both.session_timeout, Some(3 * SECOND));
    assert_eq!(both.auth, credentials(&["a:1", "b:2", "c:3"]));
}

#[test]
fn ensemble_that_connects_with_options_of_its_own_refuses_each() {
    assert!(EnsembleOptions::default().refuse().is_ok());
    for options in [
        EnsembleOptions {
            session_timeout: Some(SECOND),
            ..EnsembleOptions::default()
        },
        EnsembleOptions {
            auth: credentials(&["a:1"]),
            ..EnsembleOptions::default()
        },
    ] {
        assert!(options.refuse().is_err(), "{options:?}");
    }
}
