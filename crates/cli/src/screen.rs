//! The whole terminal as a screen, which is brought back as it was.

use std::io::{self, IsTerminal, Stdout, Write, stdout};
use std::time::Duration;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use crossterm::style::{Attribute, Print, SetAttribute};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode, size,
};
use crossterm::{execute, queue};

use crate::failure::Failure;
use crate::plain_text::shown;

/// The ages on the screen are drawn anew so often. That sends nothing.
pub(crate) const AGES: Duration = Duration::from_secs(1);

/// The lines that are no rows of the table: the headline, the header, the rest, the last line.
const OTHER_LINES: u16 = 4;

/// The terminal. It is brought back when this is dropped.
#[derive(Debug)]
pub(crate) struct Screen {
    stdout: Stdout,
    entered: bool,
}

impl Screen {
    /// The terminal of the standard output.
    pub(crate) fn new() -> Result<Screen, Failure> {
        let stdout = stdout();
        if !stdout.is_terminal() {
            return Err(Failure::usage(
                "the standard output is not a terminal: use `zkr who`, or `zkr leader --follow`",
            ));
        }
        Ok(Screen {
            stdout,
            entered: false,
        })
    }

    /// Takes the whole terminal.
    pub(crate) fn enter(&mut self) -> Result<(), Failure> {
        enable_raw_mode().map_err(not_drawn)?;
        self.entered = true;
        execute!(self.stdout, EnterAlternateScreen, Hide).map_err(not_drawn)
    }

    /// How many rows of a table fit.
    pub(crate) fn rows(&self) -> usize {
        let (_, height) = dimensions();
        usize::from(height.saturating_sub(OTHER_LINES).max(1))
    }

    /// Draws these lines, and one at the bottom.
    pub(crate) fn draw(&mut self, lines: &[String], last: &str) -> Result<(), Failure> {
        self.drawn(lines, last).map_err(not_drawn)
    }

    fn drawn(&mut self, lines: &[String], last: &str) -> io::Result<()> {
        let (width, height) = dimensions();
        let fitting = |line: &str| {
            let letters = line.chars().take(usize::from(width));
            letters.map(shown).collect::<String>()
        };
        let bottom = height.saturating_sub(1);
        for (row, line) in (0..bottom).zip(lines) {
            // The headline and the header.
            let attribute = if row < 2 {
                Attribute::Bold
            } else {
                Attribute::Reset
            };
            queue!(
                self.stdout,
                MoveTo(0, row),
                SetAttribute(attribute),
                Print(fitting(line)),
                SetAttribute(Attribute::Reset),
                Clear(ClearType::UntilNewLine)
            )?;
        }
        for row in u16::try_from(lines.len()).unwrap_or(bottom)..bottom {
            queue!(self.stdout, MoveTo(0, row), Clear(ClearType::UntilNewLine))?;
        }
        queue!(
            self.stdout,
            MoveTo(0, bottom),
            SetAttribute(Attribute::Dim),
            Print(fitting(last)),
            SetAttribute(Attribute::Reset),
            Clear(ClearType::UntilNewLine)
        )?;
        self.stdout.flush()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.entered {
            // An error means that the terminal is gone.
            let _ = execute!(self.stdout, Show, LeaveAlternateScreen);
            let _ = disable_raw_mode();
        }
    }
}

/// The columns and lines of the terminal. Some terminals do not know theirs.
fn dimensions() -> (u16, u16) {
    match size() {
        Ok((width @ 1.., height @ 1..)) => (width, height),
        _ => (80, 24),
    }
}

fn not_drawn(error: io::Error) -> Failure {
    Failure::internal("cannot draw on the terminal", error)
}

pub(crate) fn ends_it(key: KeyEvent) -> bool {
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('q' | 'Q') | KeyCode::Esc => true,
        KeyCode::Char('c') => control,
        _ => false,
    }
}

/// Resolves with the signal that ends the program, so that the terminal can be brought back.
pub(crate) async fn ended_by_signal() -> i32 {
    #[cfg(unix)]
    if let Ok(mut signals) = crate::run::Signals::new() {
        return signals.end().await;
    }
    std::future::pending().await
}
