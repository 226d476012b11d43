//! One contender, as a row of a table and as an object of JSON.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use zookeeper_recipes_core::{SessionId, Stat};

use crate::plain_text::shown;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The number of contenders before this one.
    pub(crate) place: usize,
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) state: State,
    /// Who it is, as its znode says. Empty if the znode does not say it.
    pub(crate) owner: String,
    /// When its znode was created, in milliseconds since 1970 by the server's clock.
    pub(crate) created: i64,
    pub(crate) token: i64,
    pub(crate) session: SessionId,
    /// The address of its client, if the server reports it.
    pub(crate) address: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Holds,
    /// It waits for these places in the queue.
    WaitsFor(Vec<usize>),
    /// No znode records it.
    Unknown,
}

impl Row {
    pub(super) fn new(
        place: usize,
        name: &str,
        kind: String,
        state: State,
        data: &[u8],
        stat: &Stat,
    ) -> Row {
        Row {
            place,
            name: name.to_owned(),
            kind,
            state,
            owner: printable(data),
            created: stat.ctime,
            token: stat.czxid,
            session: SessionId(stat.ephemeral_owner),
            address: None,
        }
    }

    /// The row for programs. The places count from one, as in the table.
    pub(crate) fn json(&self) -> Value {
        let waits_for = match &self.state {
            State::WaitsFor(places) => {
                json!(places.iter().map(|place| place + 1).collect::<Vec<_>>())
            }
            State::Holds | State::Unknown => json!([]),
        };
        json!({
            "position": self.place + 1,
            "node": self.name,
            "kind": self.kind,
            "holds": match self.state {
                State::Holds => json!(true),
                State::WaitsFor(_) => json!(false),
                State::Unknown => Value::Null,
            },
            "waits_for": waits_for,
            "owner": self.owner,
            "created_ms": self.created,
            "fencing_token": self.token,
            "session": self.session.to_string(),
            "address": self.address,
        })
    }

    /// Whether it holds, in a few words.
    pub(super) fn state_text(&self) -> String {
        match &self.state {
            State::Holds => "holds".to_owned(),
            State::Unknown => "holds or waits".to_owned(),
            State::WaitsFor(places) => match (places.first(), places.last()) {
                (Some(first), Some(last)) if first < last => {
                    format!("waits for {}-{}", first + 1, last + 1)
                }
                (Some(one), _) => format!("waits for {}", one + 1),
                _ => "waits".to_owned(),
            },
        }
    }
}

/// The data as text in one line, without what would change the terminal's settings.
pub(super) fn printable(data: impl AsRef<[u8]>) -> String {
    let data = data.as_ref();
    const LONGEST: usize = 60;
    match std::str::from_utf8(data) {
        Ok(text) => text.chars().take(LONGEST).map(shown).collect(),
        Err(_) => format!("({} bytes)", data.len()),
    }
}

/// A time in milliseconds since 1970.
pub(crate) fn milliseconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
