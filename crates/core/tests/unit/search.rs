//! The look that callers share.

use futures_util::future::join_all;

use super::*;
use crate::live::scripted::*;

#[tokio::test(start_paused = true)]
async fn callers_share_the_next_look_and_none_that_was_sent_before() {
    const SECOND: Duration = Duration::from_secs(1);
    let (live, script) = Scripted::open(SECOND);
    let searches = Searches::default();
    let began = live.now();
    let of = async |after: Duration| {
        sleep(after).await;
        let own = searches
            .own_paths(&live, "/locks/a", &Identity::from_random_bits(0))
            .await;
        assert_eq!(own.expect("an answer"), [""; 0]);
        live.now() - began
    };
    let callers = [Duration::ZERO, SECOND / 2, SECOND / 2].map(of);
    assert_eq!(
        join_all(callers).await,
        [2 * SECOND, 4 * SECOND, 4 * SECOND]
    );
    assert_eq!(script.proofs(), [began, began + 2 * SECOND]);
    searches.of("/locks/b");
    assert_eq!(lock(&searches.0).len(), 1, "the others are done");
}

#[test]
fn callers_share_the_look_at_their_directory_beside_those_at_others() {
    let searches = Searches::default();
    let [of_a, of_b, again] = ["/locks/a", "/locks/b", "/locks/a"].map(|it| searches.of(it));
    assert!(Arc::ptr_eq(&of_a, &again) && !Arc::ptr_eq(&of_a, &of_b));
}
