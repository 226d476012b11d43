//! Observing who leads: a stream, and a watched value.

use futures_core::Stream;
use futures_util::future::{FutureExt, join};
use futures_util::stream::{self, StreamExt};
use tokio::sync::watch;
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{Error, NodePath, Refusal, ServerError, Session};

use crate::backoff::Backoff;
use crate::leader::Leader;
use crate::look::{first_candidate, in_time};
use crate::steer::either;

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

/// Who leads in the election at `directory`, kept up to date by a task of its own.
pub(crate) async fn watch_leader(
    session: &Session,
    directory: &NodePath,
) -> Result<watch::Receiver<Option<Leader>>, Error> {
    let mut leaders = observe(session.clone(), directory.clone());
    let first = async {
        let first = leaders.next().await;
        // The stream yields an error before it ends.
        first.unwrap_or(Ok(None))
    };
    let first = in_time(session, directory, first).await?;
    let (sender, receiver) = watch::channel(first);
    let task = keep_up_to_date(leaders, sender).boxed();
    tokio::spawn(session.ensemble().task(task));
    Ok(receiver)
}

/// Passes on what the stream yields, until it ends or all receivers are dropped.
async fn keep_up_to_date(
    mut leaders: impl Stream<Item = Result<Option<Leader>, Error>> + Unpin,
    sender: watch::Sender<Option<Leader>>,
) {
    loop {
        let news = tokio::select! {
            biased;
            () = sender.closed() => return,
            news = leaders.next() => news,
        };
        match news {
            Some(Ok(leader)) => {
                sender.send_replace(leader);
            }
            Some(Err(error)) => tracing::warn!(%error, "who leads is not known"),
            None => return,
        }
    }
}

struct Observer {
    session: Session,
    directory: NodePath,
    /// Whether the server has caught up with its leader since the stream began.
    caught_up: bool,
    /// Fires when the present state may have changed.
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
                // Any event is a reason to look again, also the end of the session.
                watch.await;
            }
            let server = match self.session.server(&self.directory).await {
                Ok(server) => server,
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            };
            let id = server.id();
            match self.look(&*server).await {
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
                    drop(server);
                    self.backoff.wait().await;
                }
                Err(error) => {
                    tracing::debug!(directory = %self.directory, %error, "looking again");
                    drop(server);
                    self.backoff.wait().await;
                }
            }
        }
    }

    /// What of this state the caller has not been told yet.
    fn news(&mut self, mut leader: Option<Leader>) -> Option<Option<Leader>> {
        if let (Some(leader), Some(Told::State(Some(told)))) = (&mut leader, &self.told) {
            if leader.fencing_token == told.fencing_token {
                leader.since = told.since;
            }
        }
        let told = Told::State(leader.clone());
        (self.told.replace(told.clone()) != Some(told)).then_some(leader)
    }

    /// Reads who leads, and sets watches: on the leader's znode and the directory's data, or on the
    /// directory's children if nobody leads.
    async fn look(
        &mut self,
        server: &dyn ServerSession,
    ) -> Result<(Option<Leader>, Watch), ServerError> {
        let directory = self.directory.as_str();
        if !self.caught_up {
            server.sync(directory).await?;
            self.caught_up = true;
        }
        loop {
            let children = match server.list(directory).await {
                Err(error) if error.is(Refusal::NoNode) => {
                    match server.exists_and_watch(directory).await? {
                        (None, created) => return Ok((None, created)),
                        (Some(_), _) => continue,
                    }
                }
                children => children?,
            };
            let mut first = first_candidate(server, &self.directory, &children).await?;
            if first.is_none() {
                let (children, changed) = match server.list_and_watch(directory).await {
                    Err(error) if error.is(Refusal::NoNode) => continue,
                    listed => listed?,
                };
                first = first_candidate(server, &self.directory, &children).await?;
                if first.is_none() {
                    return Ok((None, changed));
                }
            }
            let Some(first) = first else { continue };
            let reads = join(
                server.get_and_watch(&first),
                server.get_and_watch(directory),
            );
            let (leader, notice) = reads.await;
            match leader.and_then(|leader| Ok((leader, notice?))) {
                Ok(((data, stat, changed), (notice, _, said))) => {
                    let leader = Leader::new((&data, &stat), &notice);
                    return Ok((Some(leader), either(changed, said)));
                }
                Err(error) if error.is(Refusal::NoNode) => {}
                Err(error) => return Err(error),
            }
        }
    }
}
