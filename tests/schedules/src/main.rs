//! `simulate`: runs seeds, or replays one.

use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use zookeeper_recipes_schedules::{FaultsMet, Figures, Subject, Tally, Variant};

/// How many lines of a trace are kept.
const TRACE_LIMIT: usize = 100_000;

/// In a run of at least so many seeds of each recipe, each fault meets each step that matters.
const BIG: u64 = 1_000;

/// How many seeds are run between two writes of a tally.
const BLOCK: u64 = 500;

/// Run the recipes under random schedules of faults.
#[derive(Debug, Parser)]
#[command(name = "simulate")]
struct Arguments {
    /// Only this recipe.
    #[arg(long, value_parser = recipe)]
    recipe: Option<Subject>,

    /// The number of seeds per recipe.
    #[arg(long, default_value_t = 2_000)]
    seeds: u64,

    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,

    /// Let some faults be permanent: of a minority of the servers, and of some processes.
    #[arg(long)]
    never_heals: bool,

    /// Add the totals to this file, and resume after the seeds that it has. `--seeds` is the final
    /// number per recipe.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["first", "seed"])]
    tally: Option<PathBuf>,

    /// Replay this seed alone, and print its trace.
    #[arg(long)]
    seed: Option<u64>,
}

fn recipe(name: &str) -> Result<Subject, String> {
    Subject::named(name).ok_or_else(|| {
        let names = Subject::ALL.map(|subject| subject.name());
        format!("is none of {}", names.join(", "))
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let recipes = match arguments.recipe {
        Some(recipe) => vec![recipe],
        None => Subject::ALL.to_vec(),
    };
    let variant = &Variant {
        never_heals: arguments.never_heals,
    };
    let clean = match (&arguments.tally, arguments.seed) {
        (_, Some(seed)) => each(&recipes, |recipe| replay(recipe, seed, true, variant)),
        (Some(file), None) => match continue_tally(file, &recipes, arguments.seeds, variant) {
            Ok(clean) => clean,
            Err(error) => {
                eprintln!("{}: {error}", file.display());
                false
            }
        },
        (None, None) => {
            let mut met = FaultsMet::default();
            let clean = each(&recipes, |recipe| {
                let sum = run_all(recipe, arguments.first, arguments.seeds, variant);
                sum.map(|(_, of_recipe)| met += of_recipe).is_some()
            });
            println!("\n{met}");
            clean && each_met_all(&met, &recipes, arguments.seeds, variant)
        }
    };
    match clean {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Runs something for each recipe. True if all are clean.
fn each(recipes: &[Subject], mut run: impl FnMut(Subject) -> bool) -> bool {
    let clean = recipes.iter().map(|recipe| run(*recipe));
    clean.fold(true, |all, clean| all & clean)
}

/// True if each fault met each step that it has to meet in so many seeds of these recipes.
fn each_met_all(met: &FaultsMet, recipes: &[Subject], seeds: u64, variant: &Variant) -> bool {
    let is_big = recipes.len() == Subject::ALL.len() && seeds >= BIG;
    let matters = is_big && !variant.never_heals;
    let missing = if matters { met.missing() } else { Vec::new() };
    for (fault, step) in &missing {
        println!("NEVER MET: {fault} at the step {step}");
    }
    missing.is_empty()
}

/// Runs the seeds that the tally in this file lacks, and notes each block of them there.
fn continue_tally(
    file: &Path,
    recipes: &[Subject],
    seeds: u64,
    variant: &Variant,
) -> io::Result<bool> {
    let mut tally = Tally::read(file)?;
    let next = |tally: &Tally| {
        let done = recipes.iter().map(|it| (tally.seeds_of(it.name()), *it));
        let open = done.filter(|(done, _)| *done < seeds);
        open.min_by_key(|(done, _)| *done)
    };
    while let Some((first, recipe)) = next(&tally) {
        let number = BLOCK.min(seeds - first);
        let Some(sum) = run_all(recipe, first, number, variant) else {
            return Ok(false);
        };
        tally.add(recipe.name(), number, sum);
        tally.write(file)?;
    }
    println!("\n{tally}");
    Ok(each_met_all(&tally.met, recipes, seeds, variant))
}

/// Runs seeds on all cores, until one shows a violation. `None` if one does.
fn run_all(
    recipe: Subject,
    first: u64,
    seeds: u64,
    variant: &Variant,
) -> Option<(Figures, FaultsMet)> {
    let began = Instant::now();
    let next = AtomicU64::new(first);
    let sum: Mutex<(Figures, FaultsMet)> = Mutex::default();
    let found: Mutex<Option<u64>> = Mutex::new(None);
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
                    let report = recipe.run(seed, 0, variant);
                    if let Ok(mut sum) = sum.lock() {
                        sum.0 += report.figures;
                        sum.1 += report.met;
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
                        println!("{}: {done} seeds, {:.1?}", recipe.name(), began.elapsed());
                    }
                }
            });
        }
    });
    let took = began.elapsed();
    if let Some(seed) = found.into_inner().unwrap_or_default() {
        replay(recipe, seed, false, variant);
        return None;
    }
    let (figures, met) = sum.into_inner().unwrap_or_default();
    let pace = seeds as f64 / took.as_secs_f64();
    println!(
        "{}: {seeds} seeds from {first} on clean in {took:.1?}, {pace:.0} a second: {figures}",
        recipe.name()
    );
    Some((figures, met))
}

/// Runs one seed with its trace.
fn replay(recipe: Subject, seed: u64, always_print: bool, variant: &Variant) -> bool {
    let report = recipe.run(seed, TRACE_LIMIT, variant);
    let is_clean = report.violations.is_empty();
    if always_print || !is_clean {
        println!("{}", report.trace);
    }
    println!("{}, seed {seed}: {}", recipe.name(), report.figures);
    for violation in &report.violations {
        println!("VIOLATION {violation}");
    }
    if !is_clean {
        let (name, never_heals) = (recipe.name(), variant.never_heals);
        let option = if never_heals { " --never-heals" } else { "" };
        println!("replay: cargo xtask simulate --recipe {name} --seed {seed}{option}");
    }
    is_clean
}
