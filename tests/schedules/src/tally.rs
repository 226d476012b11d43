//! The sum of many runs, kept in a file, so that a long run can be stopped and continued.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::faults_met::FaultsMet;
use crate::figures::Figures;

/// The sum of all runs until now.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many seeds of each recipe have been run, from zero on.
    seeds: BTreeMap<String, u64>,
    /// What has happened.
    pub figures: Figures,
    /// Which faults met which steps.
    pub met: FaultsMet,
}

impl Tally {
    /// How many seeds of this recipe have been run.
    pub fn seeds_of(&self, recipe: &str) -> u64 {
        self.seeds.get(recipe).copied().unwrap_or(0)
    }

    /// Adds the next seeds of a recipe.
    pub fn add(&mut self, recipe: &str, seeds: u64, (figures, met): (Figures, FaultsMet)) {
        *self.seeds.entry(recipe.to_owned()).or_default() += seeds;
        self.figures += figures;
        self.met += met;
    }

    /// Reads the tally of an earlier run. The tally is empty if there is no such file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or is no tally.
    pub fn read(path: &Path) -> io::Result<Tally> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tally::default()),
            text => text?,
        };
        let mut tally = Tally::default();
        for line in text.lines() {
            let known = tally.read_line(line);
            known.ok_or_else(|| io::Error::other(format!("no line of a tally: {line}")))?;
        }
        Ok(tally)
    }

    fn read_line(&mut self, line: &str) -> Option<()> {
        let (line, count) = line.rsplit_once('\t')?;
        let count: u64 = count.parse().ok()?;
        match line.split('\t').collect::<Vec<_>>()[..] {
            ["seeds", recipe] => self.seeds.insert(recipe.to_owned(), count).map_or((), drop),
            ["figure", place] => {
                let place: usize = place.parse().ok()?;
                **self.figures.numbers_mut().get_mut(place)? = count;
            }
            ["met", fault, step] => self.met.add(fault, step, count),
            _ => return None,
        }
        Some(())
    }

    /// Replaces the file. A run that is stopped meanwhile leaves the old file or the new one.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (recipe, seeds) in &self.seeds {
            text += &format!("seeds\t{recipe}\t{seeds}\n");
        }
        let mut figures = self.figures;
        for (place, number) in figures.numbers_mut().into_iter().enumerate() {
            text += &format!("figure\t{place}\t{number}\n");
        }
        for ((fault, step), count) in self.met.counts() {
            text += &format!("met\t{fault}\t{step}\t{count}\n");
        }
        let next = path.with_extension("next");
        fs::write(&next, text)?;
        fs::rename(next, path)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seeds: u64 = self.seeds.values().sum();
        writeln!(formatter, "{seeds} seeds: {}\n\n{}", self.figures, self.met)
    }
}
