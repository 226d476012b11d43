//! What takes memory.

use clap::ValueEnum;

/// What takes memory. The documentation of each is its title in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// idle lock, never used
    Idle,
    /// idle lock, used once
    Used,
    /// hold
    Hold,
    /// waiter
    Waiter,
}

impl Kind {
    /// The name on a line of the other programs.
    pub(crate) fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The title in a report.
    pub(crate) fn title(self) -> String {
        let value = self.to_possible_value();
        let help = value.as_ref().and_then(|value| value.get_help());
        help.map_or_else(String::new, ToString::to_string)
    }
}
