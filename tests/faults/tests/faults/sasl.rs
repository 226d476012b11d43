//! Sessions that show who they are by SASL. Apache's server alone has it.

use zookeeper_recipes_core::ensemble::{Acl, AuthId, Permission};
use zookeeper_recipes_suite::requiring_sasl;

use crate::support::*;

/// The user, and a password with what has to be quoted.
const BOB: &str = "bob:a \"secret\" of bób's";

#[tokio::test(flavor = "multi_thread")]
async fn session_shows_its_user_by_sasl_and_a_wrong_password_is_refused_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let (user, password) = BOB.split_once(':').expect("both");
    let options = requiring_sasl(directory.path(), user, password).tick_time(TICK);
    let server = server_with(options).await;
    let proxy = proxy(&server).await;
    let address = proxy.connect_string();
    let with = |credentials| {
        ConnectOptions::new()
            .session_timeout(LONG)
            .auth("sasl", credentials)
    };

    let session = in_time("the exchange", Session::connect_with(&address, with(BOB))).await;
    let session = session.expect("bob may");
    let acl = [Acl::new(Permission::ALL, AuthId::new("sasl", "bob"))];
    let options = LockOptions::new().acl(acl);
    let lock = ExclusiveLock::with_options(&session, "/bobs", options).expect("good options");
    let hold = in_time("the lock", lock.acquire())
        .await
        .expect("it is bob's");
    proxy.cut();
    in_time("a reconnect", session.wait_connected())
        .await
        .expect("the proxy still serves");
    in_time("a release", hold.release())
        .await
        .expect("it is still bob's");
    session.close().await;

    for wrong in ["bob:wrong", "alice:secret"] {
        let refused = in_time("the refusal", Session::connect_with(&address, with(wrong))).await;
        let refused = refused.expect_err("nobody knows it").to_string();
        assert!(
            refused.contains("sasl") && !refused.contains("wrong"),
            "{refused}"
        );
        let session = Session::connect_in_background(&address, with(wrong)).expect("good options");
        let over = in_time("the refusal", session.wait_connected()).await;
        let reason = SessionEnd::AuthenticationFailed;
        assert!(matches!(over, Err(Error::NoSession { reason: it, .. }) if it == reason));
    }
}
