//! The end of the create counter: the directory's numbers are used up while contenders queue.

use std::collections::BTreeMap;

use zookeeper_recipes_core::FencingToken;
use zookeeper_recipes_interop::can_run;
use zookeeper_recipes_suite::{
    ELECTION, Judge, LOCK, RWLOCK, RecipeOptions, SEMAPHORE, TestedRecipe, WRITER,
};
use zookeeper_recipes_testkit::Installation;

use crate::support::*;

/// The number of the first contender; seven more get one of their own.
const NEXT: i32 = 2_147_483_640;
const CONTENDERS: usize = 50;
const SESSIONS: usize = 10;
const PERMITS: u64 = 4;

const NO_COMPILER: &str = "no Java compiler: `cargo xtask install` installs it on Debian and its \
    kin (default-jdk-headless); elsewhere install a JDK and set JAVA_HOME to its directory";

/// A recipe, and what its contenders weigh by their numbers.
type Subject = (TestedRecipe, fn(usize) -> u64);

const SUBJECTS: [Subject; 4] = [
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

fn path(subject: Subject) -> String {
    format!("/{}/queue", subject.0.name)
}

/// The contender of this number, which its znode says.
fn contender(
    (recipe, weight): Subject,
    path: &str,
    session: &Session,
    number: usize,
) -> Box<dyn Recipe> {
    let options = RecipeOptions::new().data(number.to_string());
    let made = recipe.make(session, path, weight(number), options);
    made.expect("a good path")
}

struct Place {
    server: Server,
    administrator: Client,
    proxy: Proxy,
    sessions: Vec<Session>,
}

impl Place {
    /// A server on which the counters of all directories are about to end.
    async fn new() -> Place {
        let options = ServerOptions::new()
            .tick_time(TICK)
            // An empty directory that were removed would begin anew.
            .container_check_interval(60 * PATIENCE);
        let mut server = Server::start(options).await.expect("a server starts");
        let before = session(&server, LONG).await;
        for subject in SUBJECTS {
            let hold = contender(subject, &path(subject), &before, 0)
                .acquire()
                .await;
            let released = hold.expect("nobody is there").release().await;
            released.expect("it is released");
        }
        before.close().await;
        server.stop().await.expect("it stops");
        let paths = SUBJECTS.map(path);
        let counted = paths.each_ref().map(String::as_str);
        let counted = server.set_create_counter(&counted, NEXT).await;
        counted.expect("it is set");
        server.restart().await.expect("it starts again");
        let proxy = proxy(&server).await;
        Place {
            administrator: administrator(&server).await,
            sessions: join_all((0..SESSIONS).map(|_| session(&proxy, LONG))).await,
            proxy,
            server,
        }
    }

    /// The contenders in the order of their `czxid`s: each with what it says and the number that the
    /// server gave it.
    async fn queue(&self, path: &str) -> BTreeMap<FencingToken, (usize, i32)> {
        let mut queue = BTreeMap::new();
        for name in children(&self.administrator, path).await {
            let read = self.administrator.get_data(&format!("{path}/{name}")).await;
            let (data, stat) = read.expect("nobody leaves yet");
            let number = String::from_utf8_lossy(&data).parse().expect("a number");
            // These are ten characters, and one more if a minus sign comes before ten digits.
            let at = name.len() - 10;
            let minus = name[..at].ends_with("--") || name[..at].ends_with("_-");
            let sequence = name[at - usize::from(minus)..].parse().expect("a number");
            queue.insert(FencingToken::from(stat.czxid), (number, sequence));
        }
        queue
    }

    /// Has all of them contend at once, and judges each grant. The call returns the numbers that the
    /// server gave.
    async fn contend(&self, subject: Subject, path: &str) -> Vec<i32> {
        let (recipe, weight) = subject;
        let judge = Arc::new(Judge::of_order(recipe));
        let turn = async |number: usize, hold: Hold| {
            let view = hold.view();
            judge
                .turn(number, weight(number), &view, Duration::ZERO)
                .await;
            hold.release().await.expect("it is released");
        };
        let first = contender(subject, path, &self.sessions[0], 0);
        let hold = first.acquire().await.expect("it is free");
        let (all_here, go) = watch::channel(());
        let contenders = (1..=CONTENDERS).map(|number| {
            let recipe = contender(subject, path, &self.sessions[number % SESSIONS], number);
            let (turn, mut go) = (&turn, go.clone());
            async move {
                let hold = in_time("its turn", recipe.acquire()).await;
                // A contender that shares with the first one holds before the others have come.
                go.changed().await.expect("all have come");
                turn(number, hold.expect("it is acquired")).await;
            }
        });
        let judged = async {
            eventually("all have come", async || {
                children(&self.administrator, path).await.len() == CONTENDERS + 1
            })
            .await;
            let queue = self.queue(path).await;
            for (token, (number, _)) in &queue {
                judge.came(*token, weight(*number));
            }
            let seen = first.contenders().await.expect("an answer");
            let seen = seen.iter().map(|entry| &entry.fencing_token);
            assert!(seen.eq(queue.keys()), "{path}: the queue is in order");
            all_here.send_replace(());
            turn(0, hold).await;
            queue.into_values().map(|(_, sequence)| sequence).collect()
        };
        let (sequences, _) = tokio::join!(judged, join_all(contenders));
        assert_eq!(judge.grants(), CONTENDERS + 1, "{path}");
        sequences
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_come_first_served_and_no_more_than_may_across_the_end_of_the_create_counter() {
    let installation = Installation::find().expect("there is a server");
    let missing = (!installation.has_compiler()).then(|| NO_COMPILER.to_owned());
    if !can_run("the end of the create counter", missing.as_slice()) {
        return;
    }
    let place = Place::new().await;
    for subject in SUBJECTS {
        let path = path(subject);
        let fresh = format!("{path}-fresh");
        for (path, below) in [
            (&fresh, 0..CONTENDERS as i32 + 1),
            (&path, NEXT..i32::MAX),
            (&path, 0..0),
        ] {
            let before = place.proxy.counters();
            let sequences = place.contend(subject, path).await;
            let ordinary = below.len();
            assert!(sequences.iter().copied().take(ordinary).eq(below));
            assert!(
                sequences[ordinary..]
                    .iter()
                    .all(|it| *it < 0 || *it == i32::MAX)
            );
            // Each list that shows several contenders at the end costs one request more.
            let sent = place.proxy.counters().since(&before);
            let [reads, lists] = [Operation::MultiRead, Operation::GetChildren]
                .map(|operation| sent.of(operation).requests);
            let is_fresh = *path == fresh;
            // The look at the queue is one.
            assert_eq!(reads == 1, is_fresh, "{path}: {sent:?}");
            let most = 3 * (CONTENDERS as u64 + 1);
            assert!(reads <= lists && lists <= most, "{path}: {sent:?}");
        }
        assert!(children(&place.administrator, &path).await.is_empty());
    }
    assert_no_watch_left(&place.server).await;
}
