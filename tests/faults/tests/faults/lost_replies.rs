//! Requests and replies that are lost on the way.

use zookeeper_recipes_testkit::proxy::{Occasion, Strikes};

use crate::support::*;

on_both_servers!(embedded at night:
    first_comer_holds_with_one_znode_whatever_is_lost_on_the_way_in,
    waiter_gets_its_turn_and_not_sooner_whatever_is_lost_on_the_way_in,
    waiter_keeps_its_place_whatever_is_lost_when_it_looks_again,
    release_is_done_once_whatever_is_lost_and_takes_nothing_from_the_next_holder,
);

/// Loses a request, or its reply or its outcome.
type Loss = fn(Occasion) -> Fault;

const LOSSES: &[(&str, Loss)] = &[
    ("request-lost", Occasion::request_lost),
    ("reply-lost", Occasion::reply_lost),
    ("request-reset", |it| it.at_request(Breakage::Reset)),
    ("reply-reset", |it| it.at_reply(Breakage::Reset)),
    ("reply-half-closed", |it| {
        it.at_reply(Breakage::HalfClose(Direction::ToClient))
    }),
    ("applied-and-answered-with-a-timeout", |it| it.answered(-7)),
    ("applied-and-answered-with-a-lost-connection", |it| {
        it.answered(-4)
    }),
    ("applied-and-answered-with-a-system-error", |it| {
        it.answered(-1)
    }),
    ("applied-and-answered-with-an-inconsistency", |it| {
        it.answered(-2)
    }),
    ("applied-and-answered-with-an-unknown-code", |it| {
        it.answered(-999)
    }),
    ("request-lost-three-times", Occasion::request_lost),
];

/// What all kinds share.
struct Shared {
    server: TestServer,
    administrator: Client,
    rival: Session,
}

/// One kind, with a way to the server of its own, so that the kinds can meet their faults side by
/// side.
struct Place<'a> {
    shared: &'a Shared,
    kind: Kind,
    proxy: Proxy,
    victim: Session,
}

/// One contender that meets the faults and one that does not, at the same recipe.
struct Scenario<'a> {
    place: &'a Place<'a>,
    name: String,
    victim: Box<dyn Recipe>,
    rival: Box<dyn Recipe>,
}

impl Shared {
    async fn new(server: TestServer) -> Shared {
        Shared {
            administrator: administrator(&server).await,
            rival: session(&server, LONG).await,
            server,
        }
    }

    /// Has all kinds do the same, and sees that none has left a watch.
    async fn each_kind(&self, work: impl AsyncFn(&Place<'_>)) {
        let kinds = KINDS.iter().map(async |&kind| {
            let proxy = proxy(&self.server).await;
            let place = Place {
                shared: self,
                kind,
                victim: session(&proxy, LONG).await,
                proxy,
            };
            work(&place).await;
        });
        join_all(kinds).await;
        assert_no_watch_left(&self.server).await;
    }
}

impl Place<'_> {
    /// The directory is there when this returns, so that creates are those of contenders.
    async fn scenario(&self, name: String) -> Scenario<'_> {
        // This names the kind in every message.
        let name = format!("{}-{name}", self.kind.name);
        let scenario = Scenario {
            place: self,
            victim: self.kind.on(&self.victim, &name),
            rival: self.kind.rival_on(&self.shared.rival, &name),
            name,
        };
        let hold = in_time("the first", scenario.rival.acquire())
            .await
            .expect("nobody is before it");
        hold.release().await.expect("it is released");
        scenario
    }

    /// The requests of the first contender.
    fn operations(&self) -> &'static [Operation] {
        match self.kind.recipe.queues {
            true => &[Operation::Create, Operation::GetChildren],
            false => &[Operation::Create],
        }
    }

    /// The further requests of a waiter.
    fn operations_of_waiter(&self) -> &'static [Operation] {
        match self.kind.strategy() {
            WaitStrategy::Predecessor => &[Operation::GetData],
            _ => &[],
        }
    }
}

impl Scenario<'_> {
    /// Makes a fault strike the victim, and twice more if the name says so.
    fn strike(&self, operation: Operation, loss: Loss) -> Vec<Strikes> {
        let directory = self.place.kind.directory(&self.name);
        let times = if self.name.ends_with("three-times") {
            3
        } else {
            1
        };
        let occasion = Fault::on(operation).under(directory);
        (0..times)
            .map(|_| self.place.proxy.fault(loss(occasion.clone())))
            .collect()
    }

    async fn all_have_struck(&self, strikes: &[Strikes]) {
        let all = strikes.iter().map(Strikes::first);
        in_time(&self.name, join_all(all)).await;
    }

    async fn queue_length(&self, length: usize) {
        queue_length(self.place.kind, &*self.rival, length).await;
    }

    /// Waits until the victim waits for the znode of this path to go.
    async fn waits_in_earnest(&self, path: &str) {
        let Place {
            shared,
            kind,
            proxy,
            victim,
        } = self.place;
        waits_in_earnest(*kind, &shared.server, (victim, proxy), path).await;
    }

    /// The waiter holds once the first one has released, and not sooner.
    async fn waiter_is_next(&self, first: Hold, waiter: Acquiring) {
        self.waits_in_earnest(first.node_path()).await;
        assert!(!waiter.is_finished(), "{}: held twice", self.name);
        first.release().await.expect("it is released");
        let hold = acquired(&self.name, waiter).await;
        self.queue_length(1).await;
        hold.release().await.expect("it is released");
    }

    async fn assert_all_well(&self, strikes: &[Strikes], acquisitions: i32) {
        for strikes in strikes {
            assert_eq!(strikes.count(), 1, "{}: the fault has struck", self.name);
        }
        let Place { shared, kind, .. } = self.place;
        assert_no_contender_left(&shared.administrator, *kind, &self.name).await;
        let creates = creates(&shared.administrator, *kind, &self.name).await;
        assert_eq!(
            creates, acquisitions,
            "{}: one znode for each acquisition, never two",
            self.name
        );
    }
}

async fn first_comer_holds_with_one_znode_whatever_is_lost_on_the_way_in(server: TestServer) {
    let first_comer = async |place: &Place<'_>| {
        for &operation in place.operations() {
            for (loss_name, loss) in LOSSES {
                let scenario = place
                    .scenario(format!("first-{operation}-{loss_name}"))
                    .await;
                let strikes = scenario.strike(operation, *loss);
                let hold = in_time(&scenario.name, scenario.victim.acquire())
                    .await
                    .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
                assert!(hold.is_held(), "{}", scenario.name);
                scenario.queue_length(1).await;
                let second = scenario.rival.try_acquire().await.expect("an answer");
                assert!(second.is_none(), "{}: held twice", scenario.name);
                hold.release().await.expect("it is released");
                scenario.assert_all_well(&strikes, 2).await;
            }
        }
    };
    Shared::new(server).await.each_kind(first_comer).await;
}

async fn waiter_gets_its_turn_and_not_sooner_whatever_is_lost_on_the_way_in(server: TestServer) {
    let waiter = async |place: &Place<'_>| {
        let operations = place.operations().iter();
        for &operation in operations.chain(place.operations_of_waiter()) {
            for (loss_name, loss) in LOSSES {
                let scenario = place
                    .scenario(format!("second-{operation}-{loss_name}"))
                    .await;
                let first = scenario.rival.acquire().await.expect("nobody is before it");
                let strikes = scenario.strike(operation, *loss);
                let waiter = acquire(place.kind.on(&place.victim, &scenario.name));
                scenario.queue_length(2).await;
                if place.kind.recipe.queues {
                    // Which creates again only when the first one has gone.
                    scenario.all_have_struck(&strikes).await;
                }
                scenario.waiter_is_next(first, waiter).await;
                scenario.assert_all_well(&strikes, 3).await;
            }
        }
    };
    Shared::new(server).await.each_kind(waiter).await;
}

async fn waiter_keeps_its_place_whatever_is_lost_when_it_looks_again(server: TestServer) {
    let waiter = async |place: &Place<'_>| {
        if !place.kind.recipe.queues {
            // This recipe has no queue to look at.
            return;
        }
        for (loss_name, loss) in LOSSES {
            let scenario = place.scenario(format!("third-{loss_name}")).await;
            let first = scenario.rival.acquire().await.expect("nobody is before it");
            let second = acquire(place.kind.rival_on(&place.shared.rival, &scenario.name));
            scenario.queue_length(2).await;
            let contenders = scenario.rival.contenders().await.expect("an answer");
            let path = format!("{}/{}", place.kind.path(&scenario.name), contenders[1].name);
            let waiter = acquire(place.kind.on(&place.victim, &scenario.name));
            scenario.queue_length(3).await;
            scenario.waits_in_earnest(&path).await;

            // A waiter that gives up grants nothing, so the waiter behind it lists the queue.
            let strikes = scenario.strike(Operation::GetChildren, *loss);
            second.abort();
            scenario.queue_length(2).await;
            scenario.all_have_struck(&strikes).await;
            scenario.waiter_is_next(first, waiter).await;
            scenario.assert_all_well(&strikes, 4).await;
        }
    };
    Shared::new(server).await.each_kind(waiter).await;
}

async fn release_is_done_once_whatever_is_lost_and_takes_nothing_from_the_next_holder(
    server: TestServer,
) {
    let release = async |place: &Place<'_>| {
        for (loss_name, loss) in LOSSES {
            let scenario = place.scenario(format!("release-{loss_name}")).await;
            let hold = in_time(&scenario.name, scenario.victim.acquire())
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            let next = acquire(place.kind.rival_on(&place.shared.rival, &scenario.name));
            scenario.queue_length(2).await;
            // Released by a deletion, or by a transaction that says so to the next one.
            let deletions = scenario.strike(Operation::Delete, *loss);
            let transactions = scenario.strike(Operation::Multi, *loss);
            in_time(&scenario.name, hold.release())
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", scenario.name));
            place.proxy.clear_faults();
            let struck = deletions.iter().chain(&transactions).map(Strikes::count);
            let struck = struck.sum::<u64>() as usize;
            assert!(
                struck >= deletions.len(),
                "{}: struck {struck}",
                scenario.name
            );
            let next = acquired(&scenario.name, next).await;
            // What the victim still has under way has been answered when this has.
            scenario.victim.contenders().await.expect("an answer");
            assert!(next.is_held(), "{}: {:?}", scenario.name, next.state());
            scenario.queue_length(1).await;
            next.release().await.expect("it is released");
            scenario.assert_all_well(&[], 3).await;
        }
    };
    Shared::new(server).await.each_kind(release).await;
}
