//! What one process leaves to another: a session, and the holds in it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::hold_state::FencingToken;
use crate::invalid_input::InvalidInput;
use crate::path::NodePath;
use crate::server::ensemble::{Ensemble, Resumable, SessionId};
use crate::sync::{Mutex, lock};

/// The first line of the text. The number changes with the form.
const FORM: &str = "zookeeper-recipes detached session 3\n";
/// The last line. If the text is cut, a hold is missing. Its znode would keep all later contenders
/// waiting until the session ends.
const END: &str = "\nend\n";

/// A session and its holds, which one process leaves to another.
///
/// [`Session::detach`](crate::Session::detach) makes it, for
/// [`Session::resume`](crate::Session::resume). It is worth nothing once the session has expired.
///
/// It contains the password of the session, so it is a secret: a process that has it can take the
/// holds.
#[derive(Clone)]
pub struct DetachedSession {
    pub(crate) session: Resumable,
    /// The path of an ephemeral znode of the session, whose data has the version 0.
    ///
    /// One process sets the data at this version, and has claimed the session.
    pub(crate) ticket: String,
    pub(crate) holds: Vec<LeftHold>,
    /// The paths of znodes that may exist, and that nobody needs.
    pub(crate) leftovers: Vec<Arc<str>>,
    pub(crate) claimant: Claimant,
}

/// The name that a call writes into the ticket.
///
/// If the call fails, the next call with the same value uses the same name.
///
/// A call that has failed may have claimed the session without an answer. The next call then
/// recognises the claim. The text of the value does not have the name, so another process does not
/// recognise it.
#[derive(Clone, Default)]
pub(crate) struct Claimant(Arc<Mutex<Option<String>>>);

impl Claimant {
    /// Takes the name of the last call that has failed. If there is none, draws one.
    ///
    /// Two calls at once have different names.
    pub(crate) fn take(&self, ensemble: &dyn Ensemble) -> ClaimantName<'_> {
        let kept = lock(&self.0).take();
        ClaimantName {
            name: kept.unwrap_or_else(|| ensemble.identity().prefix()),
            claimant: self,
            is_used_up: false,
        }
    }
}

/// The name of one call.
///
/// If it is dropped before it is used up, the next call gets it.
pub(crate) struct ClaimantName<'a> {
    pub(crate) name: String,
    claimant: &'a Claimant,
    is_used_up: bool,
}

impl ClaimantName<'_> {
    /// Notes that the call has the session. No later call may recognise its claim.
    pub(crate) fn use_up(mut self) {
        self.is_used_up = true;
    }
}

impl Drop for ClaimantName<'_> {
    fn drop(&mut self) {
        if !self.is_used_up {
            *lock(&self.claimant.0) = Some(std::mem::take(&mut self.name));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LeftHold {
    pub(crate) path: String,
    /// The token of the next holder.
    pub(crate) token: FencingToken,
}

impl DetachedSession {
    /// The id of the session.
    pub fn session_id(&self) -> SessionId {
        SessionId(self.session.session_id)
    }

    /// The paths of the holders' znodes.
    pub fn holds(&self) -> impl Iterator<Item = &str> {
        self.holds.iter().map(|hold| &*hold.path)
    }

    /// This value as a text. The text contains the password of the session.
    /// [`from_secret`](Self::from_secret) reads it.
    pub fn to_secret(&self) -> String {
        let (id, zxid) = (self.session.session_id, self.session.last_zxid);
        let opened_with = self.session.opened_with.as_millis();
        let password = self.session.password.iter().map(u8::to_string);
        let password = password.collect::<Vec<_>>().join(",");
        let mut lines = vec![
            format!("session {id} {zxid} {opened_with} {password}"),
            format!("ticket {}", self.ticket),
        ];
        lines.extend(self.holds.iter().map(|LeftHold { path, token }| {
            format!("hold {} {} {path}", token.get(), token.turn())
        }));
        let leftovers = self.leftovers.iter();
        lines.extend(leftovers.map(|path| format!("leftover {path}")));
        [FORM, &lines.join("\n"), END].concat()
    }

    /// Reads the text of [`to_secret`](Self::to_secret). White space at its end does not matter.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if the text is not whole, or of another version of the library. The error
    /// does not quote the text.
    pub fn from_secret(text: &str) -> Result<DetachedSession, InvalidInput> {
        let refused = |problem| InvalidInput::new("detached session", "...", problem);
        // A file, a shell and an environment variable each change the last newline.
        let lines = text
            .trim_end()
            .strip_suffix(END.trim_end())
            .and_then(|text| text.strip_prefix(FORM));
        let lines = lines.ok_or_else(|| refused("is not whole, or of another version"))?;
        read(lines).ok_or_else(|| refused("is not well formed"))
    }
}

fn read(text: &str) -> Option<DetachedSession> {
    let mut lines = text.lines();
    let mut session = lines.next()?.strip_prefix("session ")?.splitn(4, ' ');
    let session = Resumable {
        session_id: session.next()?.parse().ok()?,
        last_zxid: session.next()?.parse().ok()?,
        opened_with: Duration::from_millis(session.next()?.parse().ok()?),
        password: {
            let bytes = session.next()?.split(',').map(str::parse);
            bytes.collect::<Result<_, _>>().ok()?
        },
    };
    let ticket = path(lines.next()?.strip_prefix("ticket ")?)?.to_owned();
    let (mut holds, mut leftovers) = (Vec::new(), Vec::new());
    for line in lines {
        let (kind, rest) = line.split_once(' ')?;
        match kind {
            "hold" => {
                let mut rest = rest.splitn(3, ' ');
                let number: i64 = rest.next()?.parse().ok()?;
                let turn = rest.next()?.parse().ok()?;
                holds.push(LeftHold {
                    token: FencingToken::from(number).with_turn(turn),
                    path: path(rest.next()?)?.to_owned(),
                });
            }
            "leftover" => leftovers.push(path(rest)?.into()),
            _ => return None,
        }
    }
    Some(DetachedSession {
        session,
        ticket,
        holds,
        leftovers,
        claimant: Claimant::default(),
    })
}

fn path(text: &str) -> Option<&str> {
    NodePath::new(text).ok().map(|_| text)
}

/// Leaves the password out.
impl fmt::Debug for DetachedSession {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DetachedSession")
            .field("session_id", &self.session_id())
            .field("holds", &self.holds)
            .finish_non_exhaustive()
    }
}
