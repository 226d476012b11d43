//! Who steps back: no candidate leads before one that should lead in its place.

use zookeeper_recipes_core::HoldView;
use zookeeper_recipes_simulation::{Change, Committed};

use crate::findings::Findings;

/// What is known of who should lead next.
#[derive(Default)]
pub(crate) struct Succession {
    /// The name of the successor's znode.
    named: Option<String>,
    /// The successors that were named since the turn of the first candidate.
    named_since: Vec<Option<String>>,
    /// The place of the first candidate, and the transaction that made it the first.
    first: Option<(i64, i64)>,
}

/// Takes in what was committed in the election at `directory`, after which this one is first.
pub(crate) fn at_change(
    succession: &mut Succession,
    directory: &str,
    first: Option<i64>,
    committed: &Committed,
) {
    match &committed.change {
        Change::DataSet { path, data } => at_data(succession, directory, path, data),
        Change::Deleted { path } if path == directory => succession.named = None,
        _ => {}
    }
    if first != succession.first.map(|(place, _)| place) {
        succession.first = first.map(|place| (place, committed.zxid));
        succession.named_since = vec![succession.named.clone()];
    }
}

/// Takes in the data of a znode, if it is the directory of the election.
pub(crate) fn at_data(succession: &mut Succession, directory: &str, path: &str, data: &[u8]) {
    if path == directory {
        succession.named = named_in(data);
        succession.named_since.push(succession.named.clone());
    }
}

/// The servers have lost data: nobody is named, unless their data says so.
pub(crate) fn begin_anew(succession: &mut Succession) {
    succession.named = None;
    succession.named_since.push(None);
}

/// The successor in a directory's data, read without any of the code under test.
fn named_in(data: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(data);
    let line = text.lines().nth(1)?;
    line.strip_prefix("successor ").map(str::to_owned)
}

/// A new leader has not passed by candidates that were to lead in its place when its turn came.
///
/// `queue` are the candidates whose znodes exist, in order.
pub(crate) fn at_grant(
    succession: &Succession,
    queue: &[(i64, &String, u64)],
    who: &str,
    hold: &HoldView,
) -> Findings {
    let own = hold.fencing_token().get();
    let Some((_, turn)) = succession.first.filter(|(place, _)| *place == own) else {
        return Findings::new();
    };
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let me = name(hold.node_path());
    // It may have read any of them.
    let named = succession.named_since.as_slice();
    if named.contains(&Some(me.clone())) {
        return Findings::new();
    }
    let behind = queue.iter().skip(1);
    let behind: Vec<(i64, String)> = behind
        .map(|(place, path, _)| (*place, name(path)))
        .collect();
    let mut findings = Findings::new();
    if let [Some(successor)] = named {
        if behind.iter().any(|(_, name)| name == successor) {
            let text = format!("{who} leads with {me}, while {successor} is named");
            findings.push(("nobody leads before a named successor", text));
        }
    }
    let is_standby = |name: &str| name.contains("-standby-latch-");
    let other = |(place, name): &&(i64, String)| *place < turn && !is_standby(name);
    if let Some((_, other)) = behind.iter().find(other).filter(|_| is_standby(&me)) {
        let text = format!("{who} leads with {me}, while {other} waits");
        findings.push(("nobody on standby leads while another campaigns", text));
    }
    findings
}
