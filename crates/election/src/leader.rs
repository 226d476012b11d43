//! Who leads, as anyone can read it from the server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Contender, FencingToken, NodePath, QueueEntry, Refusal, ServerError, SessionId, Stat, order,
    ordered_by_czxid,
};

use crate::rule::LABEL;

/// The one who leads, as it was seen from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Leader {
    /// The id that it campaigned with.
    ///
    /// Where somebody has written other bytes than UTF-8 there, each bad sequence reads as U+FFFD.
    pub id: String,
    /// The token that it leads with: newer than that of every leader before it.
    pub fencing_token: FencingToken,
    /// The session that its leadership ends with.
    pub session_id: SessionId,
    /// When it began to campaign, by the server's clock.
    pub candidate_since: SystemTime,
    /// Since when it is known here that it leads, by the clock of this process.
    ///
    /// For a change that an observer was told of, that is when it led, but for the time that the
    /// news took. For a leader that was there before one looked, it is when one looked: ZooKeeper
    /// does not record when a znode became the first.
    pub since: SystemTime,
}

/// One of those who lead or campaign.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Participant {
    /// The id that it campaigns with, read as [`Leader::id`] is.
    pub id: String,
    /// The token that it leads with, or will.
    pub fencing_token: FencingToken,
    /// The session that its candidacy ends with.
    pub session_id: SessionId,
    /// Whether it is the one who leads.
    pub leads: bool,
}

impl Leader {
    pub(crate) fn new(data: &[u8], stat: &Stat) -> Leader {
        let milliseconds = u64::try_from(stat.ctime).unwrap_or_default();
        Leader {
            id: id_in(data),
            fencing_token: FencingToken::from(stat.czxid),
            session_id: SessionId(stat.ephemeral_owner),
            candidate_since: UNIX_EPOCH + Duration::from_millis(milliseconds),
            since: SystemTime::now(),
        }
    }
}

impl Participant {
    pub(crate) fn new(entry: QueueEntry) -> Participant {
        Participant {
            id: id_in(&entry.data),
            fencing_token: entry.fencing_token,
            session_id: entry.session_id,
            leads: entry.position == 0,
        }
    }
}

fn id_in(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// The path of the first of these children who is a candidate, or `None` where there is none.
///
/// Sends nothing, unless their numbers do not tell who came first: then one read does.
pub(crate) async fn first_candidate(
    server: &dyn ServerSession,
    directory: &NodePath,
    children: &[String],
) -> Result<Option<String>, ServerError> {
    let mut candidates: Vec<Contender> = children
        .iter()
        .filter_map(|name| Contender::parse(name, |label| label == LABEL))
        .collect();
    let path = |candidate: &Contender| format!("{directory}/{}", candidate.name());
    order(&mut candidates);
    let tied = ordered_by_czxid(&candidates);
    if tied.first() == Some(&0) {
        let paths: Vec<String> = tied.iter().map(|place| path(&candidates[*place])).collect();
        let nodes = server.get_each(&paths).await?;
        for (place, node) in tied.into_iter().zip(nodes) {
            if let Some((_, stat)) = node {
                candidates[place].set_czxid(stat.czxid);
            }
        }
        // Who has gone meanwhile comes last. Where all have, reading the first finds it out.
        order(&mut candidates);
    }
    Ok(candidates.first().map(path))
}

/// Reads who leads. Costs a list of the candidates' names and a read of the first, again as often
/// as the first goes in between.
pub(crate) async fn who_leads(
    server: &dyn ServerSession,
    directory: &NodePath,
) -> Result<Option<Leader>, ServerError> {
    loop {
        let children = match server.list(directory.as_str()).await {
            Err(error) if error.is(Refusal::NoNode) => return Ok(None),
            children => children?,
        };
        let Some(first) = first_candidate(server, directory, &children).await? else {
            return Ok(None);
        };
        match server.get(&first).await {
            Ok((data, stat)) => return Ok(Some(Leader::new(&data, &stat))),
            Err(error) if error.is(Refusal::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
}
