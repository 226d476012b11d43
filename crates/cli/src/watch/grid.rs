//! Rows and columns, as far as they fit.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use super::style::bold;
use crate::plain_text::visible;

/// The columns between two columns of text.
const GAP: usize = 2;

/// A column of text is not narrower, unless all of its text is.
const NARROWEST_TEXT: usize = 14;

/// The same for a column of paths, which often begin alike.
const NARROWEST_PATH: usize = 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    /// On a narrow screen, the columns of the highest rank are left out.
    pub(super) rank: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// At the right of its column, and never cut.
    Number,
    /// At the left of its column, and never cut.
    Whole,
    /// The end is cut if it does not fit.
    Text,
    /// The beginning is cut if it does not fit.
    Path,
}

/// The widths of the columns. A column does not become narrower while the user scrolls.
#[derive(Debug, Default)]
pub(super) struct Grid {
    widths: Vec<usize>,
}

impl Grid {
    /// Draws the header and these rows, as many as fit.
    pub(super) fn draw(
        &mut self,
        buffer: &mut Buffer,
        area: Rect,
        columns: &[Column],
        rows: &[(Vec<String>, Style)],
    ) {
        let header = columns.iter().map(|it| it.name.to_owned()).collect();
        let header = (header, bold());
        let lines = || std::iter::once(&header).chain(rows);
        self.widths.resize(columns.len(), 0);
        for (cells, _) in lines() {
            for (width, cell) in self.widths.iter_mut().zip(cells) {
                *width = (*width).max(width_of(cell));
            }
        }
        let widths = fit(columns, &self.widths, usize::from(area.width));
        for ((cells, style), line) in lines().zip(area.rows()) {
            let fitted = columns.iter().zip(cells).zip(&widths);
            let fitted = fitted.filter(|(_, width)| **width > 0);
            let text: Vec<String> = fitted
                .map(|((column, cell), width)| padded(cell, column.shape, *width))
                .collect();
            draw_line(buffer, line, &text.join(&" ".repeat(GAP)), *style);
        }
    }
}

/// Draws one line of text, over the whole width of its area.
pub(super) fn draw_line(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    let area = area.intersection(buffer.area);
    if !area.is_empty() {
        buffer.set_style(area, style);
        let text = cut(&visible(text), usize::from(area.width), Shape::Text);
        buffer.set_stringn(area.x, area.y, text, usize::from(area.width), style);
    }
}

/// The width of each column. Zero for a column that is not shown.
fn fit(columns: &[Column], widths: &[usize], room: usize) -> Vec<usize> {
    let least = |place: usize| match columns[place].shape {
        Shape::Number | Shape::Whole => widths[place],
        Shape::Text => widths[place].min(NARROWEST_TEXT),
        Shape::Path => widths[place].min(NARROWEST_PATH),
    };
    let needed = |shown: &[usize]| {
        let widths = shown.iter().map(|place| least(*place) + GAP);
        widths.sum::<usize>().saturating_sub(GAP)
    };
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    shown.sort_by_key(|place| columns[*place].rank);
    while shown.len() > 1 && needed(&shown) > room {
        shown.pop();
    }
    let mut rest = room.saturating_sub(needed(&shown));
    let mut fitted = vec![0; columns.len()];
    for place in shown {
        let more = rest.min(widths[place] - least(place));
        fitted[place] = (least(place) + more).min(room);
        rest -= more;
    }
    fitted
}

/// The cell, as wide as its column.
fn padded(cell: &str, shape: Shape, width: usize) -> String {
    let text = cut(&visible(cell), width, shape);
    let space = " ".repeat(width.saturating_sub(width_of(&text)));
    match shape {
        Shape::Number => space + &text,
        Shape::Whole | Shape::Text | Shape::Path => text + &space,
    }
}

/// The text, with an ellipsis for what does not fit.
fn cut(text: &str, width: usize, shape: Shape) -> String {
    if width_of(text) <= width {
        return text.to_owned();
    }
    let is_at_the_start = shape == Shape::Path;
    let mut letters: Vec<char> = match is_at_the_start {
        true => text.chars().rev().take(width).collect(),
        false => text.chars().take(width).collect(),
    };
    let mut kept = String::new();
    while !letters.is_empty() {
        kept = match is_at_the_start {
            true => letters.iter().rev().collect(),
            false => letters.iter().collect(),
        };
        if width_of(&kept) < width {
            break;
        }
        letters.pop();
        kept.clear();
    }
    match (width, is_at_the_start) {
        (0, _) => String::new(),
        (_, true) => format!("…{kept}"),
        (_, false) => format!("{kept}…"),
    }
}

/// The columns of the terminal that the text takes.
pub(super) fn width_of(text: &str) -> usize {
    Span::raw(text).width()
}
