//! Holds that go on as another kind, on a simulated ensemble.

use std::borrow::Cow;

use zookeeper_recipes_core::{
    Acl, AuthId, ConnectOptions, Contender, Error, Permission, Queue, Recipe, Rule, Session,
    Verdict,
};
use zookeeper_recipes_testkit::simulation::{
    Fault, FaultKind, RequestKind, Simulation, SimulationOptions,
};

#[derive(Debug)]
struct First;

impl Rule for First {
    fn label(&self) -> Cow<'_, str> {
        "old-".into()
    }

    fn decide(&self, _: &[Contender], me: usize) -> Verdict {
        match me {
            0 => Verdict::Hold,
            _ => Verdict::wait_on(me - 1),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_exchange_is_found_done_however_many_answers_are_lost() {
    for lost in [RequestKind::Sync, RequestKind::GetEach] {
        let simulation = Simulation::new(SimulationOptions::default());
        let session = Session::open(simulation.ensemble("a"), ConnectOptions::new());
        let session = session.await.expect("a session opens");
        let queue = Queue::new(&session, "/queue", First).expect("a good path");
        let hold = queue.acquire().await.expect("free");
        let faults = simulation.faults();
        faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Transact));
        faults.inject(Fault::new(FaultKind::ReplyLost).on(lost).under("/queue"));

        let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
        let hold = hold.exchange("old-", "new-", b"", &everyone).await;
        assert_eq!(faults.waiting(), 0, "all that was to be lost is");
        let hold = hold.expect("exchanged");
        assert!(hold.is_held());
        let standing = simulation.administrator().tree();
        let contenders = standing
            .iter()
            .filter(|znode| znode.stat.ephemeral_owner != 0);
        let paths: Vec<&str> = contenders.map(|znode| znode.path.as_str()).collect();
        assert_eq!(paths, [hold.path()]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_exchange_where_even_the_directory_has_gone_says_that_the_hold_is_lost() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = Session::open(simulation.ensemble("a"), ConnectOptions::new());
    let session = session.await.expect("a session opens");
    let queue = Queue::new(&session, "/queue", First).expect("a good path");
    let hold = queue.acquire().await.expect("free");
    let administrator = simulation.administrator();
    administrator.delete(hold.path()).expect("it stands");
    administrator.delete("/queue").expect("it is empty");

    let everyone = [Acl::new(Permission::ALL, AuthId::anyone())];
    let failed = hold.exchange("old-", "new-", b"", &everyone).await;
    assert!(matches!(failed, Err(Error::Lost { .. })), "{failed:?}");
}
