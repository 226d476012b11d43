//! A queue at one moment, as the server shows it.

use serde_json::{Value, json};
use zookeeper_recipes_core::ensemble::ServerSession;
use zookeeper_recipes_core::{
    Contender, NodePath, Refusal, ServerError, Stat, Verdict, order, ordered_by_czxid,
};
use zookeeper_recipes_lock::JobRecord;

use super::kind::{RecipeKind, contender, is_mixed, kind, recipe, verdict};
use super::row::{Row, State, printable};
use super::slot::json_of;

/// The contenders of a directory, in the order of the queue.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    path: NodePath,
    /// False if the directory does not exist.
    pub(crate) exists: bool,
    pub(crate) recipe: RecipeKind,
    /// The number of permits, if the directory records one.
    pub(crate) permits: Option<u32>,
    /// The zxid of the last change of the number of permits. Zero if the recipe has no number.
    numbered_at: i64,
    /// What is recorded of a job of each time slot, if the directory is one.
    pub(crate) job: Option<JobRecord>,
    contenders: Vec<Contender>,
    /// The names of the znodes that are no contenders.
    pub(crate) foreign: Vec<String>,
}

/// What was read, or nothing if the directory does not exist.
fn or_none<T: Default>(read: Result<T, ServerError>) -> Result<T, ServerError> {
    match read {
        Err(error) if error.is(Refusal::NoNode) => Ok(T::default()),
        read => read,
    }
}

impl Snapshot {
    /// Lists the contenders: one list and one read together, for any number of contenders.
    ///
    /// If several contenders have one number, one more read gives their order.
    pub(crate) async fn take(
        server: &ServerSession,
        path: &NodePath,
    ) -> Result<Snapshot, ServerError> {
        let (names, data) = (server.list(path.as_str()), server.get(path.as_str()));
        let names = names.await;
        let data = data.await;
        Snapshot::of(server, path, names, data).await
    }

    /// The snapshot of these names and this data of the directory.
    pub(crate) async fn of(
        server: &ServerSession,
        path: &NodePath,
        names: Result<Vec<String>, ServerError>,
        data: Result<(Vec<u8>, Stat), ServerError>,
    ) -> Result<Snapshot, ServerError> {
        let exists = !matches!(&names, Err(error) if error.is(Refusal::NoNode));
        let (mut contenders, mut foreign) = (Vec::new(), Vec::new());
        for name in or_none(names)? {
            match contender(&name) {
                Some(contender) => contenders.push(contender),
                None => foreign.push(name),
            }
        }
        foreign.sort_unstable();
        order(&mut contenders);
        distinguish(server, path, &mut contenders).await?;
        let recipe = recipe(&contenders);
        let (data, stat) = or_none(data)?;
        let job = JobRecord::read(&data);
        let permits = String::from_utf8(data).ok();
        Ok(Snapshot {
            path: path.clone(),
            exists,
            recipe,
            job,
            permits: permits.and_then(|text| text.parse().ok()),
            numbered_at: match recipe {
                RecipeKind::Semaphore => stat.mzxid,
                _ => 0,
            },
            contenders,
            foreign,
        })
    }

    /// How many contenders there are.
    pub(crate) fn len(&self) -> usize {
        self.contenders.len()
    }

    /// What is unusual about the directory, for people.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        match &self.foreign[..] {
            [] => {}
            [one] => warnings.push(format!("{} is not a contender", printable(one))),
            [first, ..] => warnings.push(format!(
                "{} znodes are not contenders, the first is {}",
                self.foreign.len(),
                printable(first)
            )),
        }
        if self.is_mixed() {
            let text = "contenders of several recipes are here, and do not see each other: \
                        use a path for one recipe";
            warnings.push(text.to_owned());
        }
        warnings
    }

    /// True if the contenders are of several recipes.
    pub(crate) fn is_mixed(&self) -> bool {
        is_mixed(&self.contenders)
    }

    /// How many of the contenders hold by the present number of permits. `None` if it cannot be
    /// known.
    pub(crate) fn holders(&self) -> Option<usize> {
        let mut holders = 0;
        for place in 0..self.len() {
            match self.verdict(place) {
                Some(Verdict::Hold) => holders += 1,
                // Nobody holds behind a contender that waits, but readers behind readers.
                Some(Verdict::Wait { .. } | Verdict::StepBack) => break,
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
        server: &ServerSession,
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
                self.state(place, stat.czxid),
                &data,
                &stat,
            ))
        });
        Ok(rows.collect())
    }

    pub(crate) fn json(&self, rows: &[Row]) -> Value {
        json!({
            "path": self.path.as_str(),
            "exists": self.exists,
            "recipe": match self.recipe {
                RecipeKind::Unknown => None,
                recipe => Some(recipe.to_string()),
            },
            "permits": self.permits,
            "job": self.job.as_ref().map(json_of),
            "contenders": rows.iter().map(Row::json).collect::<Vec<_>>(),
            "foreign": self.foreign,
            "mixed": self.is_mixed(),
        })
    }

    fn node(&self, contender: &Contender) -> String {
        format!("{}/{}", self.path, contender.name())
    }

    /// The state of a contender that was created by this transaction.
    fn state(&self, place: usize, czxid: i64) -> State {
        let is_older_than_the_number = czxid < self.numbered_at;
        match self.verdict(place) {
            Some(Verdict::Hold) => State::Holds,
            // A waiter that wants more permits than there are is refused. So this contender holds.
            Some(Verdict::Wait { on }) if is_older_than_the_number && on.is_empty() => State::Holds,
            // It may have held before the number was lowered.
            Some(Verdict::Wait { .. }) if is_older_than_the_number => State::Unknown,
            Some(Verdict::Wait { on }) => State::WaitsFor(on),
            Some(Verdict::StepBack) | None => State::Unknown,
        }
    }

    fn verdict(&self, place: usize) -> Option<Verdict> {
        verdict(&self.path, &self.contenders, place, self.permits)
    }
}

/// Reads the contenders whose numbers do not give their order.
async fn distinguish(
    server: &ServerSession,
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
