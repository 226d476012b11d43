//! How many hold at a time, and in which order.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zookeeper_recipes_core::{Hold, Recipe, Session};

use super::promise::{HANDOFF, Kept, PATIENCE, text};
use super::suite::Conformance;
use crate::history::History;

/// How long all contenders may take to come into the queue.
const MEETING: Duration = Duration::from_secs(3);

impl Conformance<'_> {
    pub(super) async fn exclusion(&self) -> Kept {
        let path = &self.path("exclusion");
        let contenders = self.holders.unwrap_or(4).min(8) + 4;
        let may = self.holders.unwrap_or(contenders);
        // A blocker holds everything.
        let everything = may as u64;
        let history = Arc::new(Mutex::new((History::new(everything), 0)));
        let mut tasks = self.meet(path, contenders, everything, &history).await?;
        while let Some(task) = tasks.join_next().await {
            task.map_err(text)??;
        }
        let most = lock(&history).1;
        if most < may.min(2) {
            return Err(format!("at most {most} held at a time, where {may} may"));
        }
        self.nothing_left(path).await
    }

    /// Lets all contenders come into the queue behind others, who then release.
    ///
    /// On a slow machine, the contenders would otherwise hold one by one.
    async fn meet(
        &self,
        path: &str,
        contenders: usize,
        everything: u64,
        history: &Arc<Seen>,
    ) -> Kept<JoinSet<Kept>> {
        let session = self.session().await?;
        let mut first = Vec::new();
        let filling = self.fill(&session, path).await?;
        let share = everything / filling.len().max(1) as u64;
        for hold in filling {
            first.push((grant(history, share, &hold)?, hold));
        }
        // Nobody waits while others connect.
        let mut recipes = Vec::new();
        let makes = std::iter::repeat_n(&self.make, contenders).chain(&self.block);
        for make in makes {
            let session = self.session().await?;
            recipes.push((make(&session, path), session));
        }
        let blockers = recipes.split_off(contenders);
        let mut tasks = JoinSet::new();
        for (recipe, session) in recipes {
            tasks.spawn(take_turns(recipe, session, 1, history.clone()));
        }
        let recipe = (self.make)(&session, path);
        let queue = self.queue_length(&*recipe, first.len() + contenders);
        tokio::select! {
            // Without a queue that it claims to have, a recipe breaks another promise.
            met = tokio::time::timeout(MEETING, queue) => met.unwrap_or(Ok(()))?,
            Some(early) = tasks.join_next() => {
                early.map_err(text)??;
                return Err("one had all its turns where there was no room".to_owned());
            }
        }
        lock(history).1 = 0;
        for (number, hold) in first {
            lock(history).0.letting_go(number);
            hold.release().await.map_err(text)?;
        }
        for (recipe, session) in blockers {
            tasks.spawn(take_turns(recipe, session, everything, history.clone()));
        }
        Ok(tasks)
    }

    pub(super) async fn order(&self) -> Kept {
        let path = &self.path("order");
        if !self.ordered {
            return Ok(());
        }
        // Who gets in together, and where one is before the others whom they must not pass.
        let (groups, blocker): (&[&[usize]], _) = match &self.block {
            None => (&[&[0], &[1], &[2], &[3], &[4]], None),
            Some(block) => (&[&[0, 1], &[2], &[3, 4]], Some((2, block))),
        };
        let session = self.session().await?;
        let mut holding = self.fill(&session, path).await?;
        let (entered, mut granted) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        for number in 0..5 {
            let session = self.session().await?;
            let recipe = match blocker {
                Some((blocker, block)) if blocker == number => block(&session, path),
                _ => (self.make)(&session, path),
            };
            let entered = entered.clone();
            tasks.spawn(async move {
                let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
                entered.send((number, hold)).map_err(text)
            });
            let queued = holding.len() + number + 1;
            self.queue_length(&*(self.make)(&session, path), queued)
                .await?;
        }
        drop(entered);
        let mut newest = None;
        for group in groups {
            // If several hold at a time, one goes and one comes. The last to come goes: a waiter
            // that watches too few contenders watches the first ones.
            let staying = self.holders.map_or(0, |_| holding.len() - 1);
            for hold in holding.split_off(staying) {
                hold.release().await.map_err(text)?;
            }
            let came = next_group(group, &mut granted).await?;
            for (_, hold) in came {
                if newest.replace(hold.fencing_token()) >= Some(hold.fencing_token()) {
                    return Err(format!("an older fencing token than before: {hold:?}"));
                }
                holding.push(hold);
            }
        }
        while let Some(task) = tasks.join_next().await {
            task.map_err(text)??;
        }
        drop(holding);
        self.nothing_left(path).await
    }
}

/// Holds three times, each time for a moment, and closes the session.
async fn take_turns(
    recipe: Box<dyn Recipe>,
    session: Session,
    weight: u64,
    history: Arc<Seen>,
) -> Kept {
    for _ in 0..3 {
        let hold = recipe.acquire_timeout(PATIENCE).await.map_err(text)?;
        let number = grant(&history, weight, &hold)?;
        tokio::time::sleep(Duration::from_millis(30)).await;
        if !hold.is_held() {
            return Err(format!("not held any more: {:?}", hold.state()));
        }
        lock(&history).0.letting_go(number);
        hold.release().await.map_err(text)?;
    }
    session.close().await;
    Ok(())
}

/// The holds, and the most of them at a time.
type Seen = Mutex<(History, usize)>;

fn lock(seen: &Seen) -> MutexGuard<'_, (History, usize)> {
    // Nothing panics while it is locked.
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports a new hold. The call returns the number of the hold.
fn grant(seen: &Seen, weight: u64, hold: &Hold) -> Kept<u64> {
    let (history, most) = &mut *lock(seen);
    let (number, violations) = history.granted("a contender", weight, &hold.view());
    *most = history.held().count().max(*most);
    match violations.first() {
        None => Ok(number),
        Some(violation) => Err(violation.to_string()),
    }
}

/// Waits until the contenders of a group hold, and no others do.
async fn next_group(
    group: &[usize],
    granted: &mut mpsc::UnboundedReceiver<(usize, Hold)>,
) -> Kept<Vec<(usize, Hold)>> {
    let mut came = Vec::new();
    for _ in group {
        match tokio::time::timeout(HANDOFF, granted.recv()).await {
            Ok(Some(grant)) => came.push(grant),
            Ok(None) | Err(_) => {
                return Err(format!("{group:?} could hold, and only {came:?} do"));
            }
        }
    }
    came.sort_by_key(|(number, _)| *number);
    if !came.iter().map(|(number, _)| number).eq(group) {
        return Err(format!(
            "it was the turn of {group:?}, and in came {came:?}"
        ));
    }
    Ok(came)
}
