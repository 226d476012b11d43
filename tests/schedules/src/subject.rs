//! What the schedules run: each recipe, and what is built on recipes.

use zookeeper_recipes_suite::{LOCK_OF_A_POOL, TestedRecipe};

use crate::run::{Report, Variant};
use crate::{assignment, group, overview, run, slots};

/// Runs one seed. With a `trace_limit` that many of the newest lines of its trace are kept.
type Run = fn(u64, usize, &Variant) -> Report;

/// What the schedules run.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    /// A recipe, with the contenders that all recipes have.
    Recipe(TestedRecipe),
    /// Something else, with its own participants and its own judge.
    Other(&'static str, Run),
}

impl Subject {
    /// All of them.
    pub const ALL: [Subject; 12] = [
        Subject::Recipe(TestedRecipe::ALL[0]),
        Subject::Recipe(TestedRecipe::ALL[1]),
        Subject::Recipe(TestedRecipe::ALL[2]),
        Subject::Recipe(TestedRecipe::ALL[3]),
        Subject::Recipe(TestedRecipe::ALL[4]),
        Subject::Recipe(TestedRecipe::ALL[5]),
        Subject::Recipe(TestedRecipe::ALL[6]),
        Subject::Recipe(LOCK_OF_A_POOL),
        Subject::Other("group", group::run),
        Subject::Other("once-per-slot", slots::run),
        Subject::Other("assignment", assignment::run),
        Subject::Other("overview", overview::run),
    ];

    /// The subject of this name.
    pub fn named(name: &str) -> Option<Subject> {
        Subject::ALL
            .into_iter()
            .find(|subject| subject.name() == name)
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Recipe(recipe) => recipe.name,
            Subject::Other(name, _) => name,
        }
    }

    /// Runs one seed. With a `trace_limit` that many of the newest lines of its trace are kept.
    ///
    /// The same seed gives the same run.
    pub fn run(&self, seed: u64, trace_limit: usize, variant: &Variant) -> Report {
        match self {
            Subject::Recipe(recipe) => run::run(*recipe, seed, trace_limit, variant),
            Subject::Other(_, run) => run(seed, trace_limit, variant),
        }
    }
}
