//! One queue: its contenders in order.

use std::collections::HashSet;

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style};
use zookeeper_recipes_overview::QueueStatus;

use super::grid::{Column, Grid, Shape, draw_line};
use super::style::{bold, colored};
use super::text_view::wrap;
use super::view::{Data, Scroll};
use crate::queue::{Picture, Row};

const COLUMNS: [Column; 8] = [
    column("#", Shape::Number, 0),
    column("STATE", Shape::Text, 2),
    column("KIND", Shape::Text, 7),
    column("OWNER", Shape::Text, 1),
    column("AGE", Shape::Number, 3),
    column("TOKEN", Shape::Number, 6),
    column("SESSION", Shape::Whole, 5),
    column("ADDRESS", Shape::Whole, 4),
];

const fn column(name: &'static str, shape: Shape, rank: usize) -> Column {
    Column { name, shape, rank }
}

#[derive(Debug)]
pub(super) struct QueueView {
    pub(super) path: String,
    picture: Option<Picture>,
    grid: Grid,
    /// The contenders that are shown.
    scroll: Scroll,
}

impl QueueView {
    pub(super) fn new(path: String, data: &Data) -> QueueView {
        let mut view = QueueView {
            path,
            picture: None,
            grid: Grid::default(),
            scroll: Scroll::default(),
        };
        view.update(data);
        view
    }

    /// Takes over what the last look has shown.
    pub(super) fn update(&mut self, data: &Data) {
        let queue = data.queue(&self.path);
        self.scroll.all = queue.map_or(0, QueueStatus::len);
        self.picture = queue.map(|it| Picture::new(it, &data.addresses, usize::MAX, &data.zkr));
    }

    /// How many of the first contenders this view needs.
    pub(super) fn rows_wanted(&self) -> usize {
        self.scroll.top.saturating_add(self.scroll.page)
    }

    /// The sessions of the contenders that are known.
    pub(super) fn sessions(&self) -> HashSet<i64> {
        let rows = self.picture.iter().flat_map(|picture| &picture.rows);
        let sessions = rows.map(|row| row.contender.session_id.0);
        sessions.filter(|session| *session != 0).collect()
    }

    /// True if the key scrolls.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> bool {
        self.scroll.on_key(key)
    }

    /// Draws the view, at this time in milliseconds since 1970.
    pub(super) fn draw(&mut self, buffer: &mut Buffer, area: Rect, now: i64) {
        let Some(picture) = &self.picture else {
            let text = format!("{}: no contender is here any more", self.path);
            return draw_line(buffer, area, &text, bold());
        };
        let width = usize::from(area.width);
        let notes: Vec<String> = picture.notes().flat_map(|it| wrap(&it, width)).collect();
        let height = u16::try_from(notes.len()).unwrap_or(u16::MAX);
        let [headline, rows, below] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Fill(1),
            Constraint::Length(height.min(area.height / 3)),
        ])
        .areas(area);
        // The header takes a line.
        self.scroll.fit(usize::from(rows.height.saturating_sub(1)));
        draw_line(buffer, headline, &self.headline(picture), bold());
        let Scroll { top, page, .. } = self.scroll;
        let shown = picture.rows.iter().skip(top).take(page);
        let shown: Vec<(Vec<String>, Style)> = shown
            .map(|row| (row.cells(now, true), style(row)))
            .collect();
        self.grid.draw(buffer, rows, &COLUMNS, &shown);
        for (note, line) in notes.iter().zip(below.rows()) {
            draw_line(buffer, line, note, colored(Color::Yellow));
        }
    }

    /// Who holds and who waits, and which part is on the screen if that is not all.
    fn headline(&self, picture: &Picture) -> String {
        let Scroll { top, page, all } = self.scroll;
        let last = (top + page).min(all);
        match all > page {
            true => format!("{} ({}-{last})", picture.headline, top + 1),
            false => picture.headline.clone(),
        }
    }
}

fn style(row: &Row) -> Style {
    match (row.holds(), row.waits()) {
        (true, _) => colored(Color::Green),
        (_, true) => Style::new(),
        _ => colored(Color::Yellow),
    }
}
