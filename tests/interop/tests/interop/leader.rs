//! The leader election, shared with Curator's latch.

use zookeeper_recipes_suite::{TestServer, on_both_servers};

use crate::peers::{Peer, available};
use crate::process::Language;
use crate::support::share;

on_both_servers!(curator_and_ours_lead_in_turn_and_see_each_other,);

async fn curator_and_ours_lead_in_turn_and_see_each_other(server: TestServer) {
    if !available("leader with Curator", &[Peer::Curator]) {
        return;
    }
    let ours = (Language::Ours, [("latch", 6)].as_slice());
    let curator = (Language::Curator, [("latch", 6)].as_slice());
    share(&server, &[ours, curator], 30).await;
}
