//! The data of an election's directory: the successor, and the proclamation of the leader.
//!
//! No process writes to the znode of a candidate. A waiting `LeaderLatch` of Curator reacts only to
//! the first event of its predecessor. After a write it would miss the deletion.

use zookeeper_recipes_core::FencingToken;

/// The first line. Data without this line belongs to another program.
const HEAD: &str = "zookeeper-recipes election";
const SUCCESSOR: &str = "successor ";
const PROCLAIMED: &str = "proclaimed ";

/// The data of an election's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DirectoryData {
    /// The znode's name of the candidate that leads next.
    pub(crate) successor: Option<String>,
    /// The fencing token of a leader, and the text that this leader proclaimed.
    pub(crate) proclaimed: Option<(FencingToken, String)>,
}

impl DirectoryData {
    /// Parses the bytes. `None` if they belong to another program.
    pub(crate) fn parse(bytes: &[u8]) -> Option<DirectoryData> {
        let mut data = DirectoryData::default();
        if bytes.is_empty() {
            return Some(data);
        }
        let text = String::from_utf8_lossy(bytes);
        let ("", mut rest) = line(&text, HEAD)? else {
            return None;
        };
        if let Some((name, after)) = line(rest, SUCCESSOR) {
            data.successor = Some(name.to_owned());
            rest = after;
        }
        if let Some((token, text)) = line(rest, PROCLAIMED) {
            let token: i64 = token.parse().ok()?;
            data.proclaimed = Some((token.into(), text.to_owned()));
        }
        Some(data)
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}\n");
        if let Some(name) = &self.successor {
            text += &format!("{SUCCESSOR}{name}\n");
        }
        if let Some((token, proclaimed)) = &self.proclaimed {
            text += &format!("{PROCLAIMED}{}\n{proclaimed}", token.get());
        }
        text.into_bytes()
    }

    /// The text that the leader with this token proclaimed.
    pub(crate) fn proclaimed_by(&self, leader: FencingToken) -> Option<&str> {
        let (token, text) = self.proclaimed.as_ref()?;
        (*token == leader).then_some(text)
    }
}

/// The rest of the first line, and the lines after it, if the first line begins with `prefix`.
fn line<'a>(text: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(prefix)?.split_once('\n')
}

#[cfg(test)]
#[path = "../tests/unit/directory_data.rs"]
mod tests;
