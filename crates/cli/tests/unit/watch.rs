//! Tests of `src/watch`: what is on a screen of some size after some keys.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, NodePath, Permission, Session};
use zookeeper_recipes_overview::{Overview, QueueStatus};
use zookeeper_recipes_simulation::Simulation;
use zookeeper_recipes_suite::simulated_session;

use super::view::Content;
use super::{Action, App, Status};
use crate::addresses::Addresses;
use crate::queue::{milliseconds, now};

const WIDE: (u16, u16) = (110, 16);

/// The prefix of a contender of a lock, as go-zookeeper writes it.
const GO: &str = "_c_0123456789abcdef0123456789abcdef-lock-";

struct Stage {
    simulation: Simulation,
    viewer: Session,
}

impl Stage {
    async fn new() -> Stage {
        let simulation = Simulation::default();
        let viewer = simulated_session(&simulation, "viewer").await;
        Stage { simulation, viewer }
    }

    async fn client(&self, name: &str) -> Arc<ServerSession> {
        let connected = self.simulation.process(name).connect().await;
        connected.expect("a session opens")
    }

    /// Creates persistent znodes.
    fn create(&self, path: &str, data: &str) {
        let administrator = self.simulation.administrator();
        let created = administrator.create(path, data.as_bytes(), CreateMode::Persistent);
        created.expect("it is new");
    }

    /// Queues of these numbers of contenders.
    async fn queues(&self, client: &ServerSession, queues: &[(&str, usize)]) {
        for (path, number) in queues {
            self.create(path, "");
            for place in 0..*number {
                queue(client, path, &format!("owner-{place}@host:1")).await;
            }
        }
    }

    /// Two sessions that wait for each other at `/dead-a` and `/dead-b`, while they are kept.
    async fn deadlock(&self) -> [Arc<ServerSession>; 2] {
        let [one, other] = [self.client("one").await, self.client("other").await];
        for path in ["/dead-a", "/dead-b"] {
            self.create(path, "");
        }
        queue(&one, "/dead-a", "billing@host-1:7").await;
        queue(&other, "/dead-b", "report@host-2:8").await;
        queue(&one, "/dead-b", "billing@host-1:7").await;
        queue(&other, "/dead-a", "report@host-2:8").await;
        [one, other]
    }

    async fn look(&self) -> Content {
        let overview = Overview::below(&self.viewer, "/").await;
        Content::Queues(Arc::new(overview.expect("a look")))
    }

    /// The first contenders of a queue.
    async fn look_at(&self, path: &str, most: usize) -> Content {
        let path = NodePath::new(path).expect("a path");
        let server = self.viewer.server(&path).await.expect("it is open");
        let queue = QueueStatus::read(&server, &path, most).await;
        Content::Queue(Arc::new(queue.expect("a look")))
    }
}

async fn queue(client: &ServerSession, path: &str, owner: &str) {
    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    let (path, mode) = (format!("{path}/{GO}"), CreateMode::EphemeralSequential);
    let created = client.create(&path, owner.as_bytes(), mode, &everyone);
    created.await.expect("a contender queues");
}

fn status() -> Status {
    Status {
        age: Some(Duration::from_secs(1)),
        trouble: None,
        now: now(),
    }
}

/// The lines of the screen.
fn drawn(app: &mut App, (width, height): (u16, u16), status: &Status) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("it has no device");
    let drawn = terminal.draw(|frame| app.draw(frame, status));
    let buffer = drawn.expect("it has no device").buffer.clone();
    let lines = buffer.content.chunks(usize::from(width.max(1)));
    let text = |line: &[ratatui::buffer::Cell]| line.iter().map(|cell| cell.symbol()).collect();
    lines.map(text).collect()
}

fn screen(app: &mut App, size: (u16, u16)) -> String {
    drawn(app, size, &status()).join("\n")
}

/// The path in each row.
fn paths(app: &mut App) -> Vec<String> {
    let lines = drawn(app, WIDE, &status());
    let rows = &lines[2..lines.len() - 1];
    let rows = rows.iter().filter(|line| line.starts_with('/'));
    let path = |line: &String| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    rows.map(path).collect()
}

fn press(app: &mut App, code: KeyCode) -> Action {
    app.on_key(KeyEvent::new(code, KeyModifiers::NONE))
}

/// Types these letters. `\n` is Enter, and `\x1b` is Esc.
fn types(app: &mut App, text: &str) {
    for letter in text.chars() {
        let code = match letter {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        assert_eq!(press(app, code), Action::Nothing, "{text:?}");
    }
}

#[track_caller]
fn shows<const N: usize>(app: &mut App, parts: [&str; N]) {
    let shown = screen(app, WIDE);
    for part in parts {
        assert!(shown.contains(part), "{part:?}:\n{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn worst_queue_is_first_enter_opens_it_and_esc_goes_back() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage.queues(&client, &[("/a", 1), ("/left", 1)]).await;
    stage.create(&format!("/left/{GO}0000000007"), "left@behind:1");
    let _sessions = stage.deadlock().await;
    let mut app = App::new("/", stage.look().await, "zkr");
    shows(
        &mut app,
        ["/: 4 queues, 3 with waiters, 1 possible deadlock"],
    );
    assert_eq!(paths(&mut app), ["/dead-b", "/dead-a", "/left", "/a"]);
    shows(
        &mut app,
        ["possible deadlock", "1 persistent", "sort: trouble"],
    );
    types(&mut app, "jj\n");
    let parts = ["/left: exclusive lock, 1 holds, 1 waits", "waits for 1"];
    shows(&mut app, parts);
    shows(
        &mut app,
        ["left@behind:1", "is persistent", "zkr evict /left"],
    );
    types(&mut app, "\x1b");
    assert_eq!(paths(&mut app).len(), 4);
    types(&mut app, "s");
    assert_eq!(paths(&mut app), ["/a", "/dead-a", "/dead-b", "/left"]);
    shows(&mut app, ["sort: path"]);
    assert_eq!(
        press(&mut app, KeyCode::Esc),
        Action::Nothing,
        "nothing is behind"
    );
    assert_eq!(press(&mut app, KeyCode::Char('q')), Action::Quit);
}

#[tokio::test(start_paused = true)]
async fn deadlocks_are_shown_with_their_way_out_and_addresses() {
    let stage = Stage::new().await;
    let _sessions = stage.deadlock().await;
    let content = stage.look().await;
    let mut app = App::new("/", content.clone(), "zkr");
    assert!(app.sessions().is_empty(), "no address is on the screen");
    types(&mut app, "d");
    let sessions = app.sessions();
    assert_eq!(sessions.len(), 2);
    shows(
        &mut app,
        [
            "1 possible deadlock in 2 queues",
            "zkr evict /dead-b --if-holder",
        ],
    );
    let addresses = sessions
        .into_iter()
        .map(|it| (it, "10.0.0.7:99".to_owned()));
    app.update(content, addresses.collect());
    shows(&mut app, ["10.0.0.7:99"]);
    types(&mut app, "\x1b\n");
    shows(&mut app, ["/dead-b: exclusive lock", "10.0.0.7:99"]);
}

#[tokio::test(start_paused = true)]
async fn filter_is_edited_kept_and_given_up() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage
        .queues(&client, &[("/a", 2), ("/b", 1), ("/c", 1)])
        .await;
    let mut app = App::new("/", stage.look().await, "zkr");
    types(&mut app, "/OWNER-1");
    assert_eq!(paths(&mut app), ["/a"], "a waiter has this owner");
    shows(&mut app, ["1 match the filter", "/OWNER-1"]);
    for code in [
        KeyCode::Home,
        KeyCode::Delete,
        KeyCode::End,
        KeyCode::Backspace,
    ] {
        press(&mut app, code);
    }
    types(&mut app, "0");
    shows(&mut app, ["/WNER-0"]);
    assert_eq!(paths(&mut app).len(), 3);
    types(&mut app, "\x1b");
    assert_eq!(paths(&mut app).len(), 3, "the filter before was none");
    types(&mut app, "//b\n");
    assert_eq!(paths(&mut app), ["/b"]);
    let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
    types(&mut app, "/ exclusive q");
    assert_eq!(
        paths(&mut app),
        [""; 0],
        "each word must match, and q is a letter here"
    );
    app.on_key(control('w'));
    assert_eq!(paths(&mut app), ["/b"]);
    types(&mut app, "\n\x1b");
    assert_eq!(paths(&mut app).len(), 3);
    types(&mut app, "/x");
    app.on_key(control('u'));
    assert_eq!(paths(&mut app).len(), 3);
    assert_eq!(
        app.on_key(control('c')),
        Action::Quit,
        "also while the user edits"
    );
}

#[tokio::test(start_paused = true)]
async fn selected_queue_stays_selected_while_others_come_and_go() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage.queues(&client, &[("/b", 1), ("/c", 1)]).await;
    let mut app = App::new("/", stage.look().await, "zkr");
    types(&mut app, "j");
    stage.queues(&client, &[("/a", 1)]).await;
    app.update(stage.look().await, Addresses::default());
    types(&mut app, "\n");
    shows(&mut app, ["/c: exclusive lock"]);
    stage.simulation.administrator().expire(client.id);
    app.update(stage.look().await, Addresses::default());
    shows(&mut app, ["/c: no contender is here any more"]);
    types(&mut app, "\x1b");
    shows(&mut app, ["/: 0 queues"]);
    types(&mut app, "jjk\n");
}

#[tokio::test(start_paused = true)]
async fn screen_of_any_size_is_drawn_and_a_narrow_one_keeps_what_counts() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage
        .queues(
            &client,
            &[("/locks", 0), ("/locks/a-long-name-of-a-report", 3)],
        )
        .await;
    let _sessions = stage.deadlock().await;
    let content = stage.look().await;
    for keys in ["", "\n", "d", "?", "/report", "jjj"] {
        for size in [1, 2, 3, 5, 8, 13, 20, 29]
            .map(|width| [1, 2, 3, 4, 6, 11].map(|height| (width, height)))
            .concat()
        {
            let mut app = App::new("/", content.clone(), "zkr");
            types(&mut app, keys);
            assert_eq!(drawn(&mut app, size, &status()).len(), usize::from(size.1));
        }
    }
    let mut app = App::new("/", content, "zkr");
    let narrow = screen(&mut app, (20, 10));
    for part in ["/dead-a", "…f-a-report", "WAITING", "        2"] {
        assert!(narrow.contains(part), "{part}:\n{narrow}");
    }
    types(&mut app, "\n");
    let narrow = screen(&mut app, (20, 10));
    assert!(narrow.contains("billing@h"), "{narrow}");
}

#[tokio::test(start_paused = true)]
async fn hostile_owner_stays_in_its_cell() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage.create("/lock", "");
    let hostile = [
        "\x1b[2J\x1b]0;title\x07",
        "a\u{202e}gnp.exe",
        "汉字汉字",
        "zero\u{200b}\u{feff}\u{200d}",
        "Z\u{300}\u{301}\u{302}a",
        "\u{1f469}\u{200d}\u{1f467}\u{1f3fd}\u{fe0f}",
        "\u{9b}2J\r\n\tq",
        "usual@host:1",
    ];
    for owner in hostile {
        queue(&client, "/lock", owner).await;
    }
    for keys in ["", "\n"] {
        let mut app = App::new("/", stage.look().await, "zkr");
        types(&mut app, keys);
        let lines = drawn(&mut app, WIDE, &status());
        let text = lines.concat();
        assert!(text.contains("?[2J?]0;title?"), "{text}");
        let is_kept = |letter: char| !crate::plain_text::visible(&letter.to_string()).contains('?');
        let obeyed: HashSet<char> = text
            .chars()
            .filter(|it| *it != '?' && !is_kept(*it))
            .collect();
        assert!(obeyed.is_empty(), "{obeyed:?}");
    }
    let mut app = App::new("/lock", stage.look_at("/lock", 99).await, "zkr");
    let mut terminal = Terminal::new(TestBackend::new(110, 12)).expect("it has no device");
    let drawn = terminal
        .draw(|frame| app.draw(frame, &status()))
        .expect("it has no device");
    let ages: Vec<u16> = (2..2 + 8)
        .map(|line| {
            let is_session = |column: &u16| drawn.buffer[(*column, line)].symbol() == "x";
            (60..110)
                .find(is_session)
                .expect("the x of 0x of the session")
        })
        .collect();
    assert!(ages.iter().all(|column| *column == ages[0]), "{ages:?}");
}

#[tokio::test(start_paused = true)]
async fn last_of_many_is_reached_and_only_the_rows_on_the_screen_are_read() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage.queues(&client, &[("/lock", 100)]).await;
    let mut app = App::new("/lock", stage.look_at("/lock", 20).await, "zkr");
    shows(
        &mut app,
        ["1 holds, 99 wait (1-12)", "owner-0@", "owner-11@"],
    );
    assert_eq!(app.rows_wanted(), 12);
    press(&mut app, KeyCode::End);
    assert_eq!(app.rows_wanted(), 100);
    app.update(stage.look_at("/lock", 100).await, Addresses::default());
    shows(&mut app, ["(89-100)", "owner-99@"]);
    press(&mut app, KeyCode::PageUp);
    shows(&mut app, ["(77-88)", "owner-76@"]);

    for place in 0..100 {
        stage.create(&format!("/q{place:02}"), "");
        stage.create(&format!("/q{place:02}/{GO}0000000000"), "left@behind:1");
    }
    let mut app = App::new("/", stage.look().await, "zkr");
    types(&mut app, "s");
    assert_eq!(paths(&mut app).len(), 13);
    press(&mut app, KeyCode::End);
    assert_eq!(paths(&mut app).last().map(String::as_str), Some("/q99"));
    types(&mut app, "/q0");
    assert_eq!(paths(&mut app).len(), 10, "the page is full");
    types(&mut app, "\n\n");
    shows(&mut app, ["/q00: exclusive lock"]);
    types(&mut app, "\x1b\x1b");
    press(&mut app, KeyCode::Home);
    assert_eq!(paths(&mut app)[0], "/lock");
}

#[tokio::test(start_paused = true)]
async fn ages_grow_without_a_look_and_old_content_says_so() {
    let stage = Stage::new().await;
    let client = stage.client("client").await;
    stage.queues(&client, &[("/lock", 1)]).await;
    let content = stage.look_at("/lock", 9).await;
    let Content::Queue(queue) = &content else {
        panic!("{content:?}");
    };
    let contender = queue.contenders().next().expect("it holds");
    let mut app = App::new("/lock", content, "zkr");
    for (seconds, age) in [(70, "1m10s"), (3_600, "1h00m")] {
        let old = Status {
            age: Some(Duration::from_secs(seconds)),
            trouble: Some("no server answers".to_owned()),
            now: milliseconds(contender.created + Duration::from_secs(seconds)),
        };
        let lines = drawn(&mut app, WIDE, &old);
        assert!(lines[2].contains(age), "{lines:?}");
        let last = format!("looked {age} ago: no server answers");
        assert!(lines[15].starts_with(&last), "{lines:?}");
    }
}
