//! Our recipes over the client of the crate `zookeeper-client`, beside all others.

use zookeeper_recipes_suite::{TestServer, on_both_servers};

use crate::peers::{Peer, available};
use crate::process::Language;
use crate::support::share;

on_both_servers!(
    locks_over_the_adapter_and_of_the_peers_take_turns_in_order,
    readers_and_writers_over_both_connections_and_of_curator_share,
    leaders_over_both_connections_and_of_curator_take_turns,
);

/// Of each contender.
const TURNS: usize = 40;

async fn locks_over_the_adapter_and_of_the_peers_take_turns_in_order(server: TestServer) {
    if available("lock over the adapter", &[Peer::Curator, Peer::Kazoo]) {
        let locks = |language| (language, [("lock", 5)].as_slice());
        let kazoo = (Language::Kazoo, [("renamed", 5)].as_slice());
        let groups = [locks(Language::Adapter), locks(Language::Curator), kazoo];
        share(&server, &groups, TURNS).await;
    }
}

async fn readers_and_writers_over_both_connections_and_of_curator_share(server: TestServer) {
    if available("read/write lock over the adapter", &[Peer::Curator]) {
        let ours = [("read", 3), ("write", 2), ("downgrade", 1)];
        let curators = [("read", 3), ("write", 2)];
        let groups = [
            (Language::Ours, ours.as_slice()),
            (Language::Adapter, ours.as_slice()),
            (Language::Curator, curators.as_slice()),
        ];
        share(&server, &groups, TURNS).await;
    }
}

async fn leaders_over_both_connections_and_of_curator_take_turns(server: TestServer) {
    if available("leader over the adapter", &[Peer::Curator]) {
        let latches = |language| (language, [("latch", 4)].as_slice());
        let groups = [
            latches(Language::Ours),
            latches(Language::Adapter),
            latches(Language::Curator),
        ];
        share(&server, &groups, TURNS).await;
    }
}
