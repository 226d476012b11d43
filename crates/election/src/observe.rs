//! The stream of who leads.

use futures_core::Stream;
use futures_util::stream::{self, StreamExt};
use zookeeper_recipes_core::ensemble::Watch;
use zookeeper_recipes_core::watching::Watching;
use zookeeper_recipes_core::{Error, NodePath, Refusal, ServerError, Session};

use crate::backoff::Backoff;
use crate::leader::{Leader, first_candidate};

/// Who leads in the election at `directory` now, and then each change.
pub(crate) fn observe(
    session: Session,
    directory: NodePath,
) -> impl Stream<Item = Result<Option<Leader>, Error>> + Send + Unpin + 'static {
    let observer = Observer {
        session,
        directory,
        caught_up: false,
        watch: None,
        told: None,
        backoff: Backoff::new(),
        over: false,
    };
    stream::unfold(observer, |mut observer| async move {
        let news = observer.next().await?;
        Some((news, observer))
    })
    .boxed()
}

struct Observer {
    session: Session,
    directory: NodePath,
    /// Whether the server has caught up with its leader since the stream began. A server that
    /// opens another session has done so, too.
    caught_up: bool,
    /// Set where the present state can be trusted until it fires.
    watch: Option<Watch>,
    told: Option<Told>,
    backoff: Backoff,
    over: bool,
}

/// What the caller was told last.
#[derive(Clone, PartialEq)]
enum Told {
    State(Option<Leader>),
    Refused(Refusal),
}

impl Observer {
    async fn next(&mut self) -> Option<Result<Option<Leader>, Error>> {
        if self.over {
            return None;
        }
        loop {
            if let Some(watch) = self.watch.take() {
                // Whatever it tells, also the end of the session, is answered by another look.
                watch.await;
            }
            let session = match self.session.observing(&self.directory).await {
                Ok(session) => session,
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            };
            let id = session.server().id();
            match self.look(&session).await {
                Ok((leader, watch)) => {
                    self.watch = Some(watch);
                    self.backoff = Backoff::new();
                    if let Some(news) = self.news(leader) {
                        return Some(Ok(news));
                    }
                }
                Err(ServerError::Refused(refusal)) if refusal != Refusal::Throttled => {
                    let told = Told::Refused(refusal.clone());
                    if self.told.replace(told.clone()) != Some(told) {
                        let error = ServerError::Refused(refusal);
                        return Some(Err(Error::at(self.directory.as_str(), id, error)));
                    }
                    drop(session);
                    self.backoff.wait().await;
                }
                Err(error) => {
                    tracing::debug!(directory = %self.directory, %error, "looking again");
                    drop(session);
                    self.backoff.wait().await;
                }
            }
        }
    }

    /// Takes in who leads, and says what of it the caller has not been told.
    fn news(&mut self, mut leader: Option<Leader>) -> Option<Option<Leader>> {
        if let (Some(leader), Some(Told::State(Some(told)))) = (&mut leader, &self.told) {
            if leader.fencing_token == told.fencing_token {
                leader.since = told.since;
            }
        }
        let told = Told::State(leader.clone());
        (self.told.replace(told.clone()) != Some(told)).then_some(leader)
    }

    /// Reads who leads, and sets the one watch that tells when that changes: on the leader's
    /// znode, or where nobody leads on the directory.
    async fn look(&mut self, session: &Watching) -> Result<(Option<Leader>, Watch), ServerError> {
        let directory = self.directory.as_str();
        let server = session.server();
        if !self.caught_up {
            server.sync(directory).await?;
            self.caught_up = true;
        }
        loop {
            let children = match server.list(directory).await {
                Err(error) if error.is(Refusal::NoNode) => {
                    match session.exists_and_watch(directory).await? {
                        (None, created) => return Ok((None, created)),
                        (Some(_), _) => continue,
                    }
                }
                children => children?,
            };
            let mut first = first_candidate(server, &self.directory, &children).await?;
            if first.is_none() {
                let (children, changed) = match session.list_and_watch(directory).await {
                    Err(error) if error.is(Refusal::NoNode) => continue,
                    listed => listed?,
                };
                first = first_candidate(server, &self.directory, &children).await?;
                if first.is_none() {
                    return Ok((None, changed));
                }
            }
            let Some(first) = first else { continue };
            match session.get_and_watch(&first).await {
                Ok((data, stat, changed)) => {
                    return Ok((Some(Leader::new(&data, &stat)), changed));
                }
                Err(error) if error.is(Refusal::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
