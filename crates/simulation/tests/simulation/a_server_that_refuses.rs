//! A server refuses, or closes the connection.

use crate::support::{TIMEOUT, connect, create_ephemeral, everyone, milliseconds, servers};
use std::sync::Arc;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, CreateMode, Operation, Permission, ServerSession, WatchEvent,
};
use zookeeper_recipes_core::{ConnectOptions, Refusal, ServerError};
use zookeeper_recipes_simulation::{Fault, FaultKind, Opcode, RequestKind, Simulation};

#[tokio::test(start_paused = true)]
async fn what_is_too_much_for_it_does_nothing() {
    let simulation = servers(1, 3);
    let session = connect(&simulation, "a").await;
    for request in [RequestKind::Create, RequestKind::List, RequestKind::Sync] {
        let fault = Fault::new(FaultKind::Throttled).on(request);
        simulation.faults().inject(fault);
    }
    let acl = everyone();
    let (first, created, list, sync) = tokio::join!(
        session.create("/a", b"", CreateMode::Ephemeral, &acl),
        session.create("/b", b"", CreateMode::Ephemeral, &acl),
        session.list("/"),
        session.sync("/"),
    );
    let throttled = Some(Refusal::Throttled);
    assert_eq!(refusal(first), throttled);
    assert!(created.is_ok(), "what was asked after it is answered");
    assert_eq!(
        (refusal(list), refusal(sync)),
        (throttled.clone(), throttled)
    );
    assert_eq!(session.list("/").await.unwrap(), ["b", "zookeeper"]);
}

fn refusal<T>(result: Result<T, ServerError>) -> Option<Refusal> {
    match result {
        Err(ServerError::Refused(refusal)) => Some(refusal),
        _ => None,
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_too_large_closes_the_connection() {
    let simulation = servers(2, 1);
    // The session does not know the limit of the servers.
    let options = ConnectOptions::new().jute_maxbuffer(4_000_000);
    let connector = simulation.ensemble("a").connector(&options).unwrap();
    let session = connector.connect().await.unwrap();
    let (small, large) = (vec![0; 1_048_000], vec![0; 1_048_575]);
    let mode = CreateMode::Persistent;
    let created = session.create("/a", &small, mode, everyone()).await;
    assert!(created.is_ok());
    let created = session.create("/b", &large, mode, everyone()).await;
    assert!(matches!(created, Err(ServerError::OutcomeUnknown(_))));
    let set = Operation::set_data("/a", large);
    assert!(session.transact(&[set]).await.is_err());
    assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
}

async fn unknown(opcode: Opcode) -> (Simulation, Arc<ServerSession>) {
    let simulation = Simulation::with(|it| it.unknown = vec![opcode]);
    let session = connect(&simulation, "a").await;
    (simulation, session)
}

#[tokio::test(start_paused = true)]
async fn what_it_does_not_know_closes_the_connection() {
    let acl = everyone();
    let (_, session) = unknown(Opcode::Create).await;
    let mode = CreateMode::Persistent;
    assert!(session.create("/a", b"", mode, &acl).await.is_err());

    let (_, session) = unknown(Opcode::CreateContainer).await;
    assert!(session.create("/a", b"", mode, &acl).await.is_ok());
    let mode = CreateMode::Container;
    assert!(session.create("/b", b"", mode, &acl).await.is_err());
    let create = Operation::create("/c", [], mode, acl);
    assert!(session.transact(&[create]).await.is_err());
    assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn watches_set_anew_or_taken_off_closes_the_connection() {
    let (_, session) = unknown(Opcode::RemoveWatches).await;
    let watch = session.list_and_watch("/").await.unwrap().1;
    drop(watch);
    sleep(milliseconds(20)).await;
    assert!(session.list("/").await.is_ok(), "it has found its way back");

    let (simulation, session) = unknown(Opcode::SetWatches).await;
    let watch = session.list_and_watch("/").await.unwrap().1;
    simulation.process("a").disconnect();
    let event = timeout(TIMEOUT, watch).await;
    assert_eq!(
        event,
        Ok(WatchEvent::Unwatched),
        "it is given up after a few"
    );
    assert!(session.list("/").await.is_ok(), "it has found its way back");
    assert!(session.connection().is_some());
}

#[tokio::test(start_paused = true)]
async fn by_lists_that_an_operator_changes() {
    let simulation = servers(3, 3);
    let session = connect(&simulation, "a").await;
    create_ephemeral(&session, "/a").await;
    let administrator = simulation.administrator();
    let reads = [Acl::new(Permission::READ, AuthId::anyone())];
    let earlier = administrator.set_acl("/", &reads).unwrap();
    session.sync("/").await.unwrap();
    let deleted = session.delete("/a").await;
    assert_eq!(refusal(deleted), Some(Refusal::NoAuth));
    assert!(session.list("/").await.is_ok());
    assert_eq!(administrator.set_acl("/", &earlier).unwrap(), reads);
    session.delete("/a").await.unwrap();
    assert_eq!(administrator.set_acl("/a", &reads), Err(Refusal::NoNode));
}
