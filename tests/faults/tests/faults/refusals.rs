//! A server that answers with every error code it has.

use std::slice;

use futures_util::stream;

use crate::support::*;

on_both_servers!(apache at night:
    every_error_code_ends_in_an_error_or_a_deadline_and_bars_nobody_else,
);

/// The codes of `org.apache.zookeeper.KeeperException.Code`, no error, and an unknown code.
const CODES: &[i32] = &[
    0, -1, -2, -3, -4, -5, -6, -7, -8, -9, -10, -12, -13, -14, -100, -101, -102, -103, -108, -110,
    -111, -112, -113, -114, -115, -118, -119, -120, -121, -122, -123, -124, -125, -127, 77,
];

const MARSHALLING_ERROR: i32 = -5;
const NO_NODE: i32 = -101;
const NODE_EXISTS: i32 = -110;

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

/// What one attempt may send in that time. One that tries again at once sends hundreds; one that
/// waits ever longer in between, about a dozen, what it cleans up included.
const REQUESTS: u32 = 12;

/// How long a session lives in which znodes stay that could not be deleted.
const SESSION: Duration = Duration::from_secs(6);

/// What a holder writes to.
const STORED: &str = "/stored";

/// The number of contenders that are refused at a time. More would wait for the machine, and the
/// holders might lose their holds meanwhile.
const VICTIMS: usize = 24;

/// The number of cases at a time of which each is alone in its session.
const CASES: usize = 12;

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
    // Few cases at a time, so that a recipe that asks again at once has the time to do so.
    let asked_again = [
        (Operation::Create, MARSHALLING_ERROR),
        (Operation::Create, NODE_EXISTS),
        (Operation::GetData, MARSHALLING_ERROR),
        (Operation::GetData, NO_NODE),
    ];
    let alone = asked_again
        .iter()
        .flat_map(|refused| cases.iter().map(move |case| (*refused, case)));
    stream::iter(alone)
        .for_each_concurrent(CASES, async |((operation, code), case)| {
            let victim = Victim::new(&server, operation, code).await;
            let alone = slice::from_ref(case);
            victim.live_through_refusals(&rival, alone).await;
        })
        .await;
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
