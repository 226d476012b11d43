//! The children of a directory, with their data.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt, join_all};
use futures_util::stream::{FuturesUnordered, StreamExt};
use zookeeper_recipes_core::ensemble::{ServerSession, Watch};
use zookeeper_recipes_core::{NodePath, Refusal, ServerError};

use crate::kept::Source;
use crate::pieces::{self, PLAN, Piece};

/// The data of each child, by its name.
pub(crate) type Children = BTreeMap<String, Arc<[u8]>>;

/// Reads the children of a directory, without watches.
pub(crate) async fn read_children(
    server: &ServerSession,
    directory: &NodePath,
) -> Result<Children, ServerError> {
    let names = server.list(directory.as_str()).await?;
    if names.is_empty() {
        return Ok(Children::new());
    }
    let path = |name: &String| format!("{directory}/{name}");
    let paths: Vec<String> = names.iter().map(path).collect();
    let nodes = names.into_iter().zip(server.get_each(&paths).await?);
    let found = nodes.filter_map(|(name, node)| Some((name, node?.0.into())));
    Ok(found.collect())
}

/// Children of a directory. Each change costs a read of what has changed.
pub(crate) struct ChildrenOf {
    directory: NodePath,
    /// The worker whose plan these children are. `None` if they are all children.
    worker: Option<Arc<str>>,
    /// `None` if the names must be read.
    names_changed: Option<Watch>,
    children: Children,
    /// The children that must be read.
    stale: BTreeSet<String>,
    watches: FuturesUnordered<BoxFuture<'static, String>>,
}

impl ChildrenOf {
    /// All children of a directory.
    pub(crate) fn new(directory: &NodePath) -> ChildrenOf {
        ChildrenOf {
            directory: directory.clone(),
            worker: None,
            names_changed: None,
            children: Children::new(),
            stale: BTreeSet::new(),
            watches: FuturesUnordered::new(),
        }
    }

    /// The pieces of the plan of a worker.
    pub(crate) fn plan(directory: &NodePath, worker: &Arc<str>) -> ChildrenOf {
        ChildrenOf {
            worker: Some(worker.clone()),
            ..ChildrenOf::new(directory)
        }
    }

    async fn read_names(&mut self, server: &ServerSession) -> Result<(), ServerError> {
        let path = self.directory.as_str();
        loop {
            match server.list_and_watch(path).await {
                Ok((names, changed)) => {
                    let names: BTreeSet<String> = names.into_iter().collect();
                    self.children.retain(|name, _| names.contains(name));
                    self.stale.retain(|name| names.contains(name));
                    let is_new = |name: &String| !self.children.contains_key(name);
                    self.stale.extend(names.into_iter().filter(is_new));
                    self.names_changed = Some(changed);
                    return Ok(());
                }
                Err(error) if error.is(Refusal::NoNode) => {}
                Err(error) => return Err(error),
            }
            if let (None, created) = server.exists_and_watch(path).await? {
                self.children.clear();
                self.stale.clear();
                self.names_changed = Some(created);
                return Ok(());
            }
        }
    }

    /// Reads the pieces of a plan. The first one says how many there are.
    async fn read_plan(&mut self, server: &ServerSession, worker: &str) -> Result<(), ServerError> {
        let (mut known, mut of) = (0, 1);
        while known < of {
            let names = (known..of).map(|it| pieces::name(worker, it));
            let unknown = names.filter(|name| !self.children.contains_key(name));
            self.stale.extend(unknown);
            self.read_stale(server).await?;
            known = of;
            let first = self.children.get(worker);
            let first = first.and_then(|data| Piece::parse(PLAN, data).ok());
            of = first.map_or(of, |piece| piece.of);
        }
        Ok(())
    }

    async fn read_stale(&mut self, server: &ServerSession) -> Result<(), ServerError> {
        let path = |name: &String| format!("{}/{name}", self.directory);
        let read = |name: &String| {
            let path = path(name);
            async move { server.get_and_watch(&path).await }
        };
        let answers = join_all(self.stale.iter().map(read)).await;
        for (name, answer) in std::mem::take(&mut self.stale).into_iter().zip(answers) {
            let watch = match answer {
                Ok((data, _, changed)) => {
                    self.children.insert(name.clone(), data.into());
                    changed
                }
                Err(error) if error.is(Refusal::NoNode) => {
                    self.children.remove(&name);
                    if self.worker.is_none() {
                        continue;
                    }
                    let (found, changed) = server.exists_and_watch(&path(&name)).await?;
                    if found.is_some() {
                        self.stale.insert(name.clone());
                    }
                    changed
                }
                Err(error) => return Err(error),
            };
            self.watches.push(watch.map(move |_| name).boxed());
        }
        Ok(())
    }
}

impl Source for ChildrenOf {
    type Value = Children;

    fn path(&self) -> &NodePath {
        &self.directory
    }

    fn reset(&mut self) {
        *self = ChildrenOf {
            worker: self.worker.take(),
            ..ChildrenOf::new(&self.directory)
        };
    }

    async fn read(&mut self, server: &ServerSession) -> Result<Children, ServerError> {
        if let Some(worker) = self.worker.clone() {
            self.read_plan(server, &worker).await?;
        } else if self.names_changed.is_none() {
            self.read_names(server).await?;
        }
        self.read_stale(server).await?;
        Ok(self.children.clone())
    }

    async fn changed(&mut self) {
        if !self.stale.is_empty() {
            return;
        }
        let names_changed = async {
            match &mut self.names_changed {
                Some(changed) => drop(changed.await),
                None if self.worker.is_none() => {}
                None => pending().await,
            }
        };
        tokio::select! {
            biased;
            () = names_changed => self.names_changed = None,
            Some(name) = self.watches.next() => drop(self.stale.insert(name)),
        }
        // All that has changed by now is read at once.
        while let Some(Some(name)) = self.watches.next().now_or_never() {
            self.stale.insert(name);
        }
        self.names_changed
            .take_if(|changed| changed.now_or_never().is_some());
    }
}
