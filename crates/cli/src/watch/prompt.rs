//! A line that the user edits.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::grid::width_of;
use super::view::is_control;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    before: String,
    after: String,
}

impl Prompt {
    pub(super) fn text(&self) -> String {
        format!("{}{}", self.before, self.after)
    }

    /// True if the key has edited the line, or has moved in it.
    pub(super) fn on_key(&mut self, key: KeyEvent) -> bool {
        match key.code {
            _ if is_control(key, 'u') => self.before.clear(),
            _ if is_control(key, 'w') => {
                let kept = self.before.trim_end().rfind(char::is_whitespace);
                self.before.truncate(kept.map_or(0, |space| space + 1));
            }
            KeyCode::Char(letter) if !has_command(key) && !letter.is_control() => {
                self.before.push(letter);
            }
            KeyCode::Backspace => drop(self.before.pop()),
            KeyCode::Delete => drop(take_first(&mut self.after)),
            KeyCode::Left => {
                if let Some(letter) = self.before.pop() {
                    self.after.insert(0, letter);
                }
            }
            KeyCode::Right => self.before.extend(take_first(&mut self.after)),
            KeyCode::Home => self.after = self.before.split_off(0) + &self.after,
            KeyCode::End => self.before += &std::mem::take(&mut self.after),
            _ => return false,
        }
        true
    }

    /// The line as it fits, and the column of the cursor in it.
    pub(super) fn shown(&self, width: usize) -> (String, usize) {
        let mut before = format!("/{}", self.before);
        while width_of(&before) >= width && !before.is_empty() {
            take_first(&mut before);
        }
        let column = width_of(&before);
        (before + &self.after, column)
    }
}

fn has_command(key: KeyEvent) -> bool {
    key.modifiers
        .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

fn take_first(text: &mut String) -> Option<char> {
    (!text.is_empty()).then(|| text.remove(0))
}
