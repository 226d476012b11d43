//! A queue at one moment, as the server shows it.

use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Contender, NodePath, Refusal, ServerError, Verdict, order, ordered_by_czxid,
};

use super::kind::{RecipeKind, contender, kind, recipe, verdict};
use super::row::{Row, State};

/// The contenders of a directory, in the order of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    path: NodePath,
    /// False if the directory does not exist.
    pub(crate) exists: bool,
    pub(crate) recipe: RecipeKind,
    /// The number of permits, if the directory records one.
    pub(crate) permits: Option<u32>,
    contenders: Vec<Contender>,
}

impl Snapshot {
    /// Lists the contenders: one list and one read together, for any number of contenders.
    ///
    /// If several contenders have one number, one more read gives their order.
    pub(crate) async fn take(
        server: &dyn ServerSession,
        path: &NodePath,
    ) -> Result<Snapshot, ServerError> {
        let (names, data) = (server.list(path.as_str()), server.get(path.as_str()));
        let names = names.await;
        let data = data.await;
        Snapshot::of(server, path, names, data.map(|(data, _)| data)).await
    }

    /// The snapshot of these names and this data of the directory.
    pub(crate) async fn of(
        server: &dyn ServerSession,
        path: &NodePath,
        names: Result<Vec<String>, ServerError>,
        data: Result<Vec<u8>, ServerError>,
    ) -> Result<Snapshot, ServerError> {
        let is_missing = |error: &ServerError| error.is(Refusal::NoNode);
        let exists = !matches!(&names, Err(error) if is_missing(error));
        let names = names.or_else(|error| {
            if is_missing(&error) {
                Ok(Vec::new())
            } else {
                Err(error)
            }
        });
        let data = data.or_else(|error| {
            if is_missing(&error) {
                Ok(Vec::new())
            } else {
                Err(error)
            }
        });
        let mut contenders: Vec<Contender> =
            names?.iter().filter_map(|name| contender(name)).collect();
        order(&mut contenders);
        tell_apart(server, path, &mut contenders).await?;
        let recipe = recipe(&contenders);
        let permits = String::from_utf8(data?).ok();
        Ok(Snapshot {
            path: path.clone(),
            exists,
            recipe,
            permits: permits.and_then(|text| text.parse().ok()),
            contenders,
        })
    }

    /// How many contenders there are.
    pub(crate) fn len(&self) -> usize {
        self.contenders.len()
    }

    /// How many of the contenders hold. `None` if it cannot be known.
    pub(crate) fn holders(&self) -> Option<usize> {
        let mut holders = 0;
        for place in 0..self.len() {
            match self.verdict(place) {
                Some(Verdict::Hold) => holders += 1,
                // Nobody holds behind a contender that waits, but readers behind readers.
                Some(Verdict::Wait { .. }) => break,
                None => return None,
            }
        }
        Some(holders)
    }

    /// Reads the first contenders, at most so many.
    ///
    /// A contender that leaves between the list and the read is left out.
    pub(crate) async fn rows(
        &self,
        server: &dyn ServerSession,
        most: usize,
    ) -> Result<Vec<Row>, ServerError> {
        let first = &self.contenders[..most.min(self.len())];
        if first.is_empty() {
            return Ok(Vec::new());
        }
        let paths: Vec<String> = first.iter().map(|contender| self.node(contender)).collect();
        let nodes = server.get_each(&paths).await?;
        let read = nodes.into_iter().enumerate();
        let rows = read.filter_map(|(place, node)| {
            let (data, stat) = node?;
            let contender = &self.contenders[place];
            let kind = kind(self.recipe, contender);
            Some(Row::new(
                place,
                contender.name(),
                kind,
                self.state(place),
                &data,
                &stat,
            ))
        });
        Ok(rows.collect())
    }

    fn node(&self, contender: &Contender) -> String {
        format!("{}/{}", self.path, contender.name())
    }

    fn state(&self, place: usize) -> State {
        match self.verdict(place) {
            Some(Verdict::Hold) => State::Holds,
            Some(Verdict::Wait { on }) => State::WaitsFor(on),
            None => State::Unknown,
        }
    }

    fn verdict(&self, place: usize) -> Option<Verdict> {
        verdict(&self.path, &self.contenders, place, self.permits)
    }
}

/// Reads the contenders whose numbers do not give their order.
async fn tell_apart(
    server: &dyn ServerSession,
    path: &NodePath,
    contenders: &mut [Contender],
) -> Result<(), ServerError> {
    let tied = ordered_by_czxid(contenders);
    if tied.is_empty() {
        return Ok(());
    }
    let node = |place: &usize| format!("{path}/{}", contenders[*place].name());
    let paths: Vec<String> = tied.iter().map(node).collect();
    let nodes = server.get_each(&paths).await?;
    for (place, node) in tied.into_iter().zip(nodes) {
        if let Some((_, stat)) = node {
            contenders[place].set_czxid(stat.czxid);
        }
    }
    order(contenders);
    Ok(())
}
