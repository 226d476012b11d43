//! Holders that are killed (SIGKILL): the next one, of another language, holds soon after the server
//! has ended the session.

use std::time::{Duration, Instant};

use zookeeper_recipes_core::Recipe;
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_interop::Referee;
use zookeeper_recipes_lock::ExclusiveLock;
use zookeeper_recipes_suite::{LONG, TestServer, on_both_servers, queue_length, session};

use crate::process::{Contenders, Language, PATH, PATIENCE, Task, until};
use crate::support::present;

on_both_servers!(embedded at night:
    killed_holder_is_followed_by_the_next_library,
    killed_leader_of_curator_is_followed_by_ours_and_ours_by_curator,
);

const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// How long the event of the deletion may take on a busy machine. A waiter that misses it waits for
/// any length of time.
const LATE: Duration = Duration::from_secs(10);

/// Each of these holds, and is killed while the next one waits. Those that the machine lacks are left
/// out.
async fn kill_one_after_the_other(
    server: TestServer,
    suite: &str,
    languages: &[Language],
    mode: &str,
) {
    let languages: Vec<_> = languages.iter().map(|it| (*it, ())).collect();
    let present = present(suite, &languages);
    let mut languages: Vec<Language> = present.iter().map(|(language, _)| *language).collect();
    languages.dedup();
    if languages.is_empty() {
        return;
    }
    let observer = session(&server, LONG).await;
    let recipe: &dyn Recipe = match mode {
        "latch" => &LeaderElection::new(&observer, PATH, "observer").expect("a good path"),
        _ => &ExclusiveLock::new(&observer, PATH).expect("a good path"),
    };
    let referee = Referee::listen(1).expect("a free port");
    let task = Task {
        session_timeout: SESSION_TIMEOUT,
        ..Task::new(&server, 1, PATIENCE)
    };
    let start = |language| Contenders::start(language, &task, &referee, &[(mode, 1)]);
    let inside = |language: Language| {
        until("the next one holds", &referee, move |report| {
            let mut inside = report.inside.iter();
            inside.any(|name| name.starts_with(language.prefix()))
        })
    };

    let mut holder = start(languages[0]);
    inside(languages[0]).await;
    for pair in languages.windows(2) {
        let (current, next) = (pair[0], pair[1]);
        let waiter = start(next);
        queue_length(recipe, 2).await;
        let queue = recipe.contenders().await.expect("the queue can be read");
        let name = |language: Language| format!("{}{mode}-0", language.prefix()).into_bytes();
        assert_eq!(
            [&queue[0].data, &queue[1].data],
            [&name(current), &name(next)]
        );
        holder.kill().await;
        queue_length(recipe, 1).await;
        let deleted = Instant::now();
        let report = inside(next).await;
        let took = deleted.elapsed();
        assert!(took <= LATE, "{next:?} held after {took:?}");
        assert_eq!(report.violations, [""; 0]);
        holder = waiter;
    }
}

async fn killed_holder_is_followed_by_the_next_library(server: TestServer) {
    use Language::{Curator, Kazoo, Ours};
    let languages = [Curator, Ours, Kazoo, Ours, Curator];
    kill_one_after_the_other(server, "killed holders", &languages, "lock").await;
}

async fn killed_leader_of_curator_is_followed_by_ours_and_ours_by_curator(server: TestServer) {
    use Language::{Curator, Ours};
    let languages = [Curator, Ours, Curator];
    kill_one_after_the_other(server, "killed leaders", &languages, "latch").await;
}
