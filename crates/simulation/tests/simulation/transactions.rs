//! Transactions happen whole, in order, or not at all.

use crate::support::{self, connect, everyone, one_server, seconds};
use futures_util::FutureExt;
use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{CreateMode, Event, Operation, Outcome};

fn create(path: &str, mode: CreateMode) -> Operation {
    Operation::Create {
        path: path.into(),
        data: vec![],
        mode,
        acl: everyone(),
    }
}

fn delete(path: &str) -> Operation {
    Operation::Delete {
        path: path.into(),
        version: None,
    }
}

#[tokio::test(start_paused = true)]
async fn see_their_own_earlier_operations() {
    let simulation = one_server(1);
    let session = connect(&simulation, "a").await;
    let outcomes = session
        .transact(&[
            create("/d", CreateMode::Persistent),
            create("/d/n-", CreateMode::EphemeralSequential),
            create("/d/n-", CreateMode::EphemeralSequential),
            Operation::SetData {
                path: "/d".into(),
                data: vec![1],
                version: Some(0),
            },
            Operation::Check {
                path: "/d".into(),
                version: Some(1),
            },
            delete("/d/n-0000000000"),
        ])
        .await
        .unwrap();
    let [
        Outcome::Created(directory),
        _,
        Outcome::Created(second),
        set,
        checked,
        deleted,
    ] = outcomes.as_slice()
    else {
        panic!("{outcomes:?}");
    };
    assert_eq!(second.path, "/d/n-0000000001");
    assert_eq!(
        second.stat.czxid, directory.stat.czxid,
        "one transaction has one zxid"
    );
    assert!(matches!(set, Outcome::DataSet(stat) if stat.version == 1));
    assert_eq!((checked, deleted), (&Outcome::Checked, &Outcome::Deleted));
    assert_eq!(session.list("/d").await.unwrap(), ["n-0000000001"]);
}

#[tokio::test(start_paused = true)]
async fn happen_whole_or_not_at_all() {
    let simulation = one_server(2);
    let session = connect(&simulation, "a").await;
    let failed = session
        .transact(&[
            create("/d", CreateMode::Persistent),
            create("/d/c-", CreateMode::PersistentSequential),
            delete("/none"),
            create("/e", CreateMode::Persistent),
        ])
        .await
        .unwrap_err();
    assert_eq!(failed.operation, Some(2));
    assert!(failed.error.is(Refusal::NoNode));
    assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
    session
        .transact(&[create("/d", CreateMode::Persistent)])
        .await
        .unwrap();
    let name = support::create(&*session, "/d/c-", CreateMode::PersistentSequential).await;
    assert_eq!(
        name, "/d/c-0000000000",
        "what did not happen has used up no number"
    );
}

#[tokio::test(start_paused = true)]
async fn fire_watches_in_the_order_of_their_operations() {
    let simulation = one_server(3);
    let session = connect(&simulation, "a").await;
    support::create(&*session, "/own", CreateMode::Ephemeral).await;
    let (_, marker) = session.exists_and_watch("/marker").await.unwrap();
    let (_, _, own) = session.get_and_watch("/own").await.unwrap();
    let other = connect(&simulation, "b").await;
    other
        .transact(&[
            create("/marker", CreateMode::Persistent),
            delete("/marker"),
            delete("/own"),
        ])
        .await
        .unwrap();
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(marker.now_or_never(), Some(Event::Created));
    assert_eq!(own.now_or_never(), Some(Event::Deleted));
    let trace = simulation.trace();
    let events: Vec<&str> = trace
        .entries()
        .iter()
        .filter(|entry| entry.to_string().contains("<!"))
        .map(|entry| entry.text.as_str())
        .collect();
    assert_eq!(events, ["/marker Created", "/own Deleted"]);
}
