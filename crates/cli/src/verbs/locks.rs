//! `zkr locks`: all queues below a path, and what is wrong with them.

use std::time::Duration;

use clap::Args;

use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::{Failure, say};
use crate::look::{Look, LookArguments};
use crate::plain_text::counted;
use crate::queue::{Row, Sort, Summary, age, now};

/// Show all locks, semaphores, elections and groups at a path and below it.
///
/// The table has a row for each queue of zookeeper-recipes, Curator, kazoo and go-zookeeper. The rule
/// of each recipe says who holds. HELD is the age of the oldest holder's znode, with the time that it
/// waited: no znode records when a hold began. zkr lists every znode below the path except the
/// contenders, which it reads. It writes nothing and sets no watch.
#[derive(Debug, Args)]
pub(crate) struct Locks {
    #[command(flatten)]
    look: LookArguments,

    #[command(flatten)]
    filter: Filter,

    /// The order of the rows.
    #[arg(long, value_enum, default_value_t)]
    sort: Sort,

    /// End with code 1 if a contender that is shown has waited for longer, and name the worst queue.
    ///
    /// Candidates of an election do not count: they wait for as long as the leader lives.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    fail_if_older: Option<Duration>,
}

/// Which queues are shown.
#[derive(Debug, Default, Args)]
struct Filter {
    /// Only queues in which a contender waits.
    #[arg(long)]
    waiting: bool,

    /// Only queues whose oldest holder queued longer ago.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    held_longer: Option<Duration>,

    /// Only queues with a contender whose OWNER contains this text.
    #[arg(long, value_name = "TEXT")]
    owner: Option<String>,

    /// Only queues with a contender of this session, such as 0x1000a3b4c5d0000.
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// Only queues with a contender whose client has this address, or whose OWNER names this host.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
}

impl Locks {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let look = self.look.look(connection).await?;
        let now = now();
        let mut shown = Summary::of_all(&look.overview);
        shown.retain(|summary| self.filter.shows(&look, summary, now));
        self.sort.order(&mut shown);
        self.look
            .print(|| look.json(&shown, now), || look.text(&shown, now))?;
        let Some(most) = self.fail_if_older else {
            return Ok(Exit::Done);
        };
        shown.retain(|it| it.is_waited_for_longer(most, now));
        let oldest = shown.iter().min_by_key(|it| it.troubling_wait());
        let Some((oldest, since)) = oldest.and_then(|it| Some((it, it.troubling_wait()?))) else {
            return Ok(Exit::Done);
        };
        let mut text = format!(
            "{}: a contender has waited for {}",
            oldest.path,
            age(since, now)
        );
        if shown.len() > 1 {
            let others = counted(shown.len() - 1, "other queue", "other queues");
            text += &format!("; {others} have waits that are too long");
        }
        say(&text);
        Ok(Exit::Found)
    }
}

impl Filter {
    fn shows(&self, look: &Look, summary: &Summary, now: i64) -> bool {
        let longer = self.held_longer;
        (!self.waiting || summary.is_waited_for())
            && longer.is_none_or(|than| summary.is_held_longer(than, now))
            && (self.is_of_all() || self.shows_any(&look.rows(summary)))
    }

    /// True if no option is about contenders.
    fn is_of_all(&self) -> bool {
        [&self.owner, &self.session, &self.host]
            .iter()
            .all(|it| it.is_none())
    }

    fn shows_any(&self, rows: &[Row]) -> bool {
        let by = |text: &Option<String>, is_meant: &dyn Fn(&Row, &str) -> bool| {
            let any = |text: &str| rows.iter().any(|row| is_meant(row, text));
            text.as_deref().is_none_or(any)
        };
        by(&self.owner, &|row, text| row.contender.owner.contains(text))
            && by(&self.session, &|row, id| {
                row.contender.session_id.to_string() == id
            })
            && by(&self.host, &is_at)
    }
}

/// True if the client of this contender is at this host, as far as anybody can say.
fn is_at(row: &Row, host: &str) -> bool {
    let address = row
        .address
        .as_deref()
        .and_then(|address| address.rsplit_once(':'));
    let address = address.map(|(address, _)| address.trim_matches(['[', ']']));
    let owner = &*row.contender.owner;
    let named = owner.rsplit_once('@').map_or(owner, |(_, named)| named);
    let named = named.rsplit_once(':').map_or(named, |(named, _)| named);
    address == Some(host) || named == host
}
