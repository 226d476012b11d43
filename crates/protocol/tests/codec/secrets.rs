//! No `Debug` of a message shows a password.

use std::fmt::Debug;

use zookeeper_recipes_protocol::{
    AuthRequest, ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, FrameDecoder, Reply,
    ReplyBody, Request, RequestBody, SaslRequest, SaslResponse,
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
    let mut frame = Vec::new();
    auth.encode_frame(&mut frame);
    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    decoder.feed(&frame);
    let token = Some(SECRET.to_vec());
    let challenge = Reply::new(7, 0, ReplyBody::Sasl(SaslResponse { token }));
    let messages: [(&dyn Debug, &str); 6] = [
        (&connect, "6000"),
        (&connected, "6000"),
        (&auth, "digest"),
        (&sasl, "Sasl"),
        (&decoder, "FrameDecoder"),
        (&challenge, "Sasl"),
    ];
    let bytes = format!("{SECRET:?}");
    for (message, shown) in messages {
        let text = format!("{message:?}");
        assert!(text.contains(shown), "{text}");
        assert!(!text.contains(bytes.trim_matches(['[', ']'])), "{text}");
        assert!(!text.contains("secret"), "{text}");
    }
}
