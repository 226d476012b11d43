//! Sessions that wait for each other, and the command that breaks their circle.

use serde_json::{Value, json};
use zookeeper_recipes_overview::{Circle, ContenderState, ContenderStatus};

use super::table::{age, milliseconds, or_dash};
use crate::addresses::Addresses;
use crate::plain_text::quoted;

/// The circle for people, at this time in milliseconds since 1970. `zkr` is how a shell runs it.
pub(crate) fn circle_lines(
    circle: &Circle,
    addresses: &Addresses,
    zkr: &str,
    now: i64,
) -> Vec<String> {
    let number = circle.waits.len();
    let since = age(milliseconds(circle.since()), now);
    let mut lines = vec![format!(
        "{number} sessions wait for each other, for {since}:"
    )];
    for wait in &circle.waits {
        let age = age(milliseconds(wait.waiter.created), now);
        lines.push(format!("  {}", who(&wait.waiter, addresses)));
        lines.push(format!(
            "    waits for {age} to {} at {}, behind {}",
            wait.waiter.wants,
            wait.path,
            who(&wait.blocker, addresses)
        ));
    }
    if let Some(command) = way_out(circle, zkr) {
        lines.push(format!(
            "to break it, if a later look still shows it: {command}"
        ));
    }
    lines
}

fn who(contender: &ContenderStatus, addresses: &Addresses) -> String {
    let owner = or_dash(&contender.owner);
    match addresses.of(contender.session_id) {
        Some(address) => format!("{owner} (session {}, {address})", contender.session_id),
        None => format!("{owner} (session {})", contender.session_id),
    }
}

/// The command that breaks the circle.
fn way_out(circle: &Circle, zkr: &str) -> Option<String> {
    let wait = circle.way_out()?;
    let (path, token) = (quoted(&wait.path), wait.blocker.fencing_token);
    Some(match wait.blocker.state {
        ContenderState::Holds => format!("{zkr} evict {path} --if-holder {token}"),
        _ => format!("{zkr} evict {path} {token}"),
    })
}

/// The circle for programs.
pub(crate) fn circle_json(circle: &Circle, addresses: &Addresses, zkr: &str) -> Value {
    let contender = |it: &ContenderStatus| {
        json!({
            "node": it.name,
            "owner": &*it.owner,
            "session": it.session_id.to_string(),
            "address": addresses.of(it.session_id),
            "fencing_token": it.fencing_token.get(),
            "created_ms": milliseconds(it.created),
        })
    };
    let waits = circle.waits.iter().map(|wait| {
        json!({
            "path": wait.path,
            "waiter": contender(&wait.waiter),
            "waits_for": contender(&wait.blocker),
        })
    });
    json!({
        "since_ms": milliseconds(circle.since()),
        "waits": waits.collect::<Vec<_>>(),
        "way_out": way_out(circle, zkr),
    })
}
