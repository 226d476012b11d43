//! The notice of an election: the data of its directory.
//!
//! It names the candidate that leads next, and says what the leader proclaims. No candidate's own
//! znode is ever written: a waiting `LeaderLatch` of Curator reacts to the first event of its
//! predecessor alone, and would not notice the deletion after a write.

use zookeeper_recipes_core::FencingToken;

/// The first line. Data without it belongs to another program.
const HEAD: &str = "zookeeper-recipes election notice";
const SUCCESSOR: &str = "successor ";
const PROCLAIMED: &str = "proclaimed ";

/// What the directory of an election says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Notice {
    /// The name of the znode of the candidate that leads next.
    pub(crate) successor: Option<String>,
    /// What the leader with this token says of itself.
    pub(crate) proclaimed: Option<(FencingToken, String)>,
}

impl Notice {
    /// Reads the data of a directory. `None` if it belongs to another program.
    pub(crate) fn read(data: &[u8]) -> Option<Notice> {
        let mut notice = Notice::default();
        if data.is_empty() {
            return Some(notice);
        }
        let text = String::from_utf8_lossy(data);
        let ("", mut rest) = line(&text, HEAD)? else {
            return None;
        };
        if let Some((name, after)) = line(rest, SUCCESSOR) {
            notice.successor = Some(name.to_owned());
            rest = after;
        }
        if let Some((token, said)) = line(rest, PROCLAIMED) {
            let token: i64 = token.parse().ok()?;
            notice.proclaimed = Some((token.into(), said.to_owned()));
        }
        Some(notice)
    }

    /// The notice as data of the directory.
    pub(crate) fn data(&self) -> Vec<u8> {
        let mut text = format!("{HEAD}\n");
        if let Some(name) = &self.successor {
            text += &format!("{SUCCESSOR}{name}\n");
        }
        if let Some((token, said)) = &self.proclaimed {
            text += &format!("{PROCLAIMED}{}\n{said}", token.get());
        }
        text.into_bytes()
    }

    /// What the leader with this token says of itself.
    pub(crate) fn proclaimed_by(&self, leader: FencingToken) -> Option<&str> {
        let (token, said) = self.proclaimed.as_ref()?;
        (*token == leader).then_some(said)
    }
}

/// The rest of the first line, and the lines after it, if the first line begins so.
fn line<'a>(text: &'a str, begins: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(begins)?.split_once('\n')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_read_as_it_was_written(
            successor in proptest::option::of("[a-z0-9_-]{1,60}"),
            proclaimed in proptest::option::of((any::<i64>(), "(?s).{0,80}")),
        ) {
            let proclaimed = proclaimed.map(|(token, said)| (FencingToken::from(token), said));
            let notice = Notice { successor, proclaimed };
            prop_assert_eq!(Notice::read(&notice.data()), Some(notice));
        }

        #[test]
        fn any_data_is_read_without_a_panic(data in proptest::collection::vec(any::<u8>(), 0..80)) {
            let read = Notice::read(&data);
            prop_assert_eq!(read.is_some(), data.is_empty());
        }
    }

    #[test]
    fn no_data_is_a_notice_and_other_data_is_none() {
        assert_eq!(Notice::read(b""), Some(Notice::default()));
        let longer = format!("{HEAD}s of the day\nnone");
        for data in ["10.0.0.7", "zookeeper-recipes", "3", &longer] {
            assert_eq!(Notice::read(data.as_bytes()), None, "{data}");
        }
    }
}
