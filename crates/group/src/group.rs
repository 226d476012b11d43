//! The group.

use tokio::sync::watch;
use zookeeper_recipes_core::{
    Backoff, Error, InvalidInput, NodePath, Refusal, ServerError, Session,
};

use crate::GroupOptions;
use crate::members::{GroupState, Member, read_members, watch_members};
use crate::membership::Membership;
use crate::names::{Names, Turn};
use crate::own_member::{IfTaken, OwnMember};

/// The processes that are there, by name, each with its data.
///
/// A process [joins](Self::join) under a name, and is a member until it leaves or its session ends.
/// Each process can [watch](Self::watch) who is in the group, also without being a member.
///
/// # Znodes
///
/// Under the path, one ephemeral znode for each member: the member's name, with its data. If the
/// path does not exist, the first member creates it as a container znode. Each ephemeral child is a
/// member, whichever client created it. Other children are ignored.
///
/// Tasks that join with one name in one session join one after the other, also by two values: the
/// next one waits until the membership before has left.
///
/// # Example
///
/// ```
/// use zookeeper_recipes_group::{Group, Session};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let session = zookeeper_recipes_simulation::Simulation::default().session("docs").await?;
/// let group = Group::new(&session, "/app/members")?;
/// let mut watched = group.watch();
///
/// let membership = group.join("node-7", "10.0.0.7:8080").await?;
/// let state = watched.wait_for(|state| state.member("node-7").is_some()).await?;
/// assert_eq!(state.members()[0].data, b"10.0.0.7:8080");
/// drop(state);
///
/// membership.leave().await?;
/// watched.wait_for(|state| state.members().is_empty()).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Group {
    session: Session,
    path: NodePath,
    options: GroupOptions,
    names: Names,
}

impl Group {
    /// The group at `path`, with the default options. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`].
    pub fn new(session: &Session, path: impl AsRef<str>) -> Result<Group, InvalidInput> {
        Group::with_options(session, path, GroupOptions::new())
    }

    /// The group at `path`. The call sends nothing.
    ///
    /// # Errors
    ///
    /// [`InvalidInput`] if `path` is not a valid [`NodePath`], or an option has a value that cannot
    /// work.
    pub fn with_options(
        session: &Session,
        path: impl AsRef<str>,
        options: GroupOptions,
    ) -> Result<Group, InvalidInput> {
        let unused = [
            "strategy",
            "data",
            "after_session_loss",
            "mark_release",
            "one_contender",
        ];
        options.refuse(&unused, "a group")?;
        let path = NodePath::new(path.as_ref())?;
        options.check_znode(session, &path, &[])?;
        Ok(Group {
            names: Names::of(session),
            session: session.clone(),
            path,
            options,
        })
    }

    /// Joins the group, and waits until no other member has the name.
    ///
    /// A process that died is a member until its session expires. So a process that starts again
    /// under the same name waits for at most the session timeout of its predecessor and two ticks.
    /// The wait has no deadline: bound it with [`tokio::time::timeout`], or use
    /// [`try_join`](Self::try_join).
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the name is free: a create | 1 | 1 | 0 |
    /// | the name is taken: a refused create and a read, then a create | 3 | 3 | 1 |
    /// | first member of the directory: its creates | 2 or more | 1 or more | 0 |
    /// | another task of this session has the name | 0 until its turn | 0 | 0 |
    ///
    /// A session reads its member's znode at its next probe, by one request, and watches it.
    ///
    /// # Errors
    ///
    /// * [`Error::InvalidInput`] if the name is not one segment of a path, or the data is longer
    ///   than a request may be.
    /// * [`Error::Refused`] (for example, no permission), [`Error::NoLease`],
    ///   [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, no znode and no watch remain: the session deletes the znode in the
    /// background.
    ///
    /// # Session loss
    ///
    /// During the call: [`Error::SessionOver`]. After it the membership [joins again](Membership).
    pub async fn join(
        &self,
        name: impl AsRef<str>,
        data: impl Into<Vec<u8>>,
    ) -> Result<Membership, Error> {
        self.enter(name.as_ref(), data.into(), IfTaken::Wait).await
    }

    /// Joins the group, unless another member has the name.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | as [`join`](Self::join), without the wait | 1 or more | 1 or more | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with [`Refusal::NodeExists`](crate::Refusal::NodeExists) if the name is
    /// taken, and the errors of [`join`](Self::join).
    ///
    /// # Cancel safety, session loss
    ///
    /// Those of [`join`](Self::join).
    pub async fn try_join(
        &self,
        name: impl AsRef<str>,
        data: impl Into<Vec<u8>>,
    ) -> Result<Membership, Error> {
        self.enter(name.as_ref(), data.into(), IfTaken::Refuse)
            .await
    }

    async fn enter(
        &self,
        name: &str,
        data: Vec<u8>,
        if_taken: IfTaken,
    ) -> Result<Membership, Error> {
        let path = self.path.join(name)?;
        self.options.check_znode(&self.session, &path, &data)?;
        let member = OwnMember {
            session: self.session.clone(),
            data: data.into(),
            options: self.options.clone(),
            turn: self.turn(&path, if_taken).await?,
            path,
        };
        let hold = member.join(if_taken).await?;
        Ok(Membership::start(member, hold))
    }

    /// Waits until no other task of the process joins with this name or is its member.
    async fn turn(&self, path: &NodePath, if_taken: IfTaken) -> Result<Turn, Error> {
        match (self.names.try_turn(path), if_taken) {
            (Some(turn), _) => Ok(turn),
            (None, IfTaken::Wait) => Ok(self.names.turn(path).await),
            (None, IfTaken::Refuse) => {
                let server = self.session.server(path).await?;
                let taken = ServerError::Refused(Refusal::NodeExists);
                Err(Error::at(path.as_str(), server.id, taken))
            }
        }
    }

    /// Reads the members, in the order of their names. Empty if the path does not exist.
    ///
    /// The call repeats the reads until a server answers or the session is over.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | the names, then all their data in one read | 2 | 2 | 0 |
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], [`Error::SessionOver`], [`Error::NoSession`].
    ///
    /// # Cancel safety
    ///
    /// A dropped future leaves nothing behind.
    pub async fn members(&self) -> Result<Vec<Member>, Error> {
        let mut backoff = Backoff::default();
        loop {
            let server = self.session.server(&self.path).await?;
            match read_members(&server, &self.path).await {
                Ok(members) => return Ok(members),
                Err(ServerError::OutcomeUnknown(_)) => backoff.wait().await,
                Err(error) => return Err(Error::at(self.path.as_str(), server.id, error)),
            }
        }
    }

    /// Watches who is in the group, by a task that ends with the last receiver.
    ///
    /// The value begins with [`GroupState::Unknown`]. Events that come while the task reads lead to
    /// one more read. If no server answers, the value stays as it was: ask
    /// [`Session::is_connected`] whether it may be old. A new session reads again.
    ///
    /// The value does not change if only the data of a member's znode changes. These recipes never
    /// change it.
    ///
    /// | | requests | round trips | watches |
    /// |---|---|---|---|
    /// | a member comes or leaves: the names, then all their data in one read | 2 | 2 | 1 |
    /// | the session has reconnected: the names, then all their data in one read | 2 | 2 | 0 |
    /// | the first read of a session: a `sync` before | 1 more | 1 more | 0 |
    ///
    /// Each member that comes or leaves wakes each watching process.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime.
    pub fn watch(&self) -> watch::Receiver<GroupState> {
        watch_members(self.session.clone(), self.path.clone())
    }

    /// The directory of the members' znodes.
    pub fn path(&self) -> &NodePath {
        &self.path
    }
}
