//! The outcomes, as lines or as JSON.

use std::io::Write;

use serde_json::{Value, json};
use zookeeper_recipes_testkit::conformance::Outcome;

use crate::recipes::CheckedRecipe;

/// The outcomes so far.
pub(crate) struct Report {
    connect: String,
    json: bool,
    outcomes: Vec<Value>,
    is_broken: bool,
}

impl Report {
    pub(crate) fn new(connect: &str, json: bool) -> Report {
        Report {
            connect: connect.to_owned(),
            json,
            outcomes: Vec::new(),
            is_broken: false,
        }
    }

    /// Adds an outcome. Without JSON, prints it at once.
    pub(crate) fn add(&mut self, recipe: CheckedRecipe, promise: &str, outcome: &Outcome) {
        let (grade, verdict, text) = match outcome {
            Outcome::Kept => ("ok  ", "kept", None),
            Outcome::Broken(seen) => ("BAD ", "broken", Some(&**seen)),
            Outcome::Skipped(cause) => ("skip", "skipped", Some(*cause)),
            _ => ("skip", "unknown", None),
        };
        self.is_broken |= matches!(outcome, Outcome::Broken(_));
        let recipe = recipe.name();
        if self.json {
            self.outcomes.push(json!({
                "recipe": recipe, "promise": promise, "verdict": verdict, "text": text,
            }));
        } else {
            let text = text.map(|text| format!(": {text}")).unwrap_or_default();
            print(&format!("{grade}  {recipe}: {promise}{text}"));
        }
    }

    /// Ends the report. True if a promise is broken.
    pub(crate) fn end(self) -> bool {
        if self.json {
            let object = json!({ "connect": self.connect, "outcomes": self.outcomes });
            print(&format!("{object:#}"));
        }
        self.is_broken
    }
}

/// Prints lines. A reader that has closed the pipe has seen enough.
fn print(lines: &str) {
    let _ = writeln!(std::io::stdout(), "{lines}");
}
