//! The order of writes and reads, sequence numbers, transaction ids and versions.

use zookeeper_recipes_protocol::{
    CheckRequest, CreateMode, ErrorCode, OpCode, Operation, Outcome, PathRequest, ReplyBody,
    RequestBody, Stat,
};

use super::client::{Client, Trouble, create, delete, read, set};
use super::site::Site;
use super::verdict::{Flaw, Kept, Promise, broken};

pub(super) const OWN_WRITES: Promise = Promise {
    name: "own-writes-seen",
    without: "a contender may not find itself in its queue",
};

pub(super) const SYNC: Promise = Promise {
    name: "sync-catches-up",
    without: "a lease may be renewed by an answer that proves nothing",
};

pub(super) const SEQUENCE: Promise = Promise {
    name: "sequence-grows",
    without: "two processes may hold: a later contender gets a place before an earlier one",
};

pub(super) const EPHEMERAL: Promise = Promise {
    name: "ephemeral-refuses-children",
    without: "a znode that a process leaves may keep its children, and stay",
};

pub(super) const ZXIDS: Promise = Promise {
    name: "transaction-ids-grow",
    without: "fencing tokens do not order the holders, and contenders may be put in a wrong order",
};

pub(super) const VERSIONS: Promise = Promise {
    name: "versions-condition",
    without: "a job may run twice in its slot, and a resize may be lost",
};

pub(super) const ATOMIC: Promise = Promise {
    name: "transaction-is-atomic",
    without: "a guarded write may be done after the hold is lost",
};

/// A list that is sent right behind a create shows the new znode.
pub(super) async fn own_writes(site: &Site<'_>) -> Kept {
    const ROUNDS: usize = 20;
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, OWN_WRITES.name).await?;
    for round in 0..ROUNDS {
        let name = round.to_string();
        let path = format!("{directory}/{name}");
        let create = RequestBody::Create2(create(&path, CreateMode::Ephemeral));
        let list = RequestBody::GetChildren(read(&directory, false));
        client.send([create, list]).await?;
        client.reply().await?;
        match client.reply().await?.body {
            ReplyBody::Children { children } if children.contains(&name) => {}
            ReplyBody::Children { .. } => {
                return broken("a list behind a create did not show the new znode");
            }
            _ => return Err(Trouble::Garbled(OpCode::GetChildren).into()),
        }
    }
    client.close().await;
    Ok(format!(
        "{ROUNDS} lists, each sent behind a create, showed the new znode"
    ))
}

/// A read behind a sync shows each write that was answered before the sync was sent.
pub(super) async fn sync(site: &Site<'_>) -> Kept {
    const ROUNDS: u8 = 20;
    let mut writer = site.open(0).await?;
    let directory = site.directory(&mut writer, SYNC.name).await?;
    let mut reader = site.open_caught_up(1).await?;
    for round in 0..ROUNDS {
        writer.set(&directory, &[round]).await?;
        let sync = PathRequest::new(&*directory);
        let get = RequestBody::GetData(read(&directory, false));
        reader.send([RequestBody::Sync(sync), get]).await?;
        let synced = reader.reply().await?;
        if synced.header.error != ErrorCode::Ok {
            return Err(Trouble::Refused(OpCode::Sync, synced.header.error).into());
        }
        match reader.reply().await?.body {
            ReplyBody::Data { data, .. } if data.as_deref() == Some(&[round]) => {}
            ReplyBody::Data { data, .. } => {
                return broken(format!(
                    "{:?} was written at {}, and a read behind a sync at {} showed {data:?}",
                    [round],
                    site.host(0),
                    site.host(1)
                ));
            }
            _ => return Err(Trouble::Garbled(OpCode::GetData).into()),
        }
    }
    reader.close().await;
    writer.close().await;
    let (from, to) = (site.host(0), site.host(1));
    Ok(format!(
        "{ROUNDS} writes at {from} were read at {to}, each behind a sync"
    ))
}

/// Sequence numbers grow, also after the largest was deleted, and after all were.
pub(super) async fn sequence(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, SEQUENCE.name).await?;
    let mut last: Option<(String, i32)> = None;
    // What is deleted before the next create.
    for deletes in ["nothing", "nothing", "the largest", "all"] {
        match (deletes, &last) {
            ("the largest", Some((largest, _))) => client.delete(largest).await?,
            ("all", _) => {
                for name in client.children(&directory).await? {
                    client.delete(&format!("{directory}/{name}")).await?;
                }
            }
            _ => {}
        }
        let mode = CreateMode::EphemeralSequential;
        let (path, _) = client.create(&format!("{directory}/n-"), mode).await?;
        let digits = path.strip_prefix(&format!("{directory}/n-"));
        let digits = digits.filter(|digits| digits.len() == 10);
        let Some(number) = digits.and_then(|digits| digits.parse().ok()) else {
            return broken(format!("the name has no number of ten digits: {path}"));
        };
        let earlier = last.replace((path.clone(), number));
        if let Some((earlier, _)) = earlier.filter(|(_, before)| number <= *before) {
            return broken(format!(
                "{path} came after {earlier} (deleted before: {deletes})"
            ));
        }
    }
    client.close().await;
    Ok("numbers grow, also after the largest znode was deleted, or all".to_owned())
}

/// An ephemeral znode has its session as its owner, and refuses children.
pub(super) async fn ephemeral(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, EPHEMERAL.name).await?;
    let path = format!("{directory}/ephemeral");
    let (_, stat) = client.create(&path, CreateMode::Ephemeral).await?;
    if stat.ephemeral_owner != client.session.id {
        return broken(format!(
            "the owner of a znode of session {:#x} is {:#x}",
            client.session.id, stat.ephemeral_owner
        ));
    }
    let child = create(&format!("{path}/child"), CreateMode::Ephemeral);
    let refused = match client.ask(RequestBody::Create2(child)).await?.header.error {
        ErrorCode::Ok => return broken("an ephemeral znode got a child"),
        ErrorCode::NoChildrenForEphemerals => {
            "the child of an ephemeral znode is refused".to_owned()
        }
        other => {
            return broken(format!(
                "the child of an ephemeral znode is refused with {other}"
            ));
        }
    };
    client.close().await;
    Ok(refused)
}

/// Each later transaction has a larger id, and each reader sees the same ids.
pub(super) async fn transaction_ids(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, ZXIDS.name).await?;
    let mut stats: Vec<(String, Stat)> = Vec::new();
    let mut parent = client.exists(&directory).await?.unwrap_or_default();
    for number in 0..5 {
        let path = format!("{directory}/{number}");
        let (path, stat) = client.create(&path, CreateMode::Ephemeral).await?;
        let now = client.exists(&directory).await?.unwrap_or_default();
        if now.cversion <= parent.cversion {
            return broken(format!(
                "a child was created, and cversion is {} after {}",
                now.cversion, parent.cversion
            ));
        }
        if now.pzxid != stat.czxid {
            return broken(format!(
                "pzxid is {:#x} after the create {:#x} of a child",
                now.pzxid, stat.czxid
            ));
        }
        let before = stats.last().map_or(parent.czxid, |(_, stat)| stat.czxid);
        if stat.czxid <= before {
            return broken(format!("czxid {:#x} comes after {before:#x}", stat.czxid));
        }
        stats.push((path, stat));
        parent = now;
    }
    let mut other = site.open_caught_up(1).await?;
    for (path, stat) in &stats {
        let seen = other.exists(path).await?;
        if seen.map(|seen| seen.czxid) != Some(stat.czxid) {
            return broken(format!(
                "czxid is {:#x}, and another session reads {seen:?}",
                stat.czxid
            ));
        }
    }
    other.close().await;
    client.close().await;
    Ok("czxid, pzxid and cversion grow, and each session reads the same".to_owned())
}

/// A write with the wrong version is refused, and the version counts the writes.
pub(super) async fn versions(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, VERSIONS.name).await?;
    let path = format!("{directory}/versioned");
    client.create(&path, CreateMode::Ephemeral).await?;
    match client.done(set(&path, b"first", 0)).await? {
        ReplyBody::Stat(stat) if stat.version == 1 => {}
        other => return broken(format!("after the first write of the data: {other:?}")),
    }
    let late = [
        ("a write", set(&path, b"late", 0)),
        ("a deletion", delete(&path, 0)),
    ];
    for (what, request) in late {
        match client.ask(request).await?.header.error {
            ErrorCode::BadVersion => {}
            ErrorCode::Ok => return broken(format!("{what} with a version of before was done")),
            other => return broken(format!("{what} with a version of before: {other}")),
        }
    }
    let (data, stat) = client.get(&path).await?;
    if data != b"first" || stat.version != 1 {
        return broken(format!(
            "refused writes have changed the znode: {data:?}, {stat:?}"
        ));
    }
    client.done(delete(&path, 1)).await?;
    client.close().await;
    Ok("writes and deletions with a wrong version are refused".to_owned())
}

/// If one operation of a transaction is refused, none is done.
pub(super) async fn atomic(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let directory = site.directory(&mut client, ATOMIC.name).await?;
    let path = format!("{directory}/created");
    if let Some(code) = transaction(&mut client, &directory, &path, 7).await? {
        if code != ErrorCode::BadVersion {
            return broken(format!("a transaction with a wrong version: {code}"));
        }
    } else {
        return broken("a transaction was done, and its condition was not met");
    }
    if client.exists(&path).await?.is_some() {
        return broken("a transaction was refused, and one of its operations was done");
    }
    if let Some(code) = transaction(&mut client, &directory, &path, 0).await? {
        return broken(format!("a transaction whose condition is met: {code}"));
    }
    if client.exists(&path).await?.is_none() {
        return broken("a transaction was answered, and not done");
    }
    client.close().await;
    Ok("a transaction is done as a whole, or not at all".to_owned())
}

/// Creates a znode if the directory has this version. Returns the error of a refusal.
async fn transaction(
    client: &mut Client,
    directory: &str,
    path: &str,
    version: i32,
) -> Result<Option<ErrorCode>, Flaw> {
    let check = CheckRequest {
        path: directory.to_owned(),
        version,
    };
    let create = create(path, CreateMode::Ephemeral);
    let operations = vec![Operation::Create2(create), Operation::Check(check)];
    let reply = client.ask(RequestBody::Multi(operations)).await?;
    if reply.header.error != ErrorCode::Ok {
        return Ok(Some(reply.header.error));
    }
    let ReplyBody::Multi(results) = reply.body else {
        return Err(Trouble::Garbled(OpCode::Multi).into());
    };
    Ok(results.iter().find_map(|result| match result {
        // The results of the other operations.
        Outcome::Error(ErrorCode::Ok | ErrorCode::RuntimeInconsistency) => None,
        Outcome::Error(code) => Some(*code),
        _ => None,
    }))
}
