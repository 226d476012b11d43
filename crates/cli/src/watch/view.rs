//! What all views share: the data that they show, the keys, and what a key may ask for.

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;
use zookeeper_recipes_assignment::AssignmentStatus;
use zookeeper_recipes_overview::{Overview, QueueStatus};

use crate::addresses::Addresses;
use crate::look::overview_json;
use crate::queue::{Row, Summary, json_of};
use crate::verbs::assignment;

/// What a look has shown.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// All queues at a path and below it.
    Queues(Arc<Overview>),
    /// One queue, of which the first contenders may be all that was read.
    Queue(Arc<QueueStatus>),
    Assignment(Arc<AssignmentStatus>),
}

impl Content {
    /// True if both are of the same look.
    pub(super) fn is_same(&self, other: &Content) -> bool {
        match (self, other) {
            (Content::Queues(one), Content::Queues(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    /// The content for programs, at this time in milliseconds since 1970.
    pub(crate) fn json(&self, now: i64) -> Value {
        match self {
            Content::Queues(overview) => {
                let queues = Summary::of_all(overview);
                overview_json(overview, queues.iter().map(|it| it.json(now)).collect())
            }
            Content::Queue(queue) => json_of(queue, &Row::of(queue, &Addresses::default())),
            Content::Assignment(status) => assignment::json_of(status),
        }
    }
}

/// The data that the views show.
#[derive(Debug)]
pub(super) struct Data {
    pub(super) path: String,
    pub(super) content: Content,
    /// The addresses of the sessions' clients, as far as they are known.
    pub(super) addresses: Addresses,
    /// How a shell runs `zkr` for the same servers.
    pub(super) zkr: String,
}

/// What a key asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Nothing,
    /// Goes back to the view before.
    Back,
    /// Opens the queue at this path.
    Open(String),
    ShowCircles,
    ShowHelp,
    Suspend,
    Quit,
}

impl Data {
    /// The queue at this path.
    pub(super) fn queue(&self, path: &str) -> Option<&QueueStatus> {
        match &self.content {
            Content::Queues(overview) => overview.queue(path),
            Content::Queue(queue) => Some(queue.as_ref()).filter(|queue| queue.path() == path),
            Content::Assignment(_) => None,
        }
    }

    pub(super) fn overview(&self) -> Option<&Overview> {
        match &self.content {
            Content::Queues(overview) => Some(overview.as_ref()),
            _ => None,
        }
    }
}

/// The rows that a key moves by, on a page of so many. `None` if it does not move.
pub(super) fn step(key: KeyEvent, page: usize) -> Option<isize> {
    let page = isize::try_from(page.max(1)).unwrap_or(isize::MAX);
    Some(match key.code {
        KeyCode::Up | KeyCode::Char('k') => -1,
        KeyCode::Down | KeyCode::Char('j') => 1,
        KeyCode::PageUp => -page,
        KeyCode::PageDown | KeyCode::Char(' ') => page,
        KeyCode::Home | KeyCode::Char('g') => isize::MIN,
        KeyCode::End | KeyCode::Char('G') => isize::MAX,
        _ => return None,
    })
}

/// The part of many lines that is on the screen.
#[derive(Debug, Default)]
pub(super) struct Scroll {
    /// The first line that is shown.
    pub(super) top: usize,
    /// How many lines fit, and how many there are.
    pub(super) page: usize,
    pub(super) all: usize,
}

impl Scroll {
    /// Notes how many lines fit, and shows no line behind the last one.
    pub(super) fn fit(&mut self, page: usize) {
        self.page = page;
        self.top = self.top.min(self.last_top());
    }

    /// True if the key scrolls.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> bool {
        let Some(step) = step(key, self.page) else {
            return false;
        };
        let top = self.top.saturating_add_signed(step);
        self.top = top.min(self.last_top());
        true
    }

    fn last_top(&self) -> usize {
        self.all.saturating_sub(self.page)
    }
}

/// True for Ctrl and this letter.
pub(super) fn is_control(key: KeyEvent, letter: char) -> bool {
    key.code == KeyCode::Char(letter) && key.modifiers.contains(KeyModifiers::CONTROL)
}
