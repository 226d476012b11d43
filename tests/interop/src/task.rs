//! What a contender is ordered to do.

use std::time::Duration;

/// What contenders are to do.
#[derive(Clone, Debug)]
pub struct Task<'a> {
    /// The servers.
    pub connect_string: String,
    /// The directory of the queue.
    pub path: &'a str,
    /// That of the session of each contender.
    pub session_timeout: Duration,
    /// How often each contender comes in.
    pub turns: usize,
    /// How long a contender stays inside.
    pub stay: Duration,
}

impl Task<'_> {
    /// The arguments of a contender's program; `modes` says how many of each kind.
    pub fn arguments(&self, referee: &str, modes: &[(&str, usize)]) -> Vec<String> {
        let mut arguments = vec![
            self.connect_string.clone(),
            self.session_timeout.as_millis().to_string(),
            "contend".to_owned(),
            self.path.to_owned(),
            referee.to_owned(),
            self.turns.to_string(),
            self.stay.as_millis().to_string(),
        ];
        let modes = modes.iter().map(|(mode, count)| format!("{mode}:{count}"));
        arguments.extend(modes);
        arguments
    }
}
