//! `simulate`: runs seeds, or replays one.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use zookeeper_recipes_schedules::{Figures, Kind, Report, Variant, run_as};
use zookeeper_recipes_suite::TestedRecipe;

/// How many lines of a trace are kept.
const TRACE_LIMIT: usize = 100_000;

/// Run the recipes under random schedules of faults.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
struct Arguments {
    /// Only this recipe.
    #[arg(long, value_parser = recipe)]
    recipe: Option<TestedRecipe>,

    /// How many seeds each recipe is run with.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,

    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Continue after a violation, and count in how many seeds each promise is broken.
    #[arg(long)]
    all: bool,

    /// Leave these kinds of fault out.
    #[arg(long, value_parser = kind)]
    without: Vec<Kind>,

    /// Have some faults never heal: of a minority of the servers, and of some processes.
    #[arg(long)]
    never_heals: bool,

    /// Replay this seed alone, and print its trace.
    #[arg(long)]
    seed: Option<u64>,
}

fn recipe(name: &str) -> Result<TestedRecipe, String> {
    TestedRecipe::named(name).ok_or_else(|| {
        let names = TestedRecipe::ALL.map(|recipe| recipe.name);
        format!("is none of {}", names.join(", "))
    })
}

fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, kind)| *kind).ok_or_else(|| {
        let names = Kind::ALL.map(|(name, _)| name);
        format!("is none of {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let recipes = match arguments.recipe {
        Some(recipe) => vec![recipe],
        None => TestedRecipe::ALL.to_vec(),
    };
    let variant = &Variant {
        without: arguments.without,
        never_heals: arguments.never_heals,
    };
    let mut clean = true;
    for recipe in recipes {
        clean &= match arguments.seed {
            Some(seed) => replay(recipe, seed, true, variant),
            None if arguments.all => survey(recipe, arguments.first, arguments.seeds, variant),
            None => run_all(recipe, arguments.first, arguments.seeds, variant),
        };
    }
    match clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs seeds on all cores, until one shows a violation.
fn run_all(recipe: TestedRecipe, first: u64, seeds: u64, variant: &Variant) -> bool {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let found: Mutex<Option<u64>> = Mutex::new(None);
    let figures = Mutex::new(Figures::default());
    let end = first + seeds;
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let report = run_as(recipe, seed, 0, variant);
                    if let Ok(mut figures) = figures.lock() {
                        *figures += report.figures;
                    }
                    if !report.violations.is_empty() {
                        // The others may still be at an earlier one.
                        next.fetch_max(end, Ordering::Relaxed);
                        if let Ok(mut found) = found.lock() {
                            *found = Some(found.map_or(seed, |found| found.min(seed)));
                        }
                    }
                    let done = seed - first + 1;
                    if done % 500 == 0 {
                        println!("{}: {done} seeds, {:.1?}", recipe.name, began.elapsed());
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    let figures = figures.into_inner().unwrap_or_default();
    let found = found.into_inner().unwrap_or_default();
    let Some(seed) = found else {
        let pace = seeds as f64 / took.as_secs_f64();
        println!(
            "{}: {seeds} seeds clean in {took:.1?}, {pace:.0} a second: {figures}",
            recipe.name
        );
        return true;
    };
    replay(recipe, seed, false, variant);
    false
}

/// Runs all seeds on all cores, and reports which promises they break.
fn survey(recipe: TestedRecipe, first: u64, seeds: u64, variant: &Variant) -> bool {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let broken: Mutex<BTreeMap<&'static str, BTreeSet<u64>>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= first + seeds {
                        return;
                    }
                    let report = run_as(recipe, seed, 0, variant);
                    let promises = report.violations.iter().map(|it| it.promise);
                    let promises: BTreeSet<&str> = promises.collect();
                    if let Ok(mut broken) = broken.lock() {
                        for promise in promises {
                            broken.entry(promise).or_default().insert(seed);
                        }
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    let broken = broken.into_inner().unwrap_or_default();
    let all: BTreeSet<u64> = broken.values().flatten().copied().collect();
    let number = all.len();
    let name = recipe.name;
    println!("{name}: {number} of {seeds} seeds break a promise, in {took:.1?}");
    for (promise, seeds) in &broken {
        let some: Vec<u64> = seeds.iter().copied().take(8).collect();
        println!("{:>6} {promise}: seeds {some:?}", seeds.len());
    }
    broken.is_empty()
}

/// Runs one seed with its trace.
fn replay(recipe: TestedRecipe, seed: u64, always_print: bool, variant: &Variant) -> bool {
    let Report {
        violations,
        trace,
        figures,
    } = run_as(recipe, seed, TRACE_LIMIT, variant);
    if always_print || !violations.is_empty() {
        println!("{trace}");
    }
    println!("{}, seed {seed}: {figures}", recipe.name);
    for violation in &violations {
        println!("VIOLATION {violation}");
    }
    if !violations.is_empty() {
        let option = if variant.never_heals {
            " --never-heals"
        } else {
            ""
        };
        println!(
            "replay: cargo xtask simulate --recipe {} --seed {seed}{option}",
            recipe.name
        );
    }
    violations.is_empty()
}
