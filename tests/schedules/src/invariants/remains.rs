//! Nothing remains of the contenders that have left.

use zookeeper_recipes_simulation::Simulation;

use crate::findings::Findings;
use crate::ledger::Ledger;

/// The znodes and watches of contenders that remain. Observers remain, with one watch each. Watches
/// count only if the servers remove them on request.
pub(crate) fn of_contenders(
    simulation: &Simulation,
    ledgers: &[&Ledger],
    watches_count: bool,
) -> Findings {
    let mut findings = Findings::new();
    let mut watches = simulation.administrator().watches();
    for ledger in ledgers {
        let contenders = ledger.contenders();
        if !contenders.is_empty() {
            findings.push(("no znode remains", format!("{contenders:?}")));
        }
        for observer in ledger.observers() {
            // By its process: it may be in another session than it knows of.
            let own = watches.iter().position(|watch| watch.process == observer);
            if let Some(own) = own {
                watches.remove(own);
            }
        }
    }
    // A session keeps its watches after three removals in a row that broke the connection.
    let counters = simulation.counters();
    watches.retain(|watch| counters.interrupted_removals_of(&watch.process) < 3);
    if watches_count && !watches.is_empty() {
        findings.push(("no watch remains", format!("{watches:?}")));
    }
    findings
}

/// What is still there of sessions that have been closed: only the simulation's own task may be.
pub(crate) fn of_sessions(simulation: &Simulation) -> Findings {
    let mut findings = Findings::new();
    let sessions = simulation.administrator().sessions();
    if !sessions.is_empty() {
        findings.push(("no session remains", format!("{sessions:?}")));
    }
    let tasks = tokio::runtime::Handle::current()
        .metrics()
        .num_alive_tasks();
    if tasks > 1 {
        findings.push(("no task remains", format!("{} do", tasks - 1)));
    }
    findings
}
