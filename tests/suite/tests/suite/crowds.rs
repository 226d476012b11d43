//! Many contenders for each recipe: never too many at once, in order, and all get through.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::task::JoinSet;
use zookeeper_recipes_core::{Session, WaitStrategy};
use zookeeper_recipes_suite::{
    ELECTION, Judge, LOCK, LOCK_BY_PARENT, LOCK_OF_ONE_ZNODE, LONG, RWLOCK, SEMAPHORE,
    TestedRecipe, administrator, assert_no_watch_left, assert_nothing_left, children, eventually,
    in_time, server, session,
};
use zookeeper_recipes_testkit::Server;

const CONTENDERS: usize = 100;
/// As many contenders are enough if each release wakes all of them, or all of them poll.
const FEW: usize = 25;
const TURNS: usize = 10;
const BRIEFLY: Duration = Duration::from_millis(1);
const POLL: WaitStrategy = WaitStrategy::Poll(Duration::from_millis(10));

/// A crowd, each contender with a recipe object of its own.
struct Crowd {
    server: Server,
    sessions: Vec<Session>,
    recipe: TestedRecipe,
}

impl Crowd {
    async fn of(recipe: TestedRecipe, sessions: usize) -> Crowd {
        let server = server().await;
        let sessions = join_all((0..sessions).map(|_| session(&server, LONG))).await;
        Crowd {
            server,
            sessions,
            recipe,
        }
    }

    fn contenders(&self) -> usize {
        let wakes_one = self.recipe.strategy.unwrap_or_default() == WaitStrategy::Predecessor;
        match wakes_one && self.recipe.queues {
            true => CONTENDERS,
            false => FEW,
        }
    }

    fn session(&self, contender: usize) -> &Session {
        &self.sessions[contender % self.sessions.len()]
    }

    fn weight(&self, contender: usize) -> u64 {
        let weights = self.recipe.weights;
        weights[(contender * 7 + contender / 3) % weights.len()]
    }

    /// All contend at once, for several turns each.
    async fn contend(&self) {
        const PATH: &str = "/crowd/at-once";
        let judge = Arc::new(Judge::of(self.recipe));
        let mut tasks = JoinSet::new();
        for contender in 0..self.contenders() {
            let weight = self.weight(contender);
            let recipe = self.recipe.at(self.session(contender), PATH, weight);
            let judge = judge.clone();
            tasks.spawn(async move {
                for _ in 0..TURNS {
                    let hold = recipe.acquire().await.expect("it is acquired");
                    judge.turn(contender, weight, &hold.view(), BRIEFLY).await;
                    hold.release().await.expect("it is released");
                }
            });
        }
        in_time("all get through", tasks.join_all()).await;
        assert_eq!(judge.grants(), self.contenders() * TURNS);
        let shares = self.recipe.weights[0] < self.recipe.capacity;
        assert_eq!(judge.most_at_a_time() > 1, shares, "{:?}", self.recipe);
    }

    /// All queue behind one that holds everything, one by one, and are served in that order.
    async fn take_turns(&self) {
        const PATH: &str = "/crowd/in-turn";
        let administrator = administrator(&self.server).await;
        let judge = Arc::new(Judge::of_order(self.recipe));
        let everything = self.recipe.capacity;
        let door = self.recipe.at(self.session(0), PATH, everything);
        let first = door.acquire().await.expect("it is free");
        judge.came(first.fencing_token(), everything);
        let at_the_door = judge.granted("door", everything, &first.view());
        let mut tasks = JoinSet::new();
        for contender in 0..self.contenders() {
            let weight = self.weight(contender);
            let recipe = self.recipe.at(self.session(contender), PATH, weight);
            let judge_of_waiter = judge.clone();
            tasks.spawn(async move {
                let hold = recipe.acquire().await.expect("it is acquired");
                let granted = judge_of_waiter.granted(contender, weight, &hold.view());
                tokio::task::yield_now().await;
                judge_of_waiter.letting_go(granted);
                hold.release().await.expect("it is released");
            });
            let queued = async || children(&administrator, PATH).await.len() == contender + 2;
            eventually("it has queued", queued).await;
        }
        let queue = door.contenders().await.expect("the queue can be read");
        for (contender, entry) in queue[1..].iter().enumerate() {
            judge.came(entry.fencing_token, self.weight(contender));
        }
        judge.letting_go(at_the_door);
        first.release().await.expect("it is released");
        in_time("all get through", tasks.join_all()).await;
        assert_eq!(judge.grants(), self.contenders() + 1);
    }
}

async fn crowd(recipe: TestedRecipe, sessions: usize) {
    let crowd = Crowd::of(recipe, sessions).await;
    crowd.contend().await;
    if recipe.queues {
        crowd.take_turns().await;
    }
    assert_no_watch_left(&crowd.server).await;
    if !recipe.queues {
        // Such a session keeps a znode of its own as long as it lives.
        join_all(crowd.sessions.into_iter().map(Session::close)).await;
    }
    assert_nothing_left(&crowd.server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_sessions_take_turns() {
    for recipe in [LOCK, ELECTION] {
        crowd(recipe, CONTENDERS).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_and_writers_take_turns() {
    for recipe in [
        RWLOCK,
        RWLOCK.waiting(WaitStrategy::Parent),
        RWLOCK.waiting(POLL),
    ] {
        crowd(recipe, 8).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_for_permits_take_turns() {
    crowd(SEMAPHORE, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_a_few_sessions_take_turns() {
    for recipe in [LOCK, LOCK_BY_PARENT, LOCK.waiting(POLL), LOCK_OF_ONE_ZNODE] {
        crowd(recipe, 5).await;
    }
}
