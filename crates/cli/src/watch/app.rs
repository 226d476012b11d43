//! The views of `zkr watch`, one above the other.

use std::collections::HashSet;
use std::time::Duration;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;

use super::circles;
use super::grid::draw_line;
use super::queue_view::QueueView;
use super::queues_view::{QueuesView, cursor_at};
use super::style::{bad, dim};
use super::text_view::TextView;
use super::view::{Action, Content, Data, is_control};
use crate::addresses::Addresses;
use crate::queue::age_of;
use crate::verbs::assignment;

const HELP: [&str; 16] = [
    "zkr watch: keys",
    "",
    "Up Down j k          a row up or down",
    "PageUp PageDown      a page up or down",
    "Home End g G         the first or the last row",
    "Enter                opens the selected queue",
    "Esc                  goes back; ends a filter",
    "/                    shows only rows with these words: in the path, the kind, the marks,",
    "                     an owner, a session or an address. Enter keeps the filter",
    "s                    sorts by trouble, path, held, waiting or oldest wait",
    "d                    possible deadlocks, each with the command that breaks it",
    "?                    this page",
    "Ctrl-Z               stops zkr until `fg`",
    "q Ctrl-C             ends zkr",
    "",
    "Trouble is a possible deadlock, then a mark, then the oldest wait.",
];

/// Whether what is shown is up to date.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    /// How long ago the last look ended, if one look follows the other.
    pub(crate) age: Option<Duration>,
    /// Why the content may be old.
    pub(crate) trouble: Option<String>,
    /// The time in milliseconds since 1970.
    pub(crate) now: i64,
}

/// What is on the screen.
#[derive(Debug)]
pub(crate) struct App {
    data: Data,
    /// The last one is shown.
    views: Vec<View>,
}

#[derive(Debug)]
enum View {
    Queues(QueuesView),
    Queue(QueueView),
    Assignment(TextView),
    Circles(TextView),
    Help(TextView),
}

impl App {
    /// `zkr` is how a shell runs it for the same servers.
    pub(crate) fn new(path: &str, content: Content, zkr: &str) -> App {
        let data = Data {
            path: path.to_owned(),
            content,
            addresses: Addresses::default(),
            zkr: zkr.to_owned(),
        };
        let view = match &data.content {
            Content::Queues(_) => View::Queues(QueuesView::new(&data)),
            Content::Queue(_) => View::Queue(QueueView::new(path.to_owned(), &data)),
            Content::Assignment(_) => View::Assignment(TextView::default()),
        };
        App {
            data,
            views: vec![view],
        }
    }

    /// Shows what was read, and these addresses of the sessions' clients.
    pub(crate) fn update(&mut self, content: Content, addresses: Addresses) {
        if self.data.content.is_same(&content) && self.data.addresses == addresses {
            return;
        }
        self.data.content = content;
        self.data.addresses = addresses;
        for view in &mut self.views {
            match view {
                View::Queues(view) => view.update(&self.data),
                View::Queue(view) => view.update(&self.data),
                View::Assignment(_) | View::Circles(_) | View::Help(_) => {}
            }
        }
    }

    /// How many of the first contenders of a queue are on the screen or before it.
    pub(crate) fn rows_wanted(&self) -> usize {
        let wanted = self.views.iter().map(|view| match view {
            View::Queue(view) => view.rows_wanted(),
            _ => 0,
        });
        wanted.max().unwrap_or(0)
    }

    /// The sessions whose addresses are shown.
    pub(crate) fn sessions(&self) -> HashSet<i64> {
        match self.views.last() {
            Some(View::Queue(view)) => view.sessions(),
            Some(View::Circles(_)) => {
                let circles = self.data.overview().map_or(&[][..], |it| it.circles());
                let waits = circles.iter().flat_map(|circle| &circle.waits);
                waits.map(|wait| wait.waiter.session_id.0).collect()
            }
            _ => HashSet::new(),
        }
    }

    /// Does what a key means, but for what the caller has to do.
    pub(crate) fn on_key(&mut self, key: KeyEvent) -> Action {
        if key.kind == KeyEventKind::Release {
            return Action::Nothing;
        }
        if is_control(key, 'c') {
            return Action::Quit;
        }
        if is_control(key, 'z') {
            return Action::Suspend;
        }
        let action = self.of_view(key).unwrap_or(match key.code {
            KeyCode::Char('q' | 'Q') => Action::Quit,
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => Action::Back,
            KeyCode::Char('?' | 'h') => Action::ShowHelp,
            KeyCode::Char('d') => Action::ShowCircles,
            _ => Action::Nothing,
        });
        match action {
            Action::Back if self.views.len() > 1 => drop(self.views.pop()),
            Action::Open(path) => {
                let view = QueueView::new(path, &self.data);
                self.views.push(View::Queue(view));
            }
            Action::ShowCircles if !matches!(self.views.last(), Some(View::Circles(_))) => {
                self.views.push(View::Circles(TextView::default()));
            }
            Action::ShowHelp if !matches!(self.views.last(), Some(View::Help(_))) => {
                self.views.push(View::Help(TextView::default()));
            }
            Action::Quit => return Action::Quit,
            _ => {}
        }
        Action::Nothing
    }

    /// What the key means in the view that is shown.
    fn of_view(&mut self, key: KeyEvent) -> Option<Action> {
        let scrolled = match self.views.last_mut()? {
            View::Queues(view) => return view.on_key(key, &self.data),
            View::Queue(view) => view.on_key(key),
            View::Assignment(view) | View::Circles(view) | View::Help(view) => view.on_key(key),
        };
        scrolled.then_some(Action::Nothing)
    }

    /// Draws the view, and a line at the bottom.
    pub(crate) fn draw(&mut self, frame: &mut Frame<'_>, status: &Status) {
        let [body, bottom] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1)]).areas(frame.area());
        self.draw_body(frame.buffer_mut(), body, status.now);
        let prompt = match self.views.last() {
            Some(View::Queues(view)) => view.prompt(usize::from(bottom.width)),
            _ => None,
        };
        match prompt {
            Some((line, column)) => {
                draw_line(frame.buffer_mut(), bottom, &line, Style::new());
                frame.set_cursor_position(cursor_at(bottom, column));
            }
            None => self.draw_status(frame.buffer_mut(), bottom, status),
        }
    }

    fn draw_body(&mut self, buffer: &mut Buffer, area: Rect, now: i64) {
        let data = &self.data;
        match self.views.last_mut() {
            Some(View::Queues(view)) => view.draw(buffer, area, data, now),
            Some(View::Queue(view)) => view.draw(buffer, area, now),
            Some(View::Assignment(view)) => {
                if let Content::Assignment(status) = &data.content {
                    view.draw(buffer, area, &assignment::overview(&data.path, status));
                }
            }
            Some(View::Circles(view)) => view.draw(buffer, area, &circles::lines(data, now)),
            Some(View::Help(view)) => view.draw(buffer, area, &HELP.map(str::to_owned)),
            None => {}
        }
    }

    fn draw_status(&self, buffer: &mut Buffer, line: Rect, status: &Status) {
        let age = status.age.map(|age| format!("looked {} ago", age_of(age)));
        let state: Vec<&str> = [&age, &status.trouble]
            .into_iter()
            .flatten()
            .map(|it| &**it)
            .collect();
        let style = if status.trouble.is_some() {
            bad()
        } else {
            dim()
        };
        let keys = match self.views.last() {
            Some(View::Queues(view)) => view.keys(),
            _ if self.views.len() > 1 => "Esc back  ? help  q quit".to_owned(),
            _ => "? help  q quit".to_owned(),
        };
        let state = state.join(": ");
        let gap = if state.is_empty() { "" } else { "  " };
        draw_line(buffer, line, &format!("{state}{gap}{keys}"), style);
    }
}
