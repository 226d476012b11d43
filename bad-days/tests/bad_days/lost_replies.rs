//! Requests and replies that are lost on the way.

use zookeeper_recipes_core::{Recipe, Session};
use zookeeper_recipes_testkit::Server;
use zookeeper_recipes_testkit::proxy::{Breakage, Direction, Fault, Operation, Proxy, Strikes};

use crate::kinds::{KINDS, Kind};
use crate::support::{
    LONG, acquire, acquired, administrator, assert_nothing_left, creates, in_time, proxy,
    queue_length, server, session,
};

/// Loses a request, or its reply, of an operation on what begins with a path.
type Loss = fn(Operation, &str) -> Fault;

const LOSSES: &[(&str, Loss)] = &[
    ("request-lost", |operation, under| {
        Fault::on(operation).under(under).request_lost()
    }),
    ("reply-lost", |operation, under| {
        Fault::on(operation).under(under).reply_lost()
    }),
    ("request-reset", |operation, under| {
        Fault::on(operation)
            .under(under)
            .at_request(Breakage::Reset)
    }),
    ("reply-reset", |operation, under| {
        Fault::on(operation).under(under).at_reply(Breakage::Reset)
    }),
    ("reply-half-closed", |operation, under| {
        let breakage = Breakage::HalfClose(Direction::ToClient);
        Fault::on(operation).under(under).at_reply(breakage)
    }),
    ("request-lost-three-times", |operation, under| {
        Fault::on(operation).under(under).request_lost()
    }),
];

/// One who meets the faults and one who does not, at the same recipe.
struct Day {
    kind: Kind,
    name: String,
    victim: Box<dyn Recipe>,
    rival: Box<dyn Recipe>,
}

impl Day {
    /// The directory is there when this returns, so that creates are those of contenders.
    async fn begin(kind: Kind, name: String, victim: &Session, rival: &Session) -> Day {
        let day = Day {
            kind,
            victim: kind.on(victim, &name),
            rival: kind.on(rival, &name),
            name,
        };
        let hold = in_time("the first", day.rival.acquire())
            .await
            .expect("nobody is before it");
        hold.release().await.expect("it is released");
        day
    }
}

struct Place {
    server: Server,
    proxy: Proxy,
    victim: Session,
    rival: Session,
    administrator: zookeeper_client::Client,
}

impl Place {
    async fn new() -> Place {
        let server = server().await;
        let proxy = proxy(&server).await;
        Place {
            victim: session(&proxy.connect_string(), LONG).await,
            rival: session(&server.connect_string(), LONG).await,
            administrator: administrator(&server).await,
            proxy,
            server,
        }
    }

    /// Makes a fault strike the victim, and once more or twice where the name says so.
    fn strike(&self, day: &Day, operation: Operation, loss: Loss) -> Vec<Strikes> {
        let directory = day.kind.directory(&day.name);
        let times = if day.name.ends_with("three-times") {
            3
        } else {
            1
        };
        (0..times)
            .map(|_| self.proxy.fault(loss(operation, &directory)))
            .collect()
    }

    async fn assert_all_well(&self, day: &Day, strikes: &[Strikes], acquisitions: i32) {
        for strikes in strikes {
            assert_eq!(strikes.count(), 1, "{}: the fault has struck", day.name);
        }
        assert_nothing_left(&self.server, &self.administrator, day.kind, &day.name).await;
        let creates = creates(&self.administrator, day.kind, &day.name).await;
        assert_eq!(
            creates, acquisitions,
            "{}: one znode for each acquisition, never two",
            day.name
        );
    }
}

fn operations(kind: Kind) -> &'static [Operation] {
    match kind.single_node {
        true => &[Operation::Create],
        false => &[Operation::Create, Operation::GetChildren],
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_comer_holds_with_one_znode_whatever_is_lost_on_the_way_in() {
    let place = Place::new().await;
    for &kind in KINDS {
        for &operation in operations(kind) {
            for (loss_name, loss) in LOSSES {
                let name = format!("first-{operation}-{loss_name}");
                let day = Day::begin(kind, name, &place.victim, &place.rival).await;
                let strikes = place.strike(&day, operation, *loss);
                let hold = in_time(&day.name, day.victim.acquire())
                    .await
                    .unwrap_or_else(|error| panic!("{}: {error}", day.name));
                assert!(hold.is_held(), "{}", day.name);
                queue_length(kind, &*day.rival, 1).await;
                let second = day.rival.try_acquire().await.expect("an answer");
                assert!(second.is_none(), "{}: held twice", day.name);
                hold.release().await.expect("it is released");
                place.assert_all_well(&day, &strikes, 2).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn waiter_gets_its_turn_and_not_sooner_whatever_is_lost_on_the_way_in() {
    let place = Place::new().await;
    for &kind in KINDS {
        for &operation in operations(kind).iter().chain(&[Operation::GetData]) {
            for (loss_name, loss) in LOSSES {
                let name = format!("second-{operation}-{loss_name}");
                let day = Day::begin(kind, name, &place.victim, &place.rival).await;
                let first = day.rival.acquire().await.expect("nobody is before it");
                let strikes = place.strike(&day, operation, *loss);
                let waiter = acquire(kind.on(&place.victim, &day.name));
                queue_length(kind, &*day.rival, 2).await;
                // Set only once it has been through the fault: then it waits in earnest.
                crate::support::eventually("the victim watches", || async {
                    let watches = place.server.watches().await.expect("an answer");
                    watches.contains_key(first.path())
                })
                .await;
                assert!(!waiter.is_finished(), "{}: held twice", day.name);
                first.release().await.expect("it is released");
                let hold = acquired(&day.name, waiter).await;
                queue_length(kind, &*day.rival, 1).await;
                hold.release().await.expect("it is released");
                place.assert_all_well(&day, &strikes, 3).await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn release_is_done_once_whatever_is_lost_and_takes_nothing_from_the_next_holder() {
    let place = Place::new().await;
    for &kind in KINDS {
        for (loss_name, loss) in LOSSES {
            let name = format!("release-{loss_name}");
            let day = Day::begin(kind, name, &place.victim, &place.rival).await;
            let hold = in_time(&day.name, day.victim.acquire())
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", day.name));
            let next = acquire(kind.on(&place.rival, &day.name));
            queue_length(kind, &*day.rival, 2).await;
            let strikes = place.strike(&day, Operation::Delete, *loss);
            in_time(&day.name, hold.release())
                .await
                .unwrap_or_else(|error| panic!("{}: {error}", day.name));
            let next = acquired(&day.name, next).await;
            // What the victim still has under way has been answered when this has.
            day.victim.contenders().await.expect("an answer");
            assert!(next.is_held(), "{}: {:?}", day.name, next.state());
            queue_length(kind, &*day.rival, 1).await;
            next.release().await.expect("it is released");
            place.assert_all_well(&day, &strikes, 3).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parents_are_made_and_the_recipe_held_whichever_create_is_lost() {
    let place = Place::new().await;
    for &kind in KINDS {
        for applied in [false, true] {
            // The contender's znode, its missing parents, and the contender's znode again.
            let _ = Day::begin(kind, "parents".to_owned(), &place.victim, &place.rival).await;
            let before = place.proxy.counters();
            let undisturbed = kind.on(&place.victim, &format!("parents-0/{applied}"));
            let hold = undisturbed.acquire().await.expect("it is free");
            hold.release().await.expect("it is released");
            let creates_sent = place.proxy.counters().since(&before).of(Operation::Create);
            assert!(creates_sent.requests >= 3, "{creates_sent:?}");
            for nth in 1..=creates_sent.requests {
                let name = format!("parents-{nth}/{applied}");
                let occasion = Fault::on(Operation::Create).nth(nth);
                let strikes = place.proxy.fault(match applied {
                    true => occasion.reply_lost(),
                    false => occasion.request_lost(),
                });
                let recipe = kind.on(&place.victim, &name);
                let hold = in_time(&name, recipe.acquire())
                    .await
                    .unwrap_or_else(|error| panic!("{name}: {error}"));
                hold.release().await.expect("it is released");
                assert_nothing_left(&place.server, &place.administrator, kind, &name).await;
                let creates = creates(&place.administrator, kind, &name).await;
                assert_eq!(creates, 1, "{name}");
                assert_eq!(strikes.count(), 1, "{name}");
            }
        }
    }
}
