//! The report.

use std::collections::BTreeMap;
use std::env;

use zookeeper_recipes_benches::report::{Report, Table, help};

use crate::faults::{Count, Fault, Outcome};
use crate::settings::{SESSION_TIMEOUT, TICK};

/// What the referee has heard of a recipe.
#[derive(Debug)]
struct Row {
    recipe: String,
    grants: usize,
    works: usize,
}

/// A row for each recipe. The partitions of the assignment are one.
fn rows(outcome: &Outcome) -> Vec<Row> {
    let by_recipe = |counts: &BTreeMap<String, usize>| {
        let mut sums = BTreeMap::<String, usize>::new();
        for (resource, count) in counts {
            let recipe = resource.split('/').next().unwrap_or_default();
            *sums.entry(recipe.to_owned()).or_default() += count;
        }
        sums
    };
    let works = by_recipe(&outcome.report.works);
    let rows = by_recipe(&outcome.report.grants).into_iter();
    rows.map(|(recipe, grants)| Row {
        works: works.get(&recipe).copied().unwrap_or_default(),
        recipe,
        grants,
    })
    .collect()
}

pub(crate) fn report(outcome: &Outcome, command: &str) -> Report {
    let title = "Processes that hold every recipe, under faults";
    let mut report = Report::new("soak", title, outcome.machine.clone());
    report.paragraph(&format!(
        "Command: `{command}`. Commit: {}. It ran for {:.1} minutes. The session timeout is {SESSION_TIMEOUT:?}, \
         the tick {TICK:?}. Three processes contend for one queue of each recipe, and are the workers \
         of one assignment. The referee is in another process than these.",
        env::var("REPORT_COMMIT").unwrap_or_else(|_| "unknown".to_owned()),
        outcome.lasted.as_secs_f64() / 60.0
    ));
    report.heading("What was held");
    report.table("recipes", &recipes(outcome));
    report.paragraph(&format!(
        "Broken promises: {}. The promises: all that is held at once weighs no more than the recipe's \
         capacity, and the tokens ascend. A piece of work counts if the process looked at its hold \
         just before. The referee takes a hold as held until the process reports its end, so it \
         would also find a holder that learns too late of its loss.",
        outcome.report.violations.len()
    ));
    report.heading("What failed");
    report.table("faults", &faults(outcome));
    report.paragraph(
        "A recovery is from the end of the fault until every recipe was granted again and the \
         partitions were balanced again. While a process is killed or stopped, the others have to \
         come to that without it.",
    );
    report.heading("What this does not show");
    report.paragraph(
        "- A process that is stopped holds nothing for the referee from then on. It may have looked \
         at a hold just before the stop: for each of its holds, one report of a grant and one of a \
         piece of work may follow. Only a fencing token guards against these.\n\
         - All processes are on one machine, and their clocks are one.",
    );
    report
}

fn recipes(outcome: &Outcome) -> Table {
    Table::of(
        &rows(outcome),
        &[
            ("recipe", &|row| row.recipe.as_str().into()),
            ("grants", &|row| row.grants.into()),
            ("pieces of work", &|row| row.works.into()),
        ],
    )
}

fn faults(outcome: &Outcome) -> Table {
    let faults: Vec<(&Fault, &Count)> = outcome.faults.iter().collect();
    Table::of(
        &faults,
        &[
            ("fault", &|(fault, _)| help(*fault).into()),
            ("times", &|(_, count)| count.times.into()),
            ("longest recovery [s]", &|(_, count)| {
                count.longest.as_secs_f64().into()
            }),
        ],
    )
}
