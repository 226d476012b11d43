//! `cargo xtask demo`: one lock, many contenders, four ways to wait, and what each of them costs.

use std::io::{IsTerminal, Write, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::signal::unix::{Signal, SignalKind, signal};
use zookeeper_recipes_lock::common::{NodePath, Refusal, ServerError, ensemble::ServerSession};
use zookeeper_recipes_lock::{ConnectOptions, FencingToken, Session};
use zookeeper_recipes_testkit::{CONNECT_VARIABLE, ServerOptions, TestEnsemble};

use crate::contest::{Contest, POLL_INTERVAL, Report, WAYS, Way};
use crate::install;

/// How long the removal of what the demo has created may take.
const CLEANING: Duration = Duration::from_secs(10);

/// How often it is looked whether the contenders of an interrupted demo have gone.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// How many contenders wait for the lock, each with a session of its own.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    contenders: u16,

    /// How long each of them holds it, as in 50ms or 1s.
    #[arg(long, default_value = "50ms", value_parser = duration)]
    hold: Duration,

    /// An ensemble to use (host:port,host:port/chroot) instead of a server started for the demo;
    /// else the one that the environment names in ZOOKEEPER_CONNECT.
    #[arg(long)]
    connect: Option<String>,
}

/// Runs the demo, and cleans up after it, also when it is interrupted.
///
/// # Errors
///
/// When a contest fails, or shows that a promise was not kept.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let connect = arguments.connect.clone().or_else(|| {
        let named = std::env::var(CONNECT_VARIABLE).ok();
        named.filter(|value| !value.is_empty())
    });
    if connect.is_none() {
        install::run()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    runtime.block_on(async {
        let mut interrupts = Interrupts::new()?;
        let ensemble = tokio::select! {
            ensemble = open(connect.as_deref()) => ensemble?,
            () = interrupts.next() => bail!("interrupted"),
        };
        let directory = TestEnsemble::directory("recipes-demo");
        let shown = tokio::select! {
            shown = show(arguments, &ensemble, &directory) => shown,
            () = interrupts.next() => Err(anyhow::anyhow!("interrupted")),
        };
        // A second interrupt ends this too.
        let cleaned = tokio::select! {
            cleaned = tokio::time::timeout(CLEANING, clean(&ensemble, &directory)) => match cleaned {
                Ok(cleaned) => cleaned,
                Err(_) => Err(anyhow::anyhow!("not done after {CLEANING:?}")),
            },
            () = interrupts.next() => Err(anyhow::anyhow!("interrupted")),
        };
        let cleaned = cleaned.with_context(|| format!("cannot remove {directory}"));
        match (shown, cleaned) {
            (Ok(()), Ok(())) => {
                say("Left behind: nothing. Every directory was empty and has been removed.");
                Ok(())
            }
            (Ok(()), Err(error)) | (Err(error), Ok(())) => Err(error),
            (Err(error), Err(cleaning)) => Err(anyhow::anyhow!("{error:#}\nand then: {cleaning:#}")),
        }
    })
}

/// The ensemble to use, which answers.
async fn open(connect: Option<&str>) -> anyhow::Result<TestEnsemble> {
    let ensemble = match connect {
        Some(connect_string) => {
            say(&format!("Using ZooKeeper at {connect_string}."));
            TestEnsemble::external(connect_string)?
        }
        None => {
            let ensemble = TestEnsemble::start(ServerOptions::new()).await?;
            say(&format!(
                "Started a ZooKeeper server at {}.",
                ensemble.connect_string()
            ));
            ensemble
        }
    };
    // Where nobody answers, it is said before anything has to be cleaned up.
    let session = Session::connect(ensemble.connect_string()).await?;
    session.close().await;
    Ok(ensemble)
}

/// Runs all contests, and says what came of them.
async fn show(
    arguments: &Arguments,
    ensemble: &TestEnsemble,
    directory: &str,
) -> anyhow::Result<()> {
    let contest = Contest {
        contenders: usize::from(arguments.contenders),
        hold: arguments.hold,
    };
    say(&format!(
        "{} contenders wait for a lock that each then holds for {:?}.\n",
        contest.contenders, contest.hold
    ));
    let began = Instant::now();
    let board = Board::new(&contest);
    let mut reports = Vec::new();
    for (place, way) in WAYS.iter().enumerate() {
        let path = format!("{directory}/{}", way.name.replace(' ', "-"));
        let mut held = 0;
        let entered = |who: &str, token: FencingToken| {
            held += 1;
            board.holds(place, held, who, token);
        };
        let report = contest.run(way, ensemble, &path, entered).await?;
        board.passed(place, &report);
        reports.push(report);
    }
    drop(board);
    say("");
    say(&table(&reports));
    say(&legend(&contest, ensemble, &reports));
    verdict(&reports)?;
    say(&format!("All of it took {:.1?}.", began.elapsed()));
    Ok(())
}

/// Says whether what is promised was kept.
fn verdict(reports: &[Report]) -> anyhow::Result<()> {
    let violations: Vec<String> = WAYS
        .iter()
        .zip(reports)
        .flat_map(|(way, report)| {
            let named = |violation| format!("{}: {violation}", way.name);
            report.violations.iter().map(named)
        })
        .collect();
    if !violations.is_empty() {
        bail!("a promise was not kept\n{}", violations.join("\n"));
    }
    let turns: usize = reports.iter().map(|report| report.turns.len()).sum();
    say(&format!(
        "Never two at once: {turns} holds, each entered after the one before had left, \
         each with a newer token."
    ));
    for (way, report) in WAYS.iter().zip(reports) {
        let turns = report.turns.len();
        say(&match way.in_order {
            true => format!(
                "Order kept, {}: {turns} of {turns} held in the order of the queue.",
                way.name
            ),
            false => format!(
                "Order not promised, {}: {} of {turns} held out of turn.",
                way.name, report.out_of_turn
            ),
        });
    }
    Ok(())
}

/// The figures, a line for each way.
fn table(reports: &[Report]) -> String {
    let head = [
        "way to wait",
        "time for all",
        "requests",
        "notifications",
        "requests per release",
        "woken per release",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    for (way, report) in WAYS.iter().zip(reports) {
        // Behind the last one nobody waits; the starter's release was the first.
        let releases = report.turns.len().max(1) as f64;
        let (all, passing) = (report.all.traffic(), report.passing.traffic());
        rows.push([
            way.name.to_owned(),
            format!("{:.2} s", report.took.as_secs_f64()),
            all.requests.to_string(),
            all.notifications.to_string(),
            format!("{:.1}", passing.requests as f64 / releases),
            format!("{:.1}", report.passing.wake_ups as f64 / releases),
        ]);
    }
    lay_out(&rows)
}

/// A Markdown table whose columns stand under each other: the first to the left, others right.
fn lay_out<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut lines = Vec::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate();
        let cells: Vec<String> = cells
            .map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            })
            .collect();
        lines.push(format!("| {} |", cells.join(" | ")));
        if lines.len() == 1 {
            let rules = widths.iter().enumerate();
            let rules: Vec<String> = rules
                .map(|(column, width)| match column {
                    0 => "-".repeat(*width),
                    _ => format!("{}:", "-".repeat(width - 1)),
                })
                .collect();
            lines.push(format!("| {} |", rules.join(" | ")));
        }
    }
    lines.join("\n")
}

/// What the figures are.
fn legend(contest: &Contest, ensemble: &TestEnsemble, reports: &[Report]) -> String {
    let by_server = reports.iter().all(|report| report.all.by_server.is_some());
    let source = match (by_server, ensemble.server().is_some()) {
        (true, true) => "the server's own counts (mntr)",
        (true, false) => "the servers' own counts (mntr), other clients' requests included",
        (false, _) => "the clients' counts, since the server does not answer mntr",
    };
    format!(
        "\n\
         time for all: from the starter's release to the last one's; {:?} of it they held.\n\
         requests, notifications: from the first one's asking to the last one's release, by\n\
         {source}. Neither the counting itself nor the\n\
         sessions' probes are in it; pings are, which a session sends after 9 s of silence.\n\
         per release: since all of them waited. Woken: notifications to others than the one who\n\
         released. Who polls is woken by nobody, and looks every {POLL_INTERVAL:?}.\n",
        contest
            .hold
            .saturating_mul(u32::try_from(contest.contenders).unwrap_or(u32::MAX)),
    )
}

/// Shows who holds: in a terminal as bars, elsewhere as lines.
enum Board {
    Bars(Vec<ProgressBar>),
    Lines { contenders: usize },
}

impl Board {
    fn new(contest: &Contest) -> Board {
        if !stdout().is_terminal() {
            return Board::Lines {
                contenders: contest.contenders,
            };
        }
        let style = ProgressStyle::with_template("{prefix:<11} {bar:30} {pos:>4}/{len} {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stdout());
        let bar = |way: &Way| {
            let bar = bars.add(ProgressBar::new(contest.contenders as u64));
            bar.set_style(style.clone());
            bar.set_prefix(way.name);
            bar.tick();
            bar
        };
        Board::Bars(WAYS.iter().map(bar).collect())
    }

    fn holds(&self, way: usize, held: usize, who: &str, token: FencingToken) {
        match self {
            Board::Bars(bars) => {
                bars[way].set_message(format!("{who} holds, token {token}"));
                bars[way].set_position(held as u64);
            }
            Board::Lines { contenders } => {
                let name = WAYS[way].name;
                say(&format!(
                    "{name:<11} {held:>4}/{contenders} {who} holds, token {token}"
                ));
            }
        }
    }

    fn passed(&self, way: usize, report: &Report) {
        let problem = match report.violations.len() {
            0 => String::new(),
            number => format!(", {number} violations"),
        };
        let passed = format!("passed in {:.2} s{problem}", report.took.as_secs_f64());
        match self {
            Board::Bars(bars) => bars[way].finish_with_message(passed),
            Board::Lines { .. } => say(&format!("{:<11} {passed}", WAYS[way].name)),
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Board::Bars(bars) = self {
            // Those of an interrupted demo are left as they stand.
            for bar in bars.iter().filter(|bar| !bar.is_finished()) {
                bar.abandon();
            }
        }
    }
}

/// Removes what the demo has created, once the contenders have gone.
async fn clean(ensemble: &TestEnsemble, directory: &str) -> anyhow::Result<()> {
    let options = ConnectOptions::new().connection_timeout(CLEANING / 2);
    let session = Session::connect_with(ensemble.connect_string(), options).await?;
    let server = session.server(&NodePath::new(directory)?).await?;
    for way in list(&*server, directory).await? {
        let path = format!("{directory}/{way}");
        // After an interrupt, the contenders go in the background.
        while !list(&*server, &path).await?.is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        delete(&*server, &path).await?;
    }
    delete(&*server, directory).await?;
    drop(server);
    session.close().await;
    Ok(())
}

async fn list(server: &dyn ServerSession, path: &str) -> Result<Vec<String>, ServerError> {
    match server.list(path).await {
        Err(error) if error.is(Refusal::NoNode) => Ok(Vec::new()),
        answer => answer,
    }
}

async fn delete(server: &dyn ServerSession, path: &str) -> Result<(), ServerError> {
    match server.delete(path).await {
        Err(error) if error.is(Refusal::NoNode) => Ok(()),
        answer => answer,
    }
}

/// Ctrl-C, and the wish of others that this process ends.
struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    fn new() -> anyhow::Result<Interrupts> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Interrupts {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// Writes a line. That nobody reads it any more, as after `| head`, is no reason to leave a mess.
fn say(line: &str) {
    let _ = writeln!(stdout(), "{line}");
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let number: u64 = digits
        .parse()
        .map_err(|_| "not a whole number with a unit, as in 50ms or 1s".to_owned())?;
    match &text[digits.len()..] {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        unit => Err(format!("unit {unit:?}, where ms or s is known")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(duration("0ms"), Ok(Duration::ZERO));
        assert_eq!(duration("2s"), Ok(Duration::from_secs(2)));
        for bad in ["", "50", "ms", "1h", "-1s", "1.5s", "5 0ms"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn columns_stand_under_each_other() {
        let rows = [["way", "n"], ["predecessor", "100"]].map(|row| row.map(str::to_owned));
        assert_eq!(
            lay_out(&rows),
            "| way         |   n |\n| ----------- | --: |\n| predecessor | 100 |"
        );
    }
}
