//! A server that answers with every error code it has.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt};
use tokio::time::timeout;
use zookeeper_recipes_core::{ConnectOptions, Error, Session, SessionEnd};
use zookeeper_recipes_suite::{
    KINDS, Kind, LATE, LONG, TICK, TestServer, administrator, create, eventually, in_time,
    on_both_servers, proxy, server_with, session,
};
use zookeeper_recipes_testkit::ServerOptions;
use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};

use crate::support::{acquire, acquired, hold_all, works_with_each_kind};

on_both_servers!(
    every_error_code_ends_in_an_error_or_a_deadline_and_bars_nobody_else,
    write_whose_outcome_the_server_does_not_know_bars_nobody_while_its_session_lives,
    guarded_write_that_was_applied_is_not_said_to_be_refused,
    answer_that_never_changes_is_asked_for_ever_more_rarely,
    handshake_that_is_garbled_is_no_session_and_no_spin,
    authentication_that_is_refused_once_at_a_reconnect_costs_no_hold,
    server_that_ends_the_session_at_each_create_gets_ever_fewer_sessions,
);

/// The codes of `org.apache.zookeeper.KeeperException.Code`, no error, and an unknown code.
const CODES: &[i32] = &[
    0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -12, -13, -14, -100, -101, -102, -103, -108, -110,
    -111, -112, -113, -114, -115, -118, -119, -120, -121, -122, -123, -124, -125, -127, 77,
];

const OPERATIONS: &[Operation] = &[
    Operation::Create,
    Operation::Delete,
    Operation::GetChildren,
    Operation::GetData,
    Operation::Sync,
    Operation::RemoveWatches,
    Operation::Multi,
];

/// How long an attempt may take while the server refuses.
const DEADLINE: Duration = Duration::from_millis(400);

/// How many attempts there are: to acquire, write, release, try, release, look.
const ATTEMPTS: u32 = 6;

/// The codes that say nothing of the outcome, as from a server that does not know the outcome.
const UNKNOWN: &[i32] = &[-1, -2, -3, -4, -5, -7, -999, 77];

/// What one attempt may send in that time. One that tries again at once sends hundreds; one that
/// waits ever longer in between, about a dozen, what it cleans up included.
const REQUESTS: u32 = 12;

/// How long a session lives in which znodes stay that could not be deleted.
const SESSION: Duration = Duration::from_secs(6);

/// The operation code of a write in a transaction.
const SET_DATA: i32 = 5;

/// What a holder writes to.
const STORED: &str = "/stored";

/// The number of contenders that are refused at a time. More would wait for the machine, and the
/// holders might lose their holds meanwhile.
const VICTIMS: usize = 24;

/// One who is refused all operations of a kind with the same code.
struct Victim {
    proxy: Proxy,
    session: Session,
    operation: Operation,
    code: i32,
}

impl Victim {
    async fn new(server: &TestServer, operation: Operation, code: i32) -> Victim {
        let proxy = proxy(server).await;
        let session = session(&proxy, SESSION).await;
        Victim {
            proxy,
            session,
            operation,
            code,
        }
    }

    fn scenario(&self, contended: bool) -> String {
        format!("refused-{}{}-{contended}", self.operation, self.code)
    }

    /// Tries all there is to try with a recipe.
    async fn try_all(&self, kind: Kind, contended: bool) {
        let scenario = self.scenario(contended);
        let recipe = kind.on(&self.session, &scenario);
        let acquiring = recipe.acquire_timeout(DEADLINE);
        if let Ok(hold) = in_time(&scenario, acquiring).await {
            assert!(!contended, "{kind:?} {scenario}: held twice");
            let write = hold.transaction().set_data(STORED, b"");
            let _ = timeout(DEADLINE, write.commit()).await;
            let _ = timeout(DEADLINE, hold.release()).await;
        }
        if let Ok(Ok(Some(hold))) = timeout(DEADLINE, recipe.try_acquire()).await {
            assert!(!contended, "{kind:?} {scenario}: held twice");
            let _ = timeout(DEADLINE, hold.release()).await;
        }
        let _ = timeout(DEADLINE, recipe.contenders()).await;
    }

    /// Has all of `cases` tried at the same time, and then checks that others can hold.
    async fn live_through_refusals(self, rival: &Session, cases: &[(Kind, bool)]) {
        let mut firsts = Vec::new();
        for (kind, _) in cases.iter().filter(|(_, contended)| *contended) {
            let recipe = kind.rival_on(rival, &self.scenario(true));
            firsts.push(recipe.acquire().await.expect("it is free"));
        }
        let fault = Fault::on(self.operation).repeatedly().refused(self.code);
        self.proxy.fault(fault);
        let before = self.proxy.counters();
        let started = Instant::now();
        let attempts = cases
            .iter()
            .map(|(kind, contended)| self.try_all(*kind, *contended));
        join_all(attempts).await;
        let took = started.elapsed();
        let counters = self.proxy.counters().since(&before);
        // On a busy machine attempts last longer, and those given up are cleaned up for longer.
        let attempts = took.div_duration_f64(DEADLINE).max(f64::from(ATTEMPTS));
        let most = cases.len() as f64 * attempts * f64::from(REQUESTS);
        assert!(
            counters.requests() as f64 <= most,
            "{} {}: {counters:?} in {took:?}",
            self.operation,
            self.code
        );
        // What could not be deleted goes with the session at the latest.
        self.proxy.clear_faults();
        let scenarios = [false, true].map(|contended| self.scenario(contended));
        in_time("the close", self.session.close()).await;
        for first in firsts {
            first.release().await.expect("it is released");
        }
        for (kind, contended) in cases {
            let scenario = &scenarios[usize::from(*contended)];
            let hold = acquired(scenario, acquire(kind.rival_on(rival, scenario))).await;
            hold.release().await.expect("it is released");
        }
    }
}

async fn every_error_code_ends_in_an_error_or_a_deadline_and_bars_nobody_else(server: TestServer) {
    create(&administrator(&server).await, STORED).await;
    let rival = session(&server, LONG).await;
    let cases: Vec<(Kind, bool)> = KINDS
        .iter()
        .flat_map(|kind| [(*kind, false), (*kind, true)])
        .collect();
    let all = OPERATIONS
        .iter()
        .flat_map(|operation| CODES.iter().map(|code| (*operation, *code)));
    stream::iter(all)
        .for_each_concurrent(VICTIMS, async |(operation, code)| {
            let victim = Victim::new(&server, operation, code).await;
            victim.live_through_refusals(&rival, &cases).await;
        })
        .await;
}

/// The next one holds while the session of the write lives, so nothing of it is left.
async fn write_whose_outcome_the_server_does_not_know_bars_nobody_while_its_session_lives(
    server: TestServer,
) {
    let rival = session(&server, LONG).await;
    let writes = [Operation::Create, Operation::Delete, Operation::Multi];
    let all = writes
        .iter()
        .flat_map(|operation| UNKNOWN.iter().map(|code| (*operation, *code)));
    let met = stream::iter(all).map(async |(operation, code)| {
        let victim = Victim::new(&server, operation, code).await;
        let kinds = KINDS.iter().map(async |kind| {
            let scenario = format!("applied-{operation}{code}");
            let recipe = kind.on(&victim.session, &scenario);
            let first = recipe.acquire().await.expect("it is free");
            first.release().await.expect("it is released");
            let under = kind.directory(&scenario);
            let applied = Fault::on(operation).under(under).answered(code);
            let strikes = victim.proxy.fault(applied);
            let hold = in_time(&scenario, recipe.acquire()).await;
            let released = hold.expect("it is free").release();
            in_time(&scenario, released).await.expect("it is released");
            let next = kind.rival_on(&rival, &scenario);
            let next = acquired(&scenario, acquire(next)).await;
            next.release().await.expect("it is released");
            strikes.count()
        });
        join_all(kinds).await.into_iter().sum::<u64>()
    });
    let strikes: Vec<u64> = met.buffer_unordered(VICTIMS).collect().await;
    assert!(
        strikes.iter().filter(|struck| **struck > 0).count() >= 2 * UNKNOWN.len(),
        "{strikes:?}"
    );
}

async fn guarded_write_that_was_applied_is_not_said_to_be_refused(server: TestServer) {
    create(&administrator(&server).await, STORED).await;
    for code in UNKNOWN {
        let proxy = proxy(&server).await;
        let session = session(&proxy, LONG).await;
        let guarded = KINDS.iter().filter(|kind| kind.recipe.queues);
        let kinds = guarded.map(async |kind| {
            let recipe = kind.on(&session, &format!("guarded{code}"));
            let hold = recipe.acquire().await.expect("it is free");
            proxy.fault(Fault::on_code(SET_DATA).answered(*code));
            let write = hold.transaction().set_data(STORED, kind.name.as_bytes());
            let written = in_time("the write", write.commit()).await;
            assert!(
                matches!(written, Err(Error::OutcomeUnknown { .. })),
                "{kind:?} {code}: {written:?}"
            );
            hold.release().await.expect("it is released");
        });
        for kind in kinds {
            kind.await;
        }
    }
}

async fn answer_that_never_changes_is_asked_for_ever_more_rarely(server: TestServer) {
    const MARSHALLING_ERROR: i32 = -5;
    const NO_NODE: i32 = -101;
    const NODE_EXISTS: i32 = -110;
    create(&administrator(&server).await, STORED).await;
    let rival = session(&server, LONG).await;
    let answers = [
        (Operation::Create, MARSHALLING_ERROR),
        (Operation::Create, NODE_EXISTS),
        (Operation::GetData, MARSHALLING_ERROR),
        (Operation::GetData, NO_NODE),
    ];
    let attempts = answers.map(async |(operation, code)| {
        for &kind in KINDS {
            for contended in [false, true] {
                // One after the other, so that one that spins has the time for it.
                let victim = Victim::new(&server, operation, code).await;
                victim
                    .live_through_refusals(&rival, &[(kind, contended)])
                    .await;
            }
        }
    });
    join_all(attempts).await;
}

async fn handshake_that_is_garbled_is_no_session_and_no_spin(server: TestServer) {
    let proxy = proxy(&server).await;
    proxy.fault(
        Fault::on(Operation::Connect)
            .repeatedly()
            .reply_replaced(|_| vec![0, 0, 0, 3, 1, 2, 3]),
    );
    let options = ConnectOptions::new()
        .session_timeout(LONG)
        .connection_timeout(Duration::from_secs(1));
    let opened = Session::connect_with(&proxy.connect_string(), options).await;
    assert!(opened.is_err(), "{opened:?}");
    assert!(
        proxy.counters().connections() < 20,
        "{:?}",
        proxy.counters()
    );
}

async fn authentication_that_is_refused_once_at_a_reconnect_costs_no_hold(server: TestServer) {
    const AUTHENTICATION_FAILED: i32 = -115;
    let proxy = proxy(&server).await;
    let options = ConnectOptions::new()
        .session_timeout(LONG)
        .tick(TICK)
        .auth("digest", "me:secret");
    let session = Session::connect_with(&proxy.connect_string(), options).await;
    let session = session.expect("a session opens");
    let id = session.id();
    let holds = hold_all(&session, "unauthenticated").await;
    // The user's credentials are refused, then the library's own identity.
    for nth in [1, 2] {
        let fault = Fault::on(Operation::Auth).nth(nth);
        let refused = proxy.fault(fault.refused(AUTHENTICATION_FAILED));
        proxy.cut();
        in_time("the refusal", refused.first()).await;
        eventually("the session is back", async || session.is_connected()).await;
    }
    assert_eq!(session.id(), id);
    for hold in holds {
        assert!(hold.is_held(), "{:?}", hold.state());
        hold.release().await.expect("it is released");
    }
    works_with_each_kind(&session, "unauthenticated", LATE).await;
}

async fn server_that_ends_the_session_at_each_create_gets_ever_fewer_sessions(server: TestServer) {
    const SESSION_EXPIRED: i32 = -112;
    const TIME: Duration = Duration::from_secs(6);
    /// The pauses double from 20 milliseconds to 5 seconds.
    const MOST: u64 = 25;
    let proxy = proxy(&server).await;
    let session = session(&proxy, LONG).await;
    let fault = Fault::on(Operation::Create).repeatedly();
    proxy.fault(fault.refused(SESSION_EXPIRED));
    let lock = KINDS[0].on(&session, "ended");
    let attempts = async {
        loop {
            let error = lock.acquire().await.expect_err("no create succeeds");
            assert!(matches!(error, Error::SessionOver { .. }), "{error}");
        }
    };
    let _: Result<(), _> = timeout(TIME, attempts).await;
    let connections = proxy.counters().connections();
    assert!((4..MOST).contains(&connections), "{connections}");
    proxy.clear_faults();
    works_with_each_kind(&session, "ended", LATE).await;
}

/// Apache's server alone requires SASL.
#[tokio::test(flavor = "multi_thread")]
async fn session_at_a_server_that_requires_sasl_is_refused_at_once_with_the_reason() {
    const REQUIRED: &str = "sessionRequireClientSASLAuth";
    const PROVIDER: &str = "org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    let options = ServerOptions::new()
        .tick_time(TICK)
        .configuration("authProvider.1", PROVIDER)
        .system_property(format!("zookeeper.{REQUIRED}"), "true");
    let server = server_with(options).await;
    let proxy = proxy(&server).await;
    let address = proxy.connect_string();
    let options = ConnectOptions::new().session_timeout(LONG);
    for options in [options.clone(), options.clone().auth("digest", "me:secret")] {
        let opening = Session::connect_with(&address, options.clone());
        let error = in_time("the refusal", opening).await;
        let error = error.expect_err("it has no SASL");
        assert!(matches!(error, Error::Connect { .. }), "{error:?}");
        assert!(error.to_string().contains(REQUIRED), "{error}");
        let session = Session::connect_in_background(&address, options).expect("good options");
        let over = in_time("the refusal", session.wait_connected()).await;
        let over = over.expect_err("it has no SASL");
        let Error::NoSession { reason, .. } = over else {
            panic!("{over:?}");
        };
        assert_eq!(reason, SessionEnd::SaslRequired);
        let error = KINDS[0].on(&session, "sasl").acquire().await;
        assert!(matches!(error, Err(Error::NoSession { reason: found, .. }) if found == reason));
    }
    assert_eq!(proxy.counters().connections(), 4, "one for each session");
}
