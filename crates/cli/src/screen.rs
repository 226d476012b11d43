//! The whole terminal as a screen, which is restored at the end.

use std::io::{self, IsTerminal, Stdout, stdout};
use std::panic;
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::cursor::{Hide, Show};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};

use crate::failure::Failure;

/// True while the program has the whole terminal. A panic needs to know it, too.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal. It is restored when this is dropped, and before a panic is reported.
#[derive(Debug)]
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
    area: Rect,
    /// True once a panic restores the terminal.
    has_hook: bool,
}

impl Screen {
    /// The terminal of the standard output.
    pub(crate) fn new() -> Result<Screen, Failure> {
        if !stdout().is_terminal() {
            return Err(Failure::usage(
                "the standard output is not a terminal: use `zkr who`, or `zkr leader --follow`",
            ));
        }
        let area = area();
        let options = TerminalOptions {
            viewport: Viewport::Fixed(area),
        };
        let backend = CrosstermBackend::new(stdout());
        Ok(Screen {
            terminal: Terminal::with_options(backend, options).map_err(not_drawn)?,
            area,
            has_hook: false,
        })
    }

    /// The lines of the terminal.
    pub(crate) fn height(&self) -> usize {
        usize::from(self.area.height)
    }

    /// Takes the whole terminal, also after another program had it.
    pub(crate) fn enter(&mut self) -> Result<(), Failure> {
        if !self.has_hook {
            let report = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                restore();
                report(panic);
            }));
            self.has_hook = true;
        }
        self.take().map_err(not_drawn)
    }

    fn take(&mut self) -> io::Result<()> {
        // A shell that continues a stopped program may have changed the mode.
        disable_raw_mode()?;
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::Relaxed);
        execute!(stdout(), EnterAlternateScreen, Hide)?;
        self.area = area();
        self.terminal.resize(self.area)
    }

    /// Stops this process, as Ctrl-Z does, and takes the terminal when the process continues.
    #[cfg(unix)]
    pub(crate) fn suspend(&mut self) -> Result<(), Failure> {
        use nix::sys::signal::{Signal, raise};
        restore();
        // The process stops in this call. If no shell could continue it, the system ignores the signal.
        raise(Signal::SIGTSTP).map_err(|error| Failure::internal("cannot stop", error))?;
        self.enter()
    }

    #[cfg(not(unix))]
    pub(crate) fn suspend(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    pub(crate) fn draw(&mut self, content: impl FnOnce(&mut Frame<'_>)) -> Result<(), Failure> {
        self.drawn(content).map_err(not_drawn)
    }

    fn drawn(&mut self, content: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        let area = area();
        if self.area != area {
            self.area = area;
            self.terminal.resize(area)?;
        }
        self.terminal.draw(content)?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal once: a second time would move the cursor back.
fn restore() {
    if TAKEN.swap(false, Ordering::Relaxed) {
        // An error means that the terminal is gone.
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

/// The whole terminal. Some terminals do not know their size.
fn area() -> Rect {
    match size() {
        Ok((width @ 1.., height @ 1..)) => Rect::new(0, 0, width, height),
        _ => Rect::new(0, 0, 80, 24),
    }
}

fn not_drawn(error: io::Error) -> Failure {
    Failure::internal("cannot draw on the terminal", error)
}
