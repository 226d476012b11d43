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
            ["figure", name] => {
                let mut figures = self.figures.named_mut().into_iter();
                let (_, figure) = figures.find(|(known, _)| *known == name)?;
                *figure = count;
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
        for (name, number) in self.figures.named() {
            text += &format!("figure\t{name}\t{number}\n");
        }
        for ((fault, step), count) in self.met.counts() {
            text += &format!("met\t{fault}\t{step}\t{count}\n");
        }
        let next = path.with_extension("next");
        fs::write(&next, text)?;
        fs::rename(next, path)
    }
}

/// Three tables: the seeds of each recipe, the figures, and the faults.
impl fmt::Display for Tally {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "| recipe | seeds |\n|---|---:|")?;
        for (recipe, seeds) in &self.seeds {
            writeln!(formatter, "| {recipe} | {} |", grouped(*seeds))?;
        }
        let all = grouped(self.seeds.values().sum());
        writeln!(formatter, "| all | {all} |\n")?;
        writeln!(formatter, "| what happened | times |\n|---|---:|")?;
        for (name, number) in self.figures.named() {
            writeln!(formatter, "| {name} | {} |", grouped(number))?;
        }
        writeln!(formatter, "\n{}", self.met)
    }
}

/// A number with a comma before each three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tally in which each number differs.
    fn tally() -> Tally {
        let mut tally = Tally::default();
        let mut figures = Figures::default();
        for (place, (_, figure)) in (1_u64..).zip(figures.named_mut()) {
            *figure = place * 1_001;
        }
        let mut met = FaultsMet::default();
        met.add("cut off", "set watches", 7);
        met.add("killed", "hold", 8);
        tally.add("lock-parent", 500, (figures, met));
        tally
    }

    #[test]
    fn tally_is_read_as_it_was_written_and_is_continued() {
        let directory = std::env::temp_dir().join(format!("tally-{}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the tally");
        let file = directory.join("tally.txt");
        let empty = Tally::read(&file).expect("a tally that is not there is empty");
        assert_eq!(empty.seeds_of("lock-parent"), 0);
        tally().write(&file).expect("the tally is written");
        let mut read = Tally::read(&file).expect("the tally is read");
        fs::remove_dir_all(&directory).expect("the directory is removed");
        assert_eq!(read.figures, tally().figures);
        assert_eq!(read.met.counts(), tally().met.counts());
        read.add("lock-parent", 500, (tally().figures, tally().met));
        assert_eq!(read.seeds_of("lock-parent"), 1_000);
        assert_eq!(read.figures.grants, 2 * tally().figures.grants);
        // It is no sum.
        assert_eq!(read.figures.longest_share, tally().figures.longest_share);
    }

    #[test]
    fn page_shows_the_tallies_beside_it() {
        let report = Path::new(env!("CARGO_MANIFEST_DIR")).join("report");
        let page = fs::read_to_string(report.join("README.md")).expect("the page is read");
        for file in ["tally.txt", "tally-never-heals.txt"] {
            let tally = Tally::read(&report.join(file)).expect("the tally is read");
            assert!(tally.seeds_of("lock") > 0, "{file} has seeds");
            for table in tally.to_string().trim().split("\n\n") {
                assert!(page.contains(table), "the page lacks, of {file}:\n{table}");
            }
        }
    }
}
