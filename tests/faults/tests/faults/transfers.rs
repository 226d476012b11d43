//! Leaders that are transferred under load, with the named candidate cut off in the middle.

use std::sync::{Arc, Mutex};

use futures_util::future::{join_all, pending};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use zookeeper_client::Client;
use zookeeper_recipes_core::Error;
use zookeeper_recipes_election::{LeaderElection, RunError, Term};
use zookeeper_recipes_suite::{
    LONG, SHORT, TestServer, administrator, assert_directory_empty, create, eventually, in_time,
    on_both_servers, proxy, session,
};
use zookeeper_recipes_testkit::history::History;
use zookeeper_recipes_testkit::proxy::Proxy;

on_both_servers!(apache at night:
    leaders_are_transferred_under_load_and_never_two_of_them_work);

const PATH: &str = "/transferred";
const CANDIDATES: usize = 5;
const TRANSFERS: usize = 12;

/// The leaders that work, and the violations.
struct Referee {
    history: History,
    working: Vec<String>,
    violations: Vec<String>,
}

type SharedReferee = Arc<Mutex<Referee>>;

/// The work of a leader, which ends when this is dropped.
struct Working(SharedReferee, String, u64);

impl Working {
    fn begin(referee: &SharedReferee, term: &Term) -> Working {
        let id = term.id().to_owned();
        let mut state = referee.lock().expect("no panic");
        let token = term.fencing_token();
        let (number, found) = state.history.granted_elsewhere(&id, 1, token, PATH);
        state
            .violations
            .extend(found.iter().map(ToString::to_string));
        state.working.push(id.clone());
        Working(referee.clone(), id, number)
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.0.lock().expect("no panic");
        state.history.letting_go(self.2);
        state.working.retain(|id| *id != self.1);
    }
}

struct Candidate {
    id: String,
    proxy: Proxy,
    running: JoinHandle<Result<(), RunError<Error>>>,
}

impl Candidate {
    async fn start(
        server: &TestServer,
        number: usize,
        referee: &SharedReferee,
        mut ended: watch::Receiver<bool>,
    ) -> Candidate {
        let proxy = proxy(server).await;
        let session = session(&proxy, SHORT).await;
        let id = format!("candidate {number}");
        let election = LeaderElection::new(&session, PATH, &id).expect("a good path");
        let referee = referee.clone();
        let running = tokio::spawn(async move {
            let shutdown = async {
                let _ = ended.wait_for(|ended| *ended).await;
            };
            let work = async |term: Term| {
                let _working = Working::begin(&referee, &term);
                pending().await
            };
            election.run(shutdown, work).await
        });
        Candidate { id, proxy, running }
    }
}

/// Names a candidate that campaigns, or will soon.
async fn transfer(operator: &LeaderElection, id: &str) {
    let what = format!("{id} is named");
    eventually(&what, async || match operator.transfer_to(id).await {
        Ok(()) => true,
        // It has left the queue, and enters it again.
        Err(Error::InvalidInput(_)) => false,
        Err(error) => panic!("{error}"),
    })
    .await;
}

async fn leader(referee: &SharedReferee, what: &str, is_so: impl Fn(&str) -> bool) {
    eventually(what, async || {
        let state = referee.lock().expect("no panic");
        assert_eq!(state.violations, [""; 0]);
        matches!(state.working.as_slice(), [id] if is_so(id))
    })
    .await;
}

/// Creates and deletes, until it is aborted.
async fn load(client: Client, number: usize) {
    loop {
        let path = format!("/load-{number}");
        create(&client, &path).await;
        client.delete(&path, None).await.expect("it is there");
    }
}

async fn leaders_are_transferred_under_load_and_never_two_of_them_work(server: TestServer) {
    let client = administrator(&server).await;
    let loads = (0..4).map(|number| tokio::spawn(load(client.clone(), number)));
    let loads: Vec<JoinHandle<()>> = loads.collect();
    let referee = Arc::new(Mutex::new(Referee {
        history: History::new(1),
        working: Vec::new(),
        violations: Vec::new(),
    }));
    let (end, ended) = watch::channel(false);
    let candidates =
        (0..CANDIDATES).map(|number| Candidate::start(&server, number, &referee, ended.clone()));
    let candidates = join_all(candidates).await;
    let operator = session(&server, LONG).await;
    let operator = LeaderElection::new(&operator, PATH, "").expect("a good path");
    leader(&referee, "somebody leads", |_| true).await;

    for round in 0..TRANSFERS {
        let chosen = &candidates[(round * 2 + 1) % CANDIDATES];
        transfer(&operator, &chosen.id).await;
        if round % 4 == 3 {
            // The chosen candidate freezes before, while or after the others step back.
            chosen.proxy.freeze();
            let what = format!("another than {} leads", chosen.id);
            leader(&referee, &what, |id| id != chosen.id).await;
            chosen.proxy.thaw();
        } else {
            let what = format!("{} leads", chosen.id);
            leader(&referee, &what, |id| id == chosen.id).await;
        }
    }
    for load in loads {
        assert!(!load.is_finished(), "the server answers");
        load.abort();
    }
    end.send_replace(true);
    for candidate in candidates {
        let ended = in_time(&candidate.id, candidate.running).await;
        ended.expect("no panic").expect("it resigned");
    }
    assert_eq!(referee.lock().expect("no panic").violations, [""; 0]);
    assert_directory_empty(&client, PATH).await;
}
