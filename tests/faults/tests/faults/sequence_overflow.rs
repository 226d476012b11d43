//! The end of the create counter: the directory's numbers are used up while contenders queue.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use zookeeper_client::Client;
use zookeeper_recipes_core::{FencingToken, Hold, Recipe, Session};
use zookeeper_recipes_interop::can_run;
use zookeeper_recipes_suite::{
    ELECTION, Judge, LOCK, LONG, PATIENCE, RWLOCK, RecipeOptions, SEMAPHORE, TICK, TestedRecipe,
    WRITER, administrator, children, create, eventually, in_time, proxy, session,
};
use zookeeper_recipes_testkit::proxy::{Counters, Operation, Proxy};
use zookeeper_recipes_testkit::{Installation, Server, ServerOptions};

/// The number of the first contender; seven more get one of their own.
const NEXT: i32 = 2_147_483_640;
const CONTENDERS: usize = 50;
const SESSIONS: usize = 10;
const PERMITS: u64 = 4;
/// What a holder writes to, for the server to judge whether it holds.
const STORED: &str = "/stored";

const NO_COMPILER: &str = "no Java compiler: `cargo xtask install` installs it on Debian and its \
    kin (default-jdk-headless); elsewhere install a JDK and set JAVA_HOME to its directory";

/// A recipe, and what its contenders weigh by their numbers.
type Subject = (TestedRecipe, fn(usize) -> u64);

const RECIPES: &[Subject] = &[
    (LOCK, |_| 1),
    (RWLOCK, |number| match number % 3 {
        0 => WRITER,
        _ => 1,
    }),
    (SEMAPHORE.of(PERMITS), |number| {
        1 + number as u64 % (PERMITS - 1)
    }),
    (ELECTION, |_| 1),
];

/// The recipe at `path`, whose contender says that it is this one of them.
fn contender(session: &Session, path: &str, number: usize) -> Box<dyn Recipe> {
    let (recipe, weight) = subject_of(path);
    let options = RecipeOptions::new().data(number.to_string());
    let made = recipe.make(session, path, weight(number), options);
    made.expect("a good path")
}

/// How contenders come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Come {
    /// Each when the one before it has queued.
    InTurn,
    /// With several creates under way, for which the server hands out numbers beyond the last.
    AtOnce,
}

/// The queue as the server knows it: who came when, and who has not left.
#[derive(Debug)]
struct Queue {
    weight: fn(usize) -> u64,
    judge: Judge,
    /// By the znodes' `czxid`.
    numbers: Mutex<BTreeMap<FencingToken, usize>>,
}

impl Queue {
    /// All have come.
    fn come(&self, numbers: BTreeMap<FencingToken, usize>) {
        for (token, number) in &numbers {
            self.judge.came(*token, (self.weight)(*number));
        }
        *self.numbers.lock().expect("no panic within") = numbers;
    }

    async fn hold_and_leave(&self, number: usize, hold: Hold) {
        let token = hold.fencing_token();
        let known = self
            .numbers
            .lock()
            .expect("no panic within")
            .get(&token)
            .copied();
        assert_eq!(known, Some(number), "{token}");
        let granted = self
            .judge
            .granted(number, (self.weight)(number), &hold.view());
        let write = hold.transaction().set_data(STORED, b"");
        write.commit().await.expect("the server says it is held");
        // Before the release is sent, so that the judge sees each contender that it lets in.
        self.judge.letting_go(granted);
        hold.release().await.expect("it is released");
    }
}

struct Place {
    server: Server,
    administrator: Client,
    /// Not through the proxy, which counts what contenders send.
    onlooker: Session,
    proxy: Proxy,
    sessions: Vec<Session>,
}

impl Place {
    /// A server on which the counters under `paths` are about to end.
    async fn new(paths: &[String]) -> Place {
        let options = ServerOptions::new()
            .tick_time(TICK)
            // An empty directory that were removed would begin anew.
            .container_check_interval(60 * PATIENCE);
        let mut server = Server::start(options).await.expect("a server starts");
        let before = session(&server, LONG).await;
        for path in paths {
            let hold = contender(&before, path, 0).acquire().await;
            let hold = hold.expect("nobody is there");
            hold.release().await.expect("it is released");
        }
        before.close().await;
        server.stop().await.expect("it stops");
        let at_the_end: Vec<&str> = paths.iter().map(String::as_str).collect();
        server
            .set_create_counter(&at_the_end, NEXT)
            .await
            .expect("it is set");
        server.restart().await.expect("it starts again");

        let administrator = administrator(&server).await;
        create(&administrator, STORED).await;
        let proxy = proxy(&server).await;
        let connect_string = proxy.connect_string();
        let sessions = join_all((0..SESSIONS).map(|_| session(&connect_string, LONG))).await;
        Place {
            onlooker: session(&server, LONG).await,
            server,
            administrator,
            proxy,
            sessions,
        }
    }

    fn recipe(&self, path: &str, number: usize) -> Box<dyn Recipe> {
        contender(&self.sessions[number % SESSIONS], path, number)
    }

    /// The contenders by their `czxid`, and the numbers that the server gave them in that order.
    async fn queue(&self, path: &str) -> (BTreeMap<FencingToken, usize>, Vec<i32>) {
        let mut contenders = BTreeMap::new();
        for name in children(&self.administrator, path).await {
            let read = self.administrator.get_data(&format!("{path}/{name}")).await;
            let (data, stat) = read.expect("nobody leaves yet");
            let number: usize = String::from_utf8_lossy(&data).parse().expect("a number");
            // These are ten characters, and one more if a minus sign comes before ten digits.
            let at = name.len() - 10;
            let minus = name[..at].ends_with("--") || name[..at].ends_with("_-");
            let sequence: i32 = name[at - usize::from(minus)..].parse().expect("a number");
            contenders.insert(FencingToken::from(stat.czxid), (number, sequence));
        }
        let sequences = contenders.values().map(|(_, sequence)| *sequence).collect();
        let numbers = contenders
            .into_iter()
            .map(|(token, (number, _))| (token, number));
        (numbers.collect(), sequences)
    }

    /// Has all of them contend, judges each grant, and says what it cost and which numbers the
    /// server gave.
    async fn contend(&self, path: &str, come: Come) -> (Counters, Vec<i32>) {
        let before = self.proxy.counters();
        let (recipe, weight) = subject_of(path);
        let queue = Arc::new(Queue {
            weight,
            judge: Judge::of_order(recipe),
            numbers: Mutex::default(),
        });
        // Holds until all have come.
        let first = self.recipe(path, 0).acquire().await.expect("it is free");
        let (all_here, go) = tokio::sync::watch::channel(());
        let mut contenders = Vec::new();
        for number in 1..=CONTENDERS {
            let recipe = self.recipe(path, number);
            let (queue, mut go) = (queue.clone(), go.clone());
            contenders.push(tokio::spawn(async move {
                let hold = recipe.acquire().await.expect("it is acquired");
                // One who agrees with the first one holds before the others have come.
                go.changed().await.expect("all have come");
                queue.hold_and_leave(number, hold).await;
            }));
            if come == Come::InTurn {
                self.wait_for(path, number + 1).await;
            }
        }
        self.wait_for(path, CONTENDERS + 1).await;
        let (present, sequences) = self.queue(path).await;
        let in_order: Vec<FencingToken> = present.keys().copied().collect();
        queue.come(present);
        let seen = contender(&self.onlooker, path, 0).contenders().await;
        let seen = seen.expect("an answer");
        let seen: Vec<FencingToken> = seen.iter().map(|entry| entry.fencing_token).collect();
        assert_eq!(seen, in_order, "{path}: first come, first in the queue");
        all_here.send(()).expect("they wait for it");
        in_time(path, queue.hold_and_leave(0, first)).await;
        for contender in contenders {
            in_time(path, contender).await.expect("no panic");
        }
        (self.proxy.counters().since(&before), sequences)
    }

    async fn wait_for(&self, path: &str, contenders: usize) {
        eventually("all have come", || async {
            children(&self.administrator, path).await.len() == contenders
        })
        .await;
    }
}

/// The recipe that a path is for.
fn subject_of(path: &str) -> Subject {
    let is_there = |(recipe, _): &&Subject| path.split('/').nth(1) == Some(recipe.name);
    *RECIPES.iter().find(is_there).expect("one of them")
}

/// How many requests of these kinds there were for each contender.
fn per_grant(counters: &Counters, operations: &[Operation]) -> f64 {
    let requests = operations
        .iter()
        .map(|operation| counters.of(*operation).requests);
    requests.sum::<u64>() as f64 / (CONTENDERS + 1) as f64
}

/// All that recipes send for a grant, without what the end of the count adds.
const ORDINARY: &[Operation] = &[
    Operation::Create,
    Operation::GetChildren,
    Operation::GetData,
    Operation::Exists,
    Operation::RemoveWatches,
    Operation::Delete,
    Operation::Multi,
];

#[tokio::test(flavor = "multi_thread")]
async fn first_come_first_served_and_no_more_than_may_across_the_end_of_the_create_counter() {
    let installation = Installation::find().expect("there is a server");
    let missing = (!installation.has_compiler()).then(|| NO_COMPILER.to_owned());
    if !can_run("the end of the create counter", missing.as_slice()) {
        return;
    }
    let at_the_end = |name: &str, come: Come| format!("/{name}/{come:?}");
    let paths: Vec<String> = RECIPES
        .iter()
        .flat_map(|(recipe, _)| {
            [Come::InTurn, Come::AtOnce].map(|come| at_the_end(recipe.name, come))
        })
        .collect();
    let place = Place::new(&paths).await;
    for (TestedRecipe { name, .. }, _) in RECIPES {
        let (before, _) = place
            .contend(&format!("/{name}/before"), Come::AtOnce)
            .await;
        let ordinary = per_grant(&before, ORDINARY);
        assert_eq!(before.of(Operation::MultiRead).requests, 0, "{name}");
        // One of them is the holder's guarded write.
        println!("{name}: {ordinary:.2} requests for each grant before the end of the count");
        for come in [Come::InTurn, Come::AtOnce] {
            let path = at_the_end(name, come);
            for when in ["across", "beyond"] {
                let (counters, sequences) = place.contend(&path, come).await;
                let reads = per_grant(&counters, &[Operation::MultiRead]);
                let rest = per_grant(&counters, ORDINARY);
                let lists = per_grant(&counters, &[Operation::GetChildren]);
                println!(
                    "{name}, {when} the end, {come:?}: {rest:.2}, and {reads:.2} for the order"
                );
                let below: Range<i32> = match when {
                    "across" => NEXT..i32::MAX,
                    _ => 0..0,
                };
                let ends = sequences.len() - below.len();
                assert_eq!(
                    sequences[..below.len()],
                    below.collect::<Vec<_>>(),
                    "{path}"
                );
                assert!(ends > 1 && reads > 0.0, "{path}: {sequences:?}");
                // As `Contender` says: one more for each list that shows several at the end.
                assert!(reads <= lists, "{path}: {counters:?}");
                // The rest is the same, except that other waiters may be woken together.
                assert!(rest <= ordinary * 1.25, "{path}: {counters:?}");
            }
        }
        for path in paths.iter().filter(|path| subject_of(path).0.name == *name) {
            assert!(children(&place.administrator, path).await.is_empty());
        }
    }
    eventually("no watch is left", || async {
        let monitor = place.server.monitor().await;
        monitor.expect("the server answers").watches == 0
    })
    .await;
}
