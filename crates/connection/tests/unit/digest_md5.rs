//! Tests of `src/session/digest_md5.rs`.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const CHALLENGE: &str = r#"realm="zk-sasl-md5",nonce="n\"once",charset=utf-8,algorithm=md5-sess"#;

fn bob() -> DigestMd5 {
    DigestMd5::new(b"b\"ob:secret:and more", 7)
}

/// The example of RFC 2831, section 4.
#[test]
fn digests_are_those_of_the_standard() {
    let keys = Keys {
        user: "chris",
        password: "secret",
        realm: "elwood.innosoft.com",
        nonce: "OA6MG9tEQGm2hh",
        cnonce: "OA6MHXh6VqTrRk",
        uri: "imap/elwood.innosoft.com",
    };
    let of_client = keys.digest("AUTHENTICATE");
    assert_eq!(of_client, "d388dad90d4bbd760a152321f2143af7");
    assert_eq!(keys.digest(""), "ea40f60335c427b5527b84dbabcdfffd");
}

#[test]
fn response_has_the_fields_that_servers_read() {
    let mut bob = bob();
    assert!(bob.begin().is_empty());
    let Some(SaslStep::Respond(response)) = bob.next(CHALLENGE.as_bytes()) else {
        panic!("no response");
    };
    let response = fields(&response).expect("fields");
    for (name, value) in [
        ("username", "b\"ob"),
        ("realm", "zk-sasl-md5"),
        ("nonce", "n\"once"),
        ("nc", "00000001"),
        ("digest-uri", "zookeeper/zk-sasl-md5"),
        ("qop", "auth"),
        ("charset", "utf-8"),
    ] {
        assert_eq!(response[name], value, "{name}");
    }
    let keys = Keys {
        user: "b\"ob",
        password: "secret:and more",
        realm: "zk-sasl-md5",
        nonce: "n\"once",
        cnonce: &response["cnonce"],
        uri: URI,
    };
    assert_eq!(response["response"], keys.digest("AUTHENTICATE"));
    let proof = format!("rspauth={}", keys.digest(""));
    assert_eq!(bob.next(proof.as_bytes()), Some(SaslStep::Done));
    assert_eq!(bob.next(proof.as_bytes()), None, "each proof counts once");
}

#[test]
fn exchange_ends_at_a_server_that_asks_for_something_else_or_does_not_know_the_password() {
    for challenge in [
        "",
        "nonce",
        r#"nonce="without an end,algorithm=md5-sess"#,
        r#"realm="zk-sasl-md5",algorithm=md5-sess"#,
        r#"nonce="n",algorithm=md5"#,
        r#"nonce="n""#,
        r#"nonce="n",algorithm=md5-sess,qop="auth-int,auth-conf""#,
        "rspauth=00000000000000000000000000000000",
    ] {
        assert_eq!(bob().next(challenge.as_bytes()), None, "{challenge}");
    }
    for proof in ["", "rspauth=0", "rspauth", CHALLENGE] {
        let mut bob = bob();
        assert!(bob.next(CHALLENGE.as_bytes()).is_some());
        assert_eq!(bob.next(proof.as_bytes()), None, "{proof}");
    }
}

#[test]
fn several_protections_and_realms_may_be_offered() {
    let challenge = r#"realm="a",realm="b",qop="auth-conf, auth",nonce="n",algorithm=md5-sess"#;
    let Some(SaslStep::Respond(response)) = bob().next(challenge.as_bytes()) else {
        panic!("no response");
    };
    assert_eq!(fields(&response).expect("fields")["realm"], "a");
}

/// As Java's server encodes them.
#[test]
fn password_is_latin_if_it_can_be() {
    assert_eq!(encoded("zür"), [b'z', 0xfc, b'r']);
    assert_eq!(encoded("zü€"), "zü€".as_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tokens_end_the_exchange_or_continue_it(tokens in vec("[ -~\u{80}-\u{90}]{0,40}", 1..4)) {
        let mut bob = bob();
        for token in tokens {
            let next = bob.next(token.as_bytes());
            prop_assert!(next != Some(SaslStep::Done));
        }
    }

    #[test]
    fn quoted_text_is_read_as_it_was(text in any::<String>(), behind in any::<String>()) {
        let both = quoted(&text) + &behind;
        prop_assert_eq!(unquoted(&both[1..]), Some((text, &*behind)));
    }
}
