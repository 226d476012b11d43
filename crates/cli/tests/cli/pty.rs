//! A terminal for a program under test.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use rustix::io::ioctl_fionbio;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use zookeeper_recipes_suite::PATIENCE;

/// A terminal, as the person before it sees it.
pub(crate) struct Terminal {
    master: File,
    shown: String,
    /// What a terminal that obeys all of it shows.
    screen: vt100::Parser,
}

impl Terminal {
    /// Starts a program as the leader of a session of its own, on a new terminal.
    pub(crate) fn start(command: &[&str], connect: &str) -> (Terminal, Child) {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC);
        let master = master.expect("a terminal can be made");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is unlocked");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let name = name.to_str().expect("text");
        let open = || {
            let file = OpenOptions::new().read(true).write(true).open(name);
            Stdio::from(file.expect("it can be opened"))
        };
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .args(command)
            .env("ZOOKEEPER_CONNECT", connect)
            .env("ZKR", env!("CARGO_BIN_EXE_zkr"))
            .env("TERM", "xterm")
            .env("PS1", "$ ")
            .stdin(open())
            .stdout(open())
            .stderr(open())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        // A terminal is read when somebody looks at it: see `shows`.
        ioctl_fionbio(&master, true).expect("it can be set");
        let terminal = Terminal {
            master: File::from(master),
            shown: String::new(),
            screen: vt100::Parser::default(),
        };
        (terminal, child)
    }

    pub(crate) fn types(&mut self, text: &str) {
        let typed = self.master.write_all(text.as_bytes());
        typed.expect("there is room for it");
    }

    /// All that was shown so far.
    pub(crate) fn shown(&mut self) -> &str {
        let mut bytes = [0; 4096];
        // An error means that there is nothing to read, or that no program has the terminal.
        while let Ok(read @ 1..) = self.master.read(&mut bytes) {
            self.shown
                .push_str(&String::from_utf8_lossy(&bytes[..read]));
            self.screen.process(&bytes[..read]);
        }
        &self.shown
    }

    /// Waits until this text was shown.
    pub(crate) async fn shows(&mut self, text: &str) {
        if !comes_true(async || self.shown().contains(text)).await {
            panic!("{text:?} is not shown, but {:?}", self.shown);
        }
    }

    /// What is on the screen now.
    pub(crate) fn screen(&mut self) -> String {
        self.shown();
        self.screen.screen().contents()
    }

    /// Waits until this text is on the screen.
    pub(crate) async fn draws(&mut self, text: &str) {
        if !comes_true(async || self.screen().contains(text)).await {
            panic!("{text:?} is not drawn, but:\n{}", self.screen());
        }
    }

    /// Waits until the cursor is shown, and what was on the screen before a program took all of it.
    pub(crate) async fn is_restored(&mut self) {
        let restored = comes_true(async || {
            self.shown();
            let screen = self.screen.screen();
            !screen.alternate_screen() && !screen.hide_cursor()
        });
        assert!(restored.await, "{:?}", self.shown());
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&mut self, columns: u16, lines: u16) {
        self.shown();
        self.screen.set_size(lines, columns);
        let size = Winsize {
            ws_row: lines,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&self.master, size).expect("it can be set");
    }

    /// Waits until a condition holds, and shows what the terminal shows if it never does.
    pub(crate) async fn until(&mut self, condition: impl AsyncFnMut() -> bool) {
        if !comes_true(condition).await {
            panic!("it never comes true, and {:?} is shown", self.shown());
        }
    }
}

/// Waits until a condition holds. False if it does not in time.
async fn comes_true(mut condition: impl AsyncFnMut() -> bool) -> bool {
    let met = async {
        while !condition().await {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, met).await.is_ok()
}
