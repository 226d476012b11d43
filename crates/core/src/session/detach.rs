//! Leaves a session and its holds to another process.

use std::sync::Arc;

use tokio::time::timeout;

use crate::error::Error;
use crate::events::session as events;
use crate::hold::open_session::OpenSession;
use crate::hold::{Hold, HoldView};
use crate::hold_state::{Ended, LossReason};
use crate::invalid_input::InvalidInput;
use crate::retry::retry;
use crate::server::checks::open_acl;
use crate::server::ensemble::{CreateMode, ServerSession};
use crate::server::error::{Refusal, ServerError, SessionEnd};
use crate::session::detached_session::{Claimant, DetachedSession, LeftHold};
use crate::session::handle::Session;
use crate::session::leftovers::Leftovers;

/// A ticket's name begins with this text. Then comes the token that the next holder of the first
/// hold gets.
const TICKET: &str = "zookeeper-recipes-detached-";

impl Session {
    /// Ends this session here, and leaves it and these holds to another process.
    ///
    /// For a planned restart, which [`docs::restarts`](crate::docs::restarts) describes. The next
    /// process [resumes](Self::resume) the session, and its recipes take the holds over. No other
    /// contender holds in between. If no process resumes the session within its timeout, the
    /// session expires, and the holds end with it.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the znodes of the session that nobody takes over | 1 for each | 1 | 0 |
    /// | the *ticket*: an ephemeral znode at the root | 1 | 1 | 0 |
    /// | the same, for each directory that refuses the ticket, on the way to the first hold | 1 more | 1 more | 0 |
    ///
    /// The holds are over in this process, with all their views, before anything is sent. The other
    /// holds of the session are lost with [`SessionEnd::Detached`], and its attempts fail. No
    /// further session is opened.
    ///
    /// A hold is released, and not left to the next process, in each of these cases. A warning
    /// names it.
    ///
    /// * It is lost.
    /// * The server has not answered one of its [guarded writes](crate::HoldView::transaction). A
    ///   late write must not land under the next hold.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] at once in each of these cases: there is no hold; a hold is of
    ///   another session; a [`NamedZnode`](crate::NamedZnode) of the session may exist, such as
    ///   that of a held lock of a single znode, and the next process could not distinguish it from
    ///   another client's; the user has connected the client of the session, which closes it.
    /// * [`Error::Lost`] or [`Error::Released`] if no hold can be left to the next process.
    ///   [`Error::Lost`], too, if the directory of the first one does not exist any more.
    /// * [`Error::SessionOver`] if the session ends before it is left.
    /// * [`Error::Refused`] if the server does not create the ticket.
    /// * [`Error::OutcomeUnknown`] if no server has answered for the session timeout.
    ///
    /// After an error the holds are released. Except after [`Error::InvalidInput`], the session is
    /// closed.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped after its first poll, the session is closed.
    pub async fn detach(
        self,
        holds: impl IntoIterator<Item = Hold>,
    ) -> Result<DetachedSession, Error> {
        let holds: Vec<Hold> = holds.into_iter().collect();
        let (open, view) = self.begin_detach(&holds)?;
        let live = &open.live;
        let server = live.server().map(ClosedOnDrop);
        let mut last_ended = Ended::Released;
        let leave = |hold| end_here(hold).map_err(|ended| last_ended = ended).ok();
        let holds: Vec<LeftHold> = holds.into_iter().filter_map(leave).collect();
        self.session_use().ask_to_end(SessionEnd::Detached);
        let ended = live.ended().await;
        let failed = |error| Error::at(view.node_path(), live.id, error);
        let over = |reason| failed(ServerError::SessionOver(reason));
        let server = server.map_err(failed)?;
        let server = &server.0;
        if ended != SessionEnd::Detached {
            return Err(over(ended));
        }
        let first = holds.first().ok_or_else(|| view.ended_error(last_ended))?;
        let mut may_be_left = others(&open, &holds);
        // The next process deletes the znodes that are left.
        let _ = timeout(live.timeout / 4, may_be_left.delete_all(server)).await;
        let created = timeout(live.timeout, create_ticket(&**server, first)).await;
        let ticket = match created {
            Ok(Err(error)) if error.is(Refusal::NoNode) => {
                return Err(Error::lost(view.node_path(), live.id, LossReason::Deleted));
            }
            Ok(ticket) => ticket.map_err(|error| Error::at_create(&first.path, live.id, error))?,
            Err(_) => {
                let silence = ServerError::outcome_unknown("no server has answered");
                return Err(failed(silence));
            }
        };
        let session = server.detach().ok_or_else(|| over(SessionEnd::Closed))?;
        let mut leftovers = others(&open, &holds).paths;
        // An attempt of this session on a paused thread may send its create after the deletions.
        leftovers.retain(|path| may_be_left.paths.contains(path) || path.ends_with('-'));
        Ok(DetachedSession {
            session,
            ticket,
            holds,
            leftovers,
            claimant: Claimant::default(),
        })
    }

    /// Refuses holds that cannot be left, and returns their session and a view of the first one.
    ///
    /// From now on, the session lists every znode that it may have created.
    fn begin_detach(&self, holds: &[Hold]) -> Result<(Arc<OpenSession>, HoldView), Error> {
        let refuse = |value: &str, problem| Err(InvalidInput::new("hold", value, problem).into());
        let Some(first) = holds.first() else {
            return refuse("none", "can be left to another process");
        };
        if !self.ensemble().opens_sessions() {
            let problem = "is of a session that a client keeps open";
            return refuse(first.node_path(), problem);
        }
        let Some(open) = self.current() else {
            return refuse(first.node_path(), "is lost: no ZooKeeper session is open");
        };
        for hold in holds {
            if !Arc::ptr_eq(&hold.view.grant_state.live, &open.live) {
                return refuse(hold.node_path(), "is of another ZooKeeper session");
            }
        }
        match open.znodes.freeze_to_leave() {
            Ok(()) => Ok((open, first.view())),
            Err(znode) => refuse(znode.path(), "is of a recipe without a queue"),
        }
    }
}

/// A session that is closed when this is dropped, unless it is left to another process by then.
///
/// The session's attempts that are not polled have their references, so that a dropped reference
/// closes nothing.
struct ClosedOnDrop(Arc<dyn ServerSession>);

impl Drop for ClosedOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Ends a hold here, and leaves its znode.
///
/// # Errors
///
/// The reason of the end if the hold is released instead.
fn end_here(mut hold: Hold) -> Result<LeftHold, Ended> {
    let held = hold.end();
    let path = hold.node_path().to_owned();
    // Nothing that was written under the hold here lands under the next hold, and nothing is
    // written under it here from now on.
    let is_closed = hold.view.shared.unanswered.close();
    match held {
        Some((mut held, Ended::Released)) if is_closed && held.grant.is_held() => {
            held.grant.owner.disown();
            let token = held.grant.token.next_turn();
            Ok(LeftHold { path, token })
        }
        _ => {
            events::not_left(hold.session_id(), &path);
            Err(hold.view.owner_end().unwrap_or(Ended::Released))
        }
    }
}

/// The znodes that the session may own, without those of the holds that it leaves.
fn others(open: &OpenSession, holds: &[LeftHold]) -> Leftovers {
    let mut others = Leftovers::of(&open.znodes);
    let is_left = |path: &Arc<str>| holds.iter().any(|hold| *hold.path == **path);
    others.paths.retain(|path| !is_left(path));
    others
}

/// Creates the ticket, and returns its path.
///
/// The directory of the hold comes last: other libraries take each of its children for a contender.
async fn create_ticket(
    server: &dyn ServerSession,
    first: &LeftHold,
) -> Result<String, ServerError> {
    let acl = open_acl();
    let name = format!("{TICKET}{}-{}", first.token.get(), first.token.turn());
    let mut ends = first.path.match_indices('/').map(|(end, _)| end);
    let mut end = ends.next().unwrap_or_default();
    loop {
        let ticket = format!("{}/{name}", &first.path[..end]);
        let create = || server.create(&ticket, b"", CreateMode::Ephemeral, &acl);
        match retry(ServerError::may_pass, create).await {
            Ok(_) => return Ok(ticket),
            // Nobody else creates a znode of this name.
            Err(error) if error.is(Refusal::NodeExists) => return Ok(ticket),
            Err(error) if error.is(Refusal::NoAuth) => end = ends.next().ok_or(error)?,
            Err(error) => return Err(error),
        }
    }
}
