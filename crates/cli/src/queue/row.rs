//! One contender, as a row of a table and as an object of JSON.

use serde_json::{Value, json};
use zookeeper_recipes_overview::{ContenderState, ContenderStatus, Mark, QueueKind, QueueStatus};

use super::slot;
use super::table::{age, milliseconds, or_dash};
use crate::addresses::Addresses;

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) contender: ContenderStatus,
    /// The address of its client, if the server reports it.
    pub(crate) address: Option<String>,
}

impl Row {
    /// The contenders of a queue that were read.
    pub(crate) fn of(queue: &QueueStatus, addresses: &Addresses) -> Vec<Row> {
        let row = |contender: ContenderStatus| Row {
            address: addresses.of(contender.session_id),
            contender,
        };
        queue.contenders().map(row).collect()
    }

    pub(crate) fn holds(&self) -> bool {
        self.contender.state == ContenderState::Holds
    }

    pub(crate) fn waits(&self) -> bool {
        matches!(self.contender.state, ContenderState::WaitsFor(_))
    }

    pub(crate) fn token(&self) -> i64 {
        self.contender.fencing_token.get()
    }

    /// When its znode was created, in milliseconds since 1970 by the server's clock.
    pub(crate) fn created(&self) -> i64 {
        milliseconds(self.contender.created)
    }

    /// The row for people, at this time in milliseconds since 1970.
    pub(crate) fn cells(&self, now: i64, has_address: bool) -> Vec<String> {
        let contender = &self.contender;
        let mut cells = vec![
            (contender.position + 1).to_string(),
            self.state_text(),
            contender.wants.clone(),
            or_dash(&contender.owner),
            age(self.created(), now),
            self.token().to_string(),
            contender.session_id.to_string(),
        ];
        if has_address {
            cells.push(or_dash(self.address.as_deref().unwrap_or_default()));
        }
        cells
    }

    /// The row for programs. The places count from one, as in the table.
    pub(crate) fn json(&self) -> Value {
        let waits_for = match &self.contender.state {
            ContenderState::WaitsFor(places) => {
                json!(places.iter().map(|place| place + 1).collect::<Vec<_>>())
            }
            ContenderState::Holds | ContenderState::Unknown => json!([]),
        };
        json!({
            "position": self.contender.position + 1,
            "node": self.contender.name,
            "kind": self.contender.wants,
            "holds": match self.contender.state {
                ContenderState::Holds => json!(true),
                ContenderState::WaitsFor(_) => json!(false),
                ContenderState::Unknown => Value::Null,
            },
            "waits_for": waits_for,
            "owner": &*self.contender.owner,
            "created_ms": self.created(),
            "fencing_token": self.token(),
            "session": self.contender.session_id.to_string(),
            "address": self.address,
        })
    }

    /// Whether it holds, in a few words.
    fn state_text(&self) -> String {
        match &self.contender.state {
            ContenderState::Holds => "holds".to_owned(),
            ContenderState::Unknown => "holds or waits".to_owned(),
            ContenderState::WaitsFor(places) => match (places.first(), places.last()) {
                (Some(first), Some(last)) if first < last => {
                    format!("waits for {}-{}", first + 1, last + 1)
                }
                (Some(one), _) => format!("waits for {}", one + 1),
                _ => "waits".to_owned(),
            },
        }
    }
}

/// A queue for programs.
pub(crate) fn json_of(queue: &QueueStatus, rows: &[Row]) -> Value {
    json!({
        "path": queue.path(),
        "exists": queue.exists(),
        "recipe": recipe(queue),
        "permits": queue.permits(),
        "job": queue.job().map(slot::json_of),
        "contenders": rows.iter().map(Row::json).collect::<Vec<_>>(),
        "foreign": queue.foreign(),
        "mixed": queue.is_mixed(),
        "marks": queue.marks().iter().map(Mark::to_string).collect::<Vec<_>>(),
    })
}

/// The recipe of a queue, if there is one. A job per slot is a lock here.
pub(crate) fn recipe(queue: &QueueStatus) -> Option<String> {
    match queue.kind() {
        QueueKind::Empty => None,
        QueueKind::OncePerSlot => Some(QueueKind::Lock.to_string()),
        kind => Some(kind.to_string()),
    }
}
