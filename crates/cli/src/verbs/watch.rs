//! `zkr watch`: who holds and who waits, live.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use crossterm::event::{Event, EventStream};
use futures_util::stream::StreamExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use zookeeper_recipes_core::Session;

use crate::addresses::{AddressBook, Addresses, PAUSE};
use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Reader, print};
use crate::plain_text::json_text;
use crate::queue::now;
use crate::screen::Screen;
use crate::signals::{Continued, ended_by_signal};
use crate::watch::{Action, App, Seen, Source, Status};

/// The ages on the screen are drawn again this often. That sends nothing.
const AGES: Duration = Duration::from_secs(1);

/// The shortest time between two drawings.
const FRAME: Duration = Duration::from_millis(30);

/// The longest time after which a change is drawn, also if drawing takes long.
const SLOWEST: Duration = Duration::from_millis(250);

/// Between two drawings, the program rests for this many times of what the last one took.
const REST: u32 = 4;

/// Show who holds and who waits, live: one queue, or all queues at a path and below it.
///
/// If the path has a contender or does not exist, zkr shows the contenders in order. It sets watches
/// instead of polling, and redraws when the queue changes. Above queues it shows the table of
/// `zkr locks`, sorted by trouble, and reads what has changed after each interval. For a partition
/// assignment it draws a bar per worker. Press `?` for the keys, and `q` to quit.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The directory of a lock, a semaphore or an election, one above several, or the path of an
    /// assignment.
    #[arg(default_value = "/")]
    path: String,

    /// The pause between two looks at all queues.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration::parse)]
    interval: Duration,

    /// Print what is there at each change as one JSON object per line, for scripts.
    #[arg(long)]
    json: bool,
}

/// What the screen wants to be read, and what was read.
struct Channels {
    rows: watch::Sender<usize>,
    sessions: watch::Sender<HashSet<i64>>,
    seen: watch::Receiver<Option<Seen>>,
    addresses: watch::Receiver<Addresses>,
    /// How a shell runs `zkr` for the same servers.
    zkr: String,
    /// True if something was read that the screen does not show.
    has_news: bool,
}

impl Watch {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        let screen = match self.json {
            true => None,
            false => Some(Screen::new()?),
        };
        let watch = async |session: &Session| self.watch(connection, session, screen).await;
        connection.within(watch).await
    }

    async fn watch(
        &self,
        connection: &Connection,
        session: &Session,
        screen: Option<Screen>,
    ) -> Result<Exit, Failure> {
        let source = Source::at(session, &self.path, self.interval).await?;
        let (send_seen, seen) = watch::channel(None);
        let (send_addresses, addresses) = watch::channel(Addresses::default());
        let rows = screen.as_ref().map_or(usize::MAX, Screen::height);
        let (rows, rows_wanted) = watch::channel(rows);
        let (sessions, sessions_wanted) = watch::channel(HashSet::new());
        let channels = Channels {
            rows,
            sessions,
            seen,
            addresses,
            zkr: connection.command(true),
            has_news: false,
        };
        let book = AddressBook::new(session, connection);
        let shown = async {
            match screen {
                None => self.follow(channels.seen).await,
                Some(screen) => self.draw(session, channels, screen).await,
            }
        };
        tokio::select! {
            biased;
            shown = shown => shown,
            followed = source.follow(session, rows_wanted, &send_seen) => {
                followed.map(|()| Exit::Done)
            }
            Err(failure) = follow_addresses(book, sessions_wanted, &send_addresses) => Err(failure),
        }
    }

    /// Prints each change, until a signal comes or nobody reads.
    async fn follow(&self, mut seen: watch::Receiver<Option<Seen>>) -> Result<Exit, Failure> {
        let mut ends = std::pin::pin!(ended_by_signal());
        loop {
            tokio::select! {
                biased;
                signal = &mut ends => return Ok(Exit::Signal(signal)),
                Ok(()) = seen.changed() => {}
            }
            let content = seen
                .borrow_and_update()
                .as_ref()
                .map(|seen| seen.content.clone());
            if let Some(content) = content {
                let line = json_text(&format!("{}\n", content.json(now())));
                if print(&line)? == Reader::Gone {
                    return Ok(Exit::Done);
                }
            }
        }
    }

    /// Draws each change, until the user ends it.
    async fn draw(
        &self,
        session: &Session,
        mut channels: Channels,
        mut screen: Screen,
    ) -> Result<Exit, Failure> {
        let mut ends = std::pin::pin!(ended_by_signal());
        let mut continued = Continued::new();
        let Some(first) = channels.first().await else {
            return Ok(Exit::Done);
        };
        let mut app = App::new(&self.path, first.content, &channels.zkr);
        screen.enter()?;
        let mut keys = EventStream::new();
        let mut connected_at = Instant::now();
        loop {
            let began = Instant::now();
            let is_connected = session.is_connected();
            if is_connected {
                connected_at = began;
            }
            let status = channels.update(&mut app, is_connected, connected_at);
            screen.draw(|frame| app.draw(frame, &status))?;
            channels.want(&app);
            let drawn = Instant::now();
            let next = drawn + ((drawn - began) * REST).clamp(FRAME, SLOWEST);
            let mut is_changed = false;
            loop {
                tokio::select! {
                    biased;
                    () = sleep_until(next), if is_changed => break,
                    signal = &mut ends => return Ok(Exit::Signal(signal)),
                    event = keys.next() => {
                        let Some(Ok(event)) = event else { return Ok(Exit::Done) };
                        is_changed = true;
                        let Event::Key(key) = event else { continue };
                        match app.on_key(key) {
                            Action::Quit => return Ok(Exit::Done),
                            Action::Suspend => screen.suspend()?,
                            _ => {}
                        }
                    }
                    () = continued.next() => {
                        screen.enter()?;
                        is_changed = true;
                    }
                    () = channels.changed() => is_changed = true,
                    () = sleep_until(drawn + AGES) => break,
                }
            }
        }
    }
}

/// Keeps the addresses of the sessions that the caller wants up to date.
async fn follow_addresses(
    mut book: AddressBook<'_>,
    mut sessions: watch::Receiver<HashSet<i64>>,
    addresses: &watch::Sender<Addresses>,
) -> Result<(), Failure> {
    loop {
        let wanted = sessions.borrow_and_update().clone();
        if !wanted.is_empty() {
            let are_complete = |known: &Addresses| wanted.iter().all(|it| known.has(*it));
            let known = book.refreshed(are_complete).await?;
            addresses.send_if_modified(|sent| {
                let is_new = *sent != known;
                *sent = known;
                is_new
            });
        }
        tokio::select! {
            changed = sessions.changed() => if changed.is_err() { return Ok(()) },
            () = sleep(PAUSE) => {}
        }
    }
}

impl Channels {
    /// What the first look has shown.
    async fn first(&mut self) -> Option<Seen> {
        let seen = self.seen.wait_for(Option::is_some).await.ok()?;
        seen.clone()
    }

    /// Resolves when something was read.
    async fn changed(&mut self) {
        tokio::select! {
            Ok(()) = self.seen.changed() => self.has_news = true,
            Ok(()) = self.addresses.changed() => self.has_news = true,
            else => std::future::pending().await,
        }
    }

    /// Takes over what was read, and says how old it is.
    fn update(&mut self, app: &mut App, is_connected: bool, connected_at: Instant) -> Status {
        let seen = self.seen.borrow();
        if let Some(seen) = seen.as_ref().filter(|_| self.has_news) {
            app.update(seen.content.clone(), self.addresses.borrow().clone());
            self.has_news = false;
        }
        let error = || seen.as_ref().and_then(|seen| seen.error.clone());
        let trouble = match is_connected {
            false => Some("no server answers".to_owned()),
            true => error(),
        };
        let looked_at = seen.as_ref().and_then(|seen| seen.looked_at);
        let since = looked_at.or(trouble.as_ref().map(|_| connected_at));
        Status {
            age: since.map(|since| since.elapsed()),
            trouble,
            now: now(),
        }
    }

    /// Asks for what the screen needs, and was not read.
    fn want(&self, app: &App) {
        self.rows.send_if_modified(|rows| {
            let before = std::mem::replace(rows, app.rows_wanted());
            before != *rows
        });
        let sessions = app.sessions();
        self.sessions.send_if_modified(|wanted| {
            let before = std::mem::replace(wanted, sessions);
            before != *wanted
        });
    }
}
