//! How text looks. No fact is shown by its color alone.

use ratatui::style::{Color, Modifier, Style};

/// This color, unless the user wants none.
///
/// The crate that draws forgets all attributes at a color if `NO_COLOR` is set.
pub(super) fn colored(color: Color) -> Style {
    let is_off = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    match is_off {
        true => Style::new(),
        false => Style::new().fg(color),
    }
}

pub(super) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(super) fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

pub(super) fn bad() -> Style {
    colored(Color::Red).add_modifier(Modifier::BOLD)
}
