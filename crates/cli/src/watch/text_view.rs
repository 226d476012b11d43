//! Lines of text that are wrapped and scrolled.

use crossterm::event::KeyEvent;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::grid::{draw_line, width_of};
use super::style::bold;
use super::view::Scroll;
use crate::plain_text::visible;

#[derive(Debug, Default)]
pub(super) struct TextView {
    scroll: Scroll,
}

impl TextView {
    /// Draws these lines. The first one is a headline.
    pub(super) fn draw(&mut self, buffer: &mut Buffer, area: Rect, lines: &[String]) {
        let width = usize::from(area.width);
        let wrapped = lines.iter().enumerate().flat_map(|(number, line)| {
            let style = match number {
                0 => bold(),
                _ => Style::new(),
            };
            wrap(&visible(line), width)
                .into_iter()
                .map(move |line| (line, style))
        });
        let wrapped: Vec<(String, Style)> = wrapped.collect();
        self.scroll.all = wrapped.len();
        self.scroll.fit(usize::from(area.height));
        for ((line, style), area) in wrapped[self.scroll.top..].iter().zip(area.rows()) {
            draw_line(buffer, area, line, *style);
        }
    }

    /// True if the key scrolls.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> bool {
        self.scroll.on_key(key)
    }
}

/// The line in parts that fit.
pub(super) fn wrap(line: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut used = 0;
    for letter in line.chars() {
        let wide = width_of(letter.encode_utf8(&mut [0; 4]));
        if used + wide > width && used > 0 {
            parts.push(String::new());
            used = 0;
        }
        used += wide;
        parts.last_mut().expect("one part").push(letter);
    }
    parts
}
