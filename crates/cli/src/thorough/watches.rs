//! When the events of watches come.

use zookeeper_recipes_protocol::{
    CreateMode, ErrorCode, EventType, RequestBody, SetWatchesRequest,
};

use super::client::{Client, Trouble, read};
use super::site::Site;
use super::verdict::{Flaw, Kept, Promise, broken};

pub(super) const BEFORE: Promise = Promise {
    name: "watch-before-reply",
    without: "a holder may not learn of its loss, and a waiter may wait forever",
};

pub(super) const ORDER: Promise = Promise {
    name: "watch-order",
    without: "a waiter may hold at the same time as a contender before it",
};

pub(super) const AGAIN: Promise = Promise {
    name: "watch-after-reconnect",
    without: "waiters read their queue again after each reconnect",
};

/// How often a race is tried.
const ROUNDS: usize = 20;

/// An event comes before the reply to a read that shows its change.
pub(super) async fn before_reply(site: &Site<'_>) -> Kept {
    let mut writer = site.open(0).await?;
    let directory = site.directory(&mut writer, BEFORE.name).await?;
    let path = format!("{directory}/watched");
    let mut watcher = site.open_caught_up(1).await?;
    for round in 0..ROUNDS {
        let watches = [
            RequestBody::Exists(read(&path, true)),
            RequestBody::GetChildren(read(&directory, true)),
        ];
        watcher.send(watches).await?;
        watcher.reply().await?;
        watcher.reply().await?;
        let creates = round % 2 == 0;
        match creates {
            true => writer
                .create(&path, CreateMode::Ephemeral)
                .await
                .map(drop)?,
            false => writer.delete(&path).await?,
        }
        watcher.sync(&path).await?;
        if watcher.exists(&path).await?.is_some() != creates {
            return broken("a read behind a sync did not show a change");
        }
        let expected = match creates {
            true => EventType::NodeCreated,
            false => EventType::NodeDeleted,
        };
        for (kind, path) in [
            (expected, &path),
            (EventType::NodeChildrenChanged, &directory),
        ] {
            let came = watcher.events.iter();
            let mut came = came.filter(|event| event.kind == kind && event.path == *path);
            if came.next().is_none() {
                return broken(format!(
                    "a read showed a change of {path}, and its event {kind:?} had not come"
                ));
            }
        }
        watcher.events.clear();
    }
    watcher.close().await;
    writer.close().await;
    Ok(format!(
        "in {ROUNDS} changes, each event came before the change was read"
    ))
}

/// The events of one session come in the order of their transactions.
pub(super) async fn in_order(site: &Site<'_>) -> Kept {
    let mut writer = site.open(0).await?;
    let directory = site.directory(&mut writer, ORDER.name).await?;
    let paths: Vec<String> = (0..ROUNDS).map(|it| format!("{directory}/{it}")).collect();
    for path in &paths {
        writer.create(path, CreateMode::Ephemeral).await?;
    }
    let mut watcher = site.open_caught_up(1).await?;
    // The watches are set in another order than the znodes are deleted.
    for path in paths.iter().rev() {
        watch(&mut watcher, path).await?;
    }
    for path in &paths {
        writer.delete(path).await?;
    }
    watcher.sync(&directory).await?;
    let came: Vec<&str> = watcher.events.iter().map(|event| &*event.path).collect();
    if came != paths {
        return broken(format!(
            "{ROUNDS} znodes were deleted in order, and the events were {came:?}"
        ));
    }
    watcher.close().await;
    writer.close().await;
    Ok(format!(
        "{ROUNDS} events came in the order of their transactions"
    ))
}

async fn watch(client: &mut Client, path: &str) -> Result<(), Trouble> {
    let read = RequestBody::GetData(read(path, true));
    client.done(read).await.map(drop)
}

/// A watch that is set again after a reconnect fires for a change from the time between.
pub(super) async fn set_again(site: &Site<'_>) -> Kept {
    let mut writer = site.open(0).await?;
    let directory = site.directory(&mut writer, AGAIN.name).await?;
    let path = format!("{directory}/watched");
    writer.create(&path, CreateMode::Ephemeral).await?;
    let mut watcher = site.open_caught_up(1).await?;
    watch(&mut watcher, &path).await?;
    let relative_zxid = watcher.exists(&path).await?.unwrap_or_default().mzxid;
    let left = watcher.leave();
    writer.delete(&path).await?;
    let mut again = match site.resume(1, &left).await {
        Err(trouble @ (Trouble::Expired | Trouble::NoAnswer)) => {
            return Err(Flaw::Substituted(trouble.to_string()));
        }
        again => again?,
    };
    if again.session.id != left.id {
        return Err(Flaw::Substituted(
            "the reconnect was answered with another session".to_owned(),
        ));
    }
    again.sync(&path).await?;
    let watches = RequestBody::SetWatches(SetWatchesRequest {
        relative_zxid,
        data_watches: vec![path.clone()],
        exist_watches: Vec::new(),
        child_watches: Vec::new(),
    });
    match again.done(watches).await {
        Ok(_) => {}
        Err(trouble @ (Trouble::Closed(_) | Trouble::Refused(_, ErrorCode::Unimplemented))) => {
            return Err(Flaw::Substituted(trouble.to_string()));
        }
        Err(trouble) => return Err(trouble.into()),
    }
    // An event may come after the reply to the request that sets the watches.
    again.sync(&path).await?;
    let came = again.events.iter().any(|event| event.path == path);
    again.close().await;
    writer.close().await;
    match came {
        true => Ok("a watch that was set again reported a change from before".to_owned()),
        false => broken("a watch was set again after a change, and its event did not come"),
    }
}
