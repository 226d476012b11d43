//! No `Debug` of a message shows a password.

use std::fmt::Debug;

use zookeeper_recipes_protocol::{
    AuthRequest, ConnectRequest, ConnectResponse, Request, RequestBody, SaslRequest,
};

const SECRET: &[u8] = b"owner:secret";

#[test]
fn debug_of_a_message_leaves_passwords_out() {
    let connect = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 7,
        timeout: 6_000,
        session_id: 11,
        password: SECRET.to_vec(),
        read_only: Some(true),
    };
    let connected = ConnectResponse {
        protocol_version: 0,
        timeout: 6_000,
        session_id: 11,
        password: SECRET.to_vec(),
        read_only: None,
    };
    let request = |body| Request { xid: -4, body };
    let auth = request(RequestBody::Auth(AuthRequest {
        kind: 0,
        scheme: "digest".to_owned(),
        auth: Some(SECRET.to_vec()),
    }));
    let sasl = request(RequestBody::Sasl(SaslRequest {
        token: Some(SECRET.to_vec()),
    }));
    let messages: [(&dyn Debug, &str); 4] = [
        (&connect, "6000"),
        (&connected, "6000"),
        (&auth, "digest"),
        (&sasl, "Sasl"),
    ];
    let bytes = format!("{SECRET:?}");
    for (message, shown) in messages {
        let text = format!("{message:?}");
        assert!(text.contains(shown), "{text}");
        assert!(!text.contains(bytes.trim_matches(['[', ']'])), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
