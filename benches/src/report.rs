//! The report of a bench: Markdown for people, CSV for programs, SVG for both.

mod machine;
mod plot;
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

pub use machine::Machine;
pub use plot::{Plot, Series};
pub use table::{Cell, Table, shown};

/// The help of a value on a command line.
pub fn help(value: &impl clap::ValueEnum) -> String {
    let value = value.to_possible_value();
    let help = value.as_ref().and_then(|value| value.get_help());
    help.map_or_else(String::new, ToString::to_string)
}

/// Where reports go, as the command line names it.
#[derive(Clone, Debug, clap::Args)]
pub struct Destination {
    /// The directory to write the report to. Without it, the report goes to target/bench of the
    /// workspace.
    #[arg(long, value_name = "DIRECTORY")]
    output: Option<PathBuf>,

    /// Also write it to benches/report of the workspace, in a directory named by machine and day,
    /// to be committed.
    #[arg(long)]
    commit_report: bool,
}

/// A report while it is put together, part by part.
#[derive(Debug)]
pub struct Report {
    name: &'static str,
    machine: Machine,
    date: String,
    text: String,
    /// The names and the contents of the files beside the text.
    files: Vec<(String, String)>,
}

impl Report {
    /// Begins a report. The name of each file begins with the bench's name.
    pub fn new(name: &'static str, title: &str, machine: Machine) -> Report {
        // The form is 2025-01-31T…, in UTC.
        let now = jiff::Timestamp::now().to_string();
        let date = now.split('T').next().unwrap_or(&now).to_owned();
        let text = format!("# {title}\n\nMeasured on {date}. {machine}\n");
        Report {
            name,
            machine,
            date,
            text,
            files: Vec::new(),
        }
    }

    /// Adds a heading of the second level.
    pub fn heading(&mut self, heading: &str) {
        self.paragraph(&format!("## {heading}"));
    }

    /// Adds a paragraph, or any other block of Markdown.
    pub fn paragraph(&mut self, text: &str) {
        // Writing to a String does not fail.
        let _ = write!(self.text, "\n{}\n", text.trim_end());
    }

    /// Adds a table, also as `<bench>-<name>.csv`.
    pub fn table(&mut self, name: &str, table: &Table) {
        self.paragraph(&table.to_markdown());
        self.data(name, table);
    }

    /// Adds a table as `<bench>-<name>.csv` only.
    pub fn data(&mut self, name: &str, table: &Table) {
        let file = format!("{}-{name}.csv", self.name);
        self.files.push((file, table.to_csv()));
    }

    /// Adds a picture, which is written as `<bench>-<name>.svg`.
    pub fn plot(&mut self, name: &str, plot: &Plot) -> anyhow::Result<()> {
        let file = format!("{}-{name}.svg", self.name);
        self.paragraph(&format!("![{}]({file})", plot.title));
        self.files.push((file, plot.to_svg()?));
        Ok(())
    }

    /// Writes the text as `<bench>.md`, and the other files beside it, and prints their paths.
    pub fn write(mut self, destination: &Destination) -> anyhow::Result<()> {
        self.files.push((format!("{}.md", self.name), self.text));
        let mut directories = vec![match &destination.output {
            Some(directory) => directory.clone(),
            None => target().join("bench"),
        }];
        if destination.commit_report {
            let named = format!("{}-{}", self.machine.slug(), self.date);
            directories.push(workspace().join("benches/report").join(named));
        }
        for directory in directories {
            fs::create_dir_all(&directory)
                .with_context(|| format!("cannot make {}", directory.display()))?;
            for (name, content) in &self.files {
                let path = directory.join(name);
                fs::write(&path, content)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                println!("{}", path.display());
            }
        }
        Ok(())
    }
}

fn workspace() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// The directory that cargo builds into.
pub fn target() -> PathBuf {
    workspace().join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}
