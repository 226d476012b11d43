//! Tests of `src/session/request_limit.rs`.

use zookeeper_recipes_protocol::{AuthId, CheckRequest, CreateMode, CreateRequest, Permission};

use super::*;

fn create(scheme: &str) -> CreateRequest {
    let id = AuthId::new(scheme, "");
    CreateRequest {
        path: "/lock".to_owned(),
        data: Some(vec![7; 100]),
        acl: vec![Acl {
            permissions: Permission::ALL,
            id,
        }],
        mode: CreateMode::EphemeralSequential,
    }
}

#[test]
fn request_above_the_limit_is_not_appended() {
    let check = CheckRequest {
        path: "/lock".to_owned(),
        version: 1,
    };
    let check = Operation::Check(check);
    for (body, parts, identities) in [
        (RequestBody::Create2(create("ip")), 1, 0),
        (RequestBody::Create2(create("auth")), 1, 1),
        (RequestBody::Multi(vec![check; 3]), 4, 0),
        (
            RequestBody::Multi(vec![Operation::Create2(create("auth"))]),
            2,
            1,
        ),
    ] {
        let request = Request { xid: 1, body };
        let mut frame = Vec::new();
        request.encode_frame(&mut frame);
        let length = frame.len() - 4 + parts * ADDED + identities * IDENTITIES;
        let mut sent = vec![1];
        let refused = append(&request, length - 1, &mut sent);
        assert!(matches!(
            refused,
            Err(RequestError::RequestTooLong { length: found, .. }) if found == length
        ));
        assert_eq!(sent, [1]);
        append(&request, length, &mut sent).expect("it has the longest length");
        assert_eq!(sent[1..], frame);
        let checked = |limit| check_length(&request.body, limit);
        assert!(checked(length).is_ok() && checked(length - 1).is_err());
    }
}
