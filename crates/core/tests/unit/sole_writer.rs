//! The trial of the access control lists.

use std::time::Duration;

use super::*;
use crate::live::scripted::Scripted;
use crate::server::ensemble::Ensemble;

#[tokio::test(start_paused = true)]
async fn server_is_believed_that_refuses_a_write_to_others_alone() {
    let (_, script) = Scripted::open(Duration::ZERO);
    for (operation, refusal, enforced) in [
        (0, Refusal::NoNode, None),
        // The server does not recognise the identity as the owner's.
        (1, Refusal::NoAuth, Some(false)),
        (3, Refusal::NoAuth, Some(true)),
        // The server checks no access control lists.
        (4, Refusal::BadVersion, Some(false)),
    ] {
        script.refuse(operation, refusal);
        let identity = script.identity();
        let answer = is_enforced(&*script, "/locks", &identity, &AuthId::anyone()).await;
        assert_eq!(answer, enforced, "refused at {operation}");
    }
}
