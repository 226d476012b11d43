//! The table of all queues: sorted, filtered, with one row selected.

use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use zookeeper_recipes_overview::{Overview, QueueStatus};

use super::circles::possible_deadlocks;
use super::grid::{Column, Grid, Shape, draw_line};
use super::prompt::Prompt;
use super::style::{bold, colored};
use super::view::{Action, Data, step};
use crate::look::notes;
use crate::plain_text::counted;
use crate::queue::{COLUMNS as NAMES, Sort, Summary, Trouble};

/// The columns of [`Summary::cells`].
const COLUMNS: [Column; NAMES.len()] = [
    column(0, Shape::Path, 0),
    column(1, Shape::Text, 6),
    column(2, Shape::Text, 4),
    column(3, Shape::Number, 5),
    column(4, Shape::Number, 1),
    column(5, Shape::Number, 2),
    column(6, Shape::Text, 3),
];

const fn column(place: usize, shape: Shape, rank: usize) -> Column {
    let name = NAMES[place];
    Column { name, shape, rank }
}

/// The orders, in which the key `s` steps from one to the next.
const SORTS: [Sort; 5] = [
    Sort::Trouble,
    Sort::Path,
    Sort::Held,
    Sort::Waiting,
    Sort::Oldest,
];

#[derive(Debug)]
pub(super) struct QueuesView {
    /// All queues, in the order that the user has chosen.
    queues: Vec<Summary>,
    /// The text in which the filter looks, by the place of the queue. Empty without a filter.
    texts: Vec<String>,
    /// The places in `queues` of those that the filter shows.
    shown: Vec<usize>,
    /// True if `shown` is of another filter.
    is_stale: bool,
    sort: Sort,
    filter: Prompt,
    /// The filter as it was before the user began to edit it. `None` if the user does not.
    before: Option<Prompt>,
    /// The path of the selected queue. `None` for the first one, whichever that is.
    selected: Option<String>,
    /// The place in `shown` of the selected queue, and of the first one on the screen.
    cursor: usize,
    top: usize,
    page: usize,
    grid: Grid,
    headline: String,
    notes: Vec<String>,
}

impl QueuesView {
    pub(super) fn new(data: &Data) -> QueuesView {
        let mut view = QueuesView {
            queues: Vec::new(),
            texts: Vec::new(),
            shown: Vec::new(),
            is_stale: true,
            sort: Sort::Trouble,
            filter: Prompt::default(),
            before: None,
            selected: None,
            cursor: 0,
            top: 0,
            page: 0,
            grid: Grid::default(),
            headline: String::new(),
            notes: Vec::new(),
        };
        view.update(data);
        view
    }

    /// Takes over what the last look has shown.
    pub(super) fn update(&mut self, data: &Data) {
        if let Some(overview) = data.overview() {
            self.queues = Summary::of_all(overview);
            self.sort.order(&mut self.queues);
            self.headline = headline(overview, &self.queues);
            self.notes = notes(overview);
            self.texts.clear();
            self.is_stale = true;
        }
    }

    /// Applies the filter, and finds the selected queue again.
    fn arrange(&mut self, data: &Data) {
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        if !words.is_empty() && self.texts.is_empty() {
            let queues = data.overview().map_or(&[][..], Overview::queues);
            let text = |it: &Summary| text(it, &queues[it.place], data);
            self.texts = self.queues.iter().map(text).collect();
        }
        let is_shown = |place: &usize| {
            let text = self.texts.get(*place);
            words
                .iter()
                .all(|word| text.is_some_and(|text| text.contains(word)))
        };
        self.shown = (0..self.queues.len()).filter(is_shown).collect();
        let path = self.selected.as_ref();
        let is_selected = |place: &usize| Some(&self.queues[*place].path) == path;
        let found = path.and_then(|_| self.shown.iter().position(is_selected));
        self.cursor = match (path, found) {
            (None, _) => 0,
            (_, Some(place)) => place,
            // It has gone: the row at its place is selected.
            (_, None) => self.cursor,
        };
        self.cursor = self.cursor.min(self.shown.len().saturating_sub(1));
        self.is_stale = false;
    }

    /// What the key asks for. `None` if it has no meaning here.
    pub(super) fn on_key(&mut self, key: KeyEvent, data: &Data) -> Option<Action> {
        if let Some(before) = &self.before {
            match key.code {
                KeyCode::Enter => self.before = None,
                KeyCode::Esc => {
                    self.filter = before.clone();
                    self.before = None;
                    self.is_stale = true;
                }
                KeyCode::Up | KeyCode::Down | KeyCode::PageUp | KeyCode::PageDown => {
                    self.move_by(step(key, self.page)?, data);
                }
                _ if self.filter.on_key(key) => {
                    (self.selected, self.is_stale) = (None, true);
                }
                _ => {}
            }
            return Some(Action::Nothing);
        }
        match key.code {
            KeyCode::Char('/') => self.before = Some(self.filter.clone()),
            KeyCode::Esc if self.filter != Prompt::default() => {
                self.filter = Prompt::default();
                self.is_stale = true;
            }
            KeyCode::Char('s') => {
                let place = SORTS.iter().position(|sort| *sort == self.sort);
                self.sort = SORTS[(place.unwrap_or(0) + 1) % SORTS.len()];
                self.sort.order(&mut self.queues);
                self.texts.clear();
                self.is_stale = true;
            }
            KeyCode::Enter | KeyCode::Right => {
                self.arrange_if_stale(data);
                let path = self.path_at(self.cursor)?;
                self.selected = Some(path.clone());
                return Some(Action::Open(path));
            }
            _ => self.move_by(step(key, self.page)?, data),
        }
        Some(Action::Nothing)
    }

    fn arrange_if_stale(&mut self, data: &Data) {
        if self.is_stale {
            self.arrange(data);
        }
    }

    fn move_by(&mut self, step: isize, data: &Data) {
        self.arrange_if_stale(data);
        let last = self.shown.len().saturating_sub(1);
        self.cursor = self.cursor.saturating_add_signed(step).min(last);
        self.selected = match self.cursor {
            0 => None,
            cursor => self.path_at(cursor),
        };
    }

    fn path_at(&self, cursor: usize) -> Option<String> {
        let place = self.shown.get(cursor)?;
        Some(self.queues[*place].path.clone())
    }

    /// The line that the user edits, and the column of the cursor, if the user edits the filter.
    pub(super) fn prompt(&self, width: usize) -> Option<(String, usize)> {
        self.before.as_ref()?;
        Some(self.filter.shown(width))
    }

    /// What the keys do, in a few words.
    pub(super) fn keys(&self) -> String {
        let sort = clap::ValueEnum::to_possible_value(&self.sort);
        let sort = sort.map_or(String::new(), |sort| sort.get_name().to_owned());
        let filter = match self.filter.text() {
            text if text.is_empty() => "/ filter".to_owned(),
            text => format!("Esc ends filter {text}"),
        };
        format!("? help  q quit  {filter}  s sort: {sort}  d deadlocks  Enter opens")
    }

    /// Draws the view, at this time in milliseconds since 1970.
    pub(super) fn draw(&mut self, buffer: &mut Buffer, area: Rect, data: &Data, now: i64) {
        self.arrange_if_stale(data);
        let notes = u16::try_from(self.notes.len()).unwrap_or(u16::MAX);
        let [headline, rows, below] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(notes.min(area.height / 4)),
        ])
        .areas(area);
        let mut text = self.headline.clone();
        if self.shown.len() < self.queues.len() {
            text += &format!("; {} match the filter", self.shown.len());
        }
        draw_line(buffer, headline, &text, bold());
        // The header takes a line.
        self.page = usize::from(rows.height.saturating_sub(1));
        // The page is full if there are enough rows, and the selected row is on it.
        let last_top = self.shown.len().saturating_sub(self.page);
        let least = (self.cursor + 1).saturating_sub(self.page);
        self.top = self.top.min(self.cursor).min(last_top).max(least);
        let shown = self.shown.iter().enumerate().skip(self.top).take(self.page);
        let shown: Vec<(Vec<String>, Style)> = shown
            .map(|(row, place)| {
                let queue = &self.queues[*place];
                let style = match row == self.cursor {
                    true => style(queue).add_modifier(Modifier::REVERSED),
                    false => style(queue),
                };
                (queue.cells(now).to_vec(), style)
            })
            .collect();
        self.grid.draw(buffer, rows, &COLUMNS, &shown);
        for (note, line) in self.notes.iter().zip(below.rows()) {
            draw_line(buffer, line, note, colored(Color::Yellow));
        }
    }
}

/// Where the cursor of a prompt is on the bottom line.
pub(super) fn cursor_at(line: Rect, column: usize) -> Position {
    let column = u16::try_from(column).unwrap_or(u16::MAX);
    let last = line.right().saturating_sub(1);
    Position::new(line.x.saturating_add(column).min(last), line.y)
}

fn headline(overview: &Overview, queues: &[Summary]) -> String {
    let path = overview.path();
    if !overview.exists() {
        return format!("{path}: does not exist");
    }
    let waited_for = queues.iter().filter(|queue| queue.is_waited_for()).count();
    let circles = overview.circles().len();
    let number = counted(queues.len(), "queue", "queues");
    let mut text = format!("{path}: {number}, {waited_for} with waiters");
    if circles > 0 {
        text += &format!(", {}", possible_deadlocks(circles));
    }
    text
}

/// Where a filter looks: the words of the row, and all owners, sessions and addresses.
fn text(summary: &Summary, queue: &QueueStatus, data: &Data) -> String {
    let mut text = summary.words();
    for contender in queue.contenders() {
        let address = data.addresses.of(contender.session_id).unwrap_or_default();
        text += &format!(" {} {} {address}", contender.owner, contender.session_id);
    }
    text.to_lowercase()
}

fn style(queue: &Summary) -> Style {
    match queue.trouble() {
        Trouble::Circle => colored(Color::Red),
        Trouble::Wrong | Trouble::Unclear => colored(Color::Yellow),
        Trouble::None => Style::new(),
    }
}
