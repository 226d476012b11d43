//! What is encoded is decoded as it was.

use proptest::prelude::*;
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, Reply, ReplyHeader, Request, RequestHeader,
};

use crate::bytes::{body, reply_frame, request_frame};
use crate::messages;

proptest! {
    #[test]
    fn requests(request in messages::request()) {
        let body = body(&request_frame(&request));
        let header = RequestHeader::peek(&body).expect("a header");
        prop_assert_eq!((header.xid, header.opcode), (request.xid, request.body.opcode()));
        prop_assert_eq!(Request::decode(&body), Ok(request));
    }

    #[test]
    fn replies((opcode, reply) in messages::reply()) {
        let body = body(&reply_frame(&reply));
        prop_assert_eq!(ReplyHeader::peek(&body), Ok(reply.header));
        prop_assert_eq!(Reply::decode(&body, opcode), Ok(reply));
    }

    #[test]
    fn handshakes(request in messages::connect_request(), response in messages::connect_response()) {
        let mut frame = Vec::new();
        request.encode_frame(&mut frame);
        prop_assert_eq!(ConnectRequest::decode(&body(&frame)), Ok(request));
        frame.clear();
        response.encode_frame(&mut frame);
        prop_assert_eq!(ConnectResponse::decode(&body(&frame)), Ok(response));
    }

    #[test]
    fn bytes_behind_a_message_are_ignored(
        request in messages::request().prop_filter("opaque bytes have no end", |request| {
            !messages::is_of_no_client(request.body.opcode())
        }),
        behind in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let mut body = body(&request_frame(&request));
        body.extend(behind);
        prop_assert_eq!(Request::decode(&body), Ok(request));
    }

    #[test]
    fn messages_that_are_cut_short_are_errors(
        request in messages::request().prop_filter("opaque bytes have no end", |request| {
            !messages::is_of_no_client(request.body.opcode())
        }),
    ) {
        let body = body(&request_frame(&request));
        for length in 0..body.len() {
            prop_assert!(Request::decode(&body[..length]).is_err(), "{} bytes", length);
        }
    }
}
