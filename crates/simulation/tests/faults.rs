//! The faults that a simulated ensemble has beside lost messages, behaviour by behaviour.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, sleep};
use zookeeper_recipes_core::ensemble::{
    Acl, AuthId, ConnectionState, CreateMode, Permission, ServerSession, SessionEnd,
};
use zookeeper_recipes_simulation::{
    Change, Fault, FaultKind, FaultRates, Limits, Opcode, RequestKind, ServerSettings, Simulation,
    SimulationOptions, Way,
};

/// Two seconds.
const TICK: Duration = Duration::from_secs(2);
/// Three ticks.
const TIMEOUT: Duration = Duration::from_secs(6);
/// After five ticks servers that do not hear each other give each other up.
const GIVEN_UP: Duration = Duration::from_secs(10);

fn everyone() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

fn milliseconds(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn servers(seed: u64, servers: usize) -> Simulation {
    Simulation::new(SimulationOptions {
        seed,
        servers,
        ..Default::default()
    })
}

async fn connect(simulation: &Simulation, process: &str) -> Arc<dyn ServerSession> {
    simulation.ensemble(process).connect().await.unwrap()
}

/// A session of this process that is connected to this server.
async fn connect_to(
    simulation: &Simulation,
    process: &str,
    server: usize,
) -> Arc<dyn ServerSession> {
    loop {
        let session = connect(simulation, process).await;
        if simulation.administrator().server_of(session.id()) == Some(server) {
            // The ones before are being closed.
            sleep(milliseconds(20)).await;
            return session;
        }
    }
}

async fn create(session: &dyn ServerSession, path: &str) {
    session
        .create(path, b"", CreateMode::Ephemeral, &everyone())
        .await
        .unwrap();
}

/// Whether that comes within so long.
async fn comes<F: Future>(within: Duration, future: F) -> bool {
    tokio::time::timeout(within, future).await.is_ok()
}

fn when_ended(simulation: &Simulation, session: &dyn ServerSession) -> Option<Duration> {
    let history = simulation.history();
    let ended = history.iter().find(|committed| {
        matches!(committed.change, Change::SessionEnded { session: ended, .. } if ended == session.id())
    });
    ended.map(|committed| committed.at)
}

mod a_reconnect_answered_with_a_new_session {
    use super::*;

    async fn is_taken_over_in_silence(simulation: Simulation, forget: bool) {
        let session = connect(&simulation, "a").await;
        create(&*session, "/old").await;
        let (id, watching) = (session.id(), session.get_and_watch("/old").await.unwrap().2);
        if forget {
            simulation.faults().forget(id);
        }
        simulation.process("a").disconnect();
        sleep(milliseconds(50)).await;

        assert_eq!(session.state(), ConnectionState::Connected);
        assert_eq!(session.id(), id, "it is told of nothing");
        let sessions = simulation.administrator().sessions();
        assert_eq!((sessions.len(), sessions[0]), (2, id));
        create(&*session, "/new").await;
        let stat = session.get("/new").await.unwrap().1;
        assert_eq!(stat.ephemeral_owner, sessions[1].0);

        let began = Instant::now();
        watching.await;
        assert!(began.elapsed() <= TIMEOUT + TICK, "the watch was set anew");
        assert!(began.elapsed() > TIMEOUT / 2, "the old session lived on");
        assert_eq!(simulation.administrator().sessions(), [sessions[1]]);
        assert_eq!(session.list("/").await.unwrap(), ["new", "zookeeper"]);
        assert_eq!(session.state(), ConnectionState::Connected);
    }

    #[tokio::test(start_paused = true)]
    async fn is_taken_over_in_silence_from_servers_that_forget_sessions() {
        let simulation = Simulation::new(SimulationOptions {
            forgets_sessions: true,
            ..Default::default()
        });
        is_taken_over_in_silence(simulation, false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn is_taken_over_in_silence_once() {
        is_taken_over_in_silence(servers(2, 3), true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn comes_by_chance_to_those_that_have_expired() {
        let simulation = servers(3, 1);
        let session = connect(&simulation, "a").await;
        simulation.faults().set_rates(FaultRates {
            replaced: 1.0,
            ..Default::default()
        });
        simulation.process("a").disconnect();
        sleep(milliseconds(50)).await;
        assert_eq!(simulation.administrator().sessions(), [session.id()]);
        simulation.process("a").partition(TIMEOUT);
        sleep(TIMEOUT / 2).await;
        simulation.administrator().expire(session.id());
        sleep(TIMEOUT * 2).await;
        assert_eq!(session.state(), ConnectionState::Connected);
        assert_ne!(simulation.administrator().sessions(), [session.id()]);
    }
}

mod an_ensemble_that_is_slow {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn commits_nothing_while_it_stalls_and_then_all() {
        let simulation = servers(1, 3);
        let session = connect(&simulation, "a").await;
        session.sync("/").await.unwrap();
        simulation.faults().stall_commits(TICK);
        let began = Instant::now();
        session.sync("/").await.unwrap();
        session.list("/").await.unwrap();
        assert!(began.elapsed() < milliseconds(100), "nothing stands before");
        create(&*session, "/a").await;
        assert!(began.elapsed() >= TICK);
        assert!(began.elapsed() < TICK + milliseconds(100));
    }

    #[tokio::test(start_paused = true)]
    async fn lets_syncs_wait_behind_what_stalls() {
        let simulation = servers(2, 3);
        let session = connect(&simulation, "a").await;
        let other = connect(&simulation, "b").await;
        simulation.faults().stall_commits(TICK);
        let creating = other.create("/a", b"", CreateMode::Persistent, &[]);
        drop(creating);
        let creating = other.create("/a", b"", CreateMode::Persistent, &everyone());
        sleep(milliseconds(50)).await;
        assert!(!comes(TICK / 2, session.sync("/")).await);
        creating.await.unwrap();
        session.sync("/").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn answers_late_what_a_paused_server_was_asked() {
        for paused in 0..3 {
            let simulation = servers(3, 3);
            let session = connect_to(&simulation, "a", 1).await;
            simulation.faults().pause_server(paused, TICK);
            let began = Instant::now();
            create(&*session, "/a").await;
            let list = session.list("/").await.unwrap();
            assert_eq!(list, ["a", "zookeeper"]);
            let late = began.elapsed() >= TICK;
            assert_eq!(late, paused != 2, "server {paused}");
            assert_eq!(simulation.administrator().sessions().len(), 1);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn may_expire_sessions_before_a_leader_hears_what_has_come_meanwhile() {
        let mut expired = 0;
        for seed in 0..8 {
            let simulation = servers(seed, 3);
            let session = connect_to(&simulation, "a", 1).await;
            simulation.faults().pause_server(0, TIMEOUT + TICK);
            sleep(TIMEOUT + TICK * 2).await;
            expired += usize::from(when_ended(&simulation, &*session).is_some());
        }
        assert!((1..8).contains(&expired), "{expired} of 8");
    }
}

mod a_leader_cut_off_from_its_followers {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_its_own_clients_and_commits_nothing() {
        for count in [3, 5] {
            let simulation = servers(1, count);
            let session = connect_to(&simulation, "a", 0).await;
            let elsewhere = connect_to(&simulation, "b", 1).await;
            create(&*session, "/a").await;
            simulation.faults().isolate_leader(GIVEN_UP * 3);
            sleep(TICK).await;
            assert!(comes(milliseconds(20), session.sync("/")).await);
            assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
            assert!(comes(milliseconds(20), elsewhere.list("/")).await);
            assert!(!comes(milliseconds(500), elsewhere.sync("/")).await);
            let created = session.create("/b", b"", CreateMode::Ephemeral, &everyone());
            sleep(milliseconds(20)).await;
            assert!(!comes(milliseconds(500), session.sync("/")).await);
            assert!(created.await.is_err());
            assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn tells_a_session_that_comes_back_that_it_lives() {
        let simulation = servers(2, 3);
        let session = connect_to(&simulation, "a", 0).await;
        simulation.faults().isolate_leader(GIVEN_UP * 3);
        sleep(TICK).await;
        let fault = Fault::new(FaultKind::RequestLost).reconnecting_to(0);
        simulation.faults().inject(fault);
        assert!(session.list("/").await.is_err());
        sleep(milliseconds(50)).await;
        assert_eq!(session.state(), ConnectionState::Connected);
        assert_eq!(simulation.administrator().server_of(session.id()), Some(0));
        assert!(comes(milliseconds(20), session.sync("/")).await);
    }

    #[tokio::test(start_paused = true)]
    async fn takes_no_request_of_a_session_from_where_it_was_before() {
        for seed in 0..10 {
            let simulation = servers(seed, 3);
            let session = connect_to(&simulation, "a", 1).await;
            simulation.faults().isolate_leader(GIVEN_UP - TICK);
            let fault = Fault::new(FaultKind::RequestLost).on(RequestKind::List);
            simulation.faults().inject(fault.reconnecting_to(0));
            let created = session.create("/a", b"", CreateMode::Ephemeral, &everyone());
            sleep(milliseconds(20)).await;
            assert!(session.list("/").await.is_err());
            assert!(created.await.is_err());
            session.sync("/").await.unwrap();
            assert_eq!(simulation.administrator().server_of(session.id()), Some(0));
            assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
            sleep(GIVEN_UP).await;
            assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
        }
    }

    async fn move_to(simulation: &Simulation, session: &dyn ServerSession, server: usize) {
        let administrator = simulation.administrator();
        while administrator.server_of(session.id()) != Some(server)
            || session.state() != ConnectionState::Connected
        {
            simulation.process("a").disconnect();
            sleep(milliseconds(20)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn takes_no_late_request_of_a_session_that_has_gone_and_come_back() {
        for seed in 0..20 {
            let simulation = servers(seed, 3);
            let session = connect_to(&simulation, "a", 0).await;
            let faults = simulation.faults();
            let late = Fault::new(FaultKind::RequestLate(TICK)).on(RequestKind::Create);
            faults.inject(late);
            let created = session.create("/a", b"", CreateMode::Ephemeral, &everyone());
            move_to(&simulation, &*session, 1).await;
            session.sync("/").await.unwrap();
            faults.isolate_leader(GIVEN_UP - TICK);
            // What was sent to the leader comes while the session is elsewhere.
            sleep(TICK).await;
            move_to(&simulation, &*session, 0).await;
            assert!(created.await.is_err());
            sleep(GIVEN_UP).await;
            session.sync("/").await.unwrap();
            assert_eq!(session.list("/").await.unwrap(), ["zookeeper"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn expires_no_session_though_its_clients_take_it_for_expired() {
        let simulation = servers(3, 3);
        let session = connect_to(&simulation, "a", 0).await;
        create(&*session, "/a").await;
        simulation.faults().isolate_leader(GIVEN_UP - TICK);
        simulation.process("a").sleep(TIMEOUT + TICK);
        sleep(TIMEOUT + TICK - milliseconds(10)).await;
        assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
        sleep(milliseconds(50)).await;
        assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
    }

    #[tokio::test(start_paused = true)]
    async fn is_deposed_and_steps_down_in_time() {
        for seed in 0..20 {
            let simulation = servers(seed, 3);
            let session = connect_to(&simulation, "a", 0).await;
            let cut = Instant::now();
            simulation.faults().isolate_leader(GIVEN_UP * 3);
            while simulation.administrator().leader() == 0 {
                sleep(milliseconds(10)).await;
            }
            assert!(cut.elapsed() >= GIVEN_UP - TICK / 2, "{:?}", cut.elapsed());
            assert!(cut.elapsed() <= GIVEN_UP + TICK, "{:?}", cut.elapsed());
            session.disconnected().await;
            assert!(cut.elapsed() >= GIVEN_UP, "{:?}", cut.elapsed());
            let latest = GIVEN_UP + TICK + milliseconds(15);
            assert!(cut.elapsed() <= latest, "{:?}", cut.elapsed());
            // It finds one of the others, and its session lives.
            create(&*session, "/a").await;
            assert_ne!(simulation.administrator().server_of(session.id()), Some(0));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn keeps_a_session_that_the_new_leader_expires_after_its_whole_timeout() {
        let mut overlapped = false;
        for seed in 0..20 {
            let simulation = servers(seed, 3);
            let session = connect_to(&simulation, "a", 0).await;
            create(&*session, "/a").await;
            simulation.faults().isolate_leader(GIVEN_UP * 3);
            while simulation.administrator().leader() == 0 {
                sleep(milliseconds(10)).await;
            }
            let elected = simulation.now();
            let answered = comes(milliseconds(20), session.sync("/")).await;
            overlapped |= answered;
            simulation.process("a").sleep(TIMEOUT * 2);
            sleep(TIMEOUT * 2).await;
            let ended = when_ended(&simulation, &*session).unwrap();
            assert!(ended >= elected + TIMEOUT, "{:?}", ended - elected);
        }
        assert!(overlapped, "no leader was deposed before it knew");
    }

    #[tokio::test(start_paused = true)]
    async fn goes_on_where_nobody_has_given_it_up() {
        let simulation = servers(4, 3);
        let session = connect_to(&simulation, "a", 0).await;
        let elsewhere = connect_to(&simulation, "b", 1).await;
        simulation.faults().isolate_leader(TICK);
        sleep(milliseconds(10)).await;
        let began = Instant::now();
        let (one, other) = tokio::join!(
            session.create("/a", b"", CreateMode::Ephemeral, &everyone()),
            elsewhere.create("/b", b"", CreateMode::Ephemeral, &everyone()),
        );
        assert!(one.is_ok() && other.is_ok());
        assert!(began.elapsed() < TICK + milliseconds(50));
        assert_eq!(simulation.administrator().leader(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn loses_what_it_has_proposed_and_follows() {
        let (mut lost, mut kept) = (0, 0);
        for seed in 0..20 {
            let simulation = servers(seed, 3);
            let session = connect_to(&simulation, "a", 0).await;
            simulation.faults().stall_commits(TICK / 10);
            let created = session.create("/a", b"", CreateMode::Persistent, &everyone());
            sleep(milliseconds(20)).await;
            simulation.faults().isolate_leader(GIVEN_UP * 2);
            assert!(created.await.is_err());
            sleep(GIVEN_UP * 2 + TICK).await;
            let observer = connect(&simulation, "b").await;
            observer.sync("/").await.unwrap();
            match observer.list("/").await.unwrap().len() {
                1 => lost += 1,
                _ => kept += 1,
            }
            create(&*observer, "/b").await;
            // All three agree again, the old leader as well.
            for server in 0..3 {
                let session = connect_to(&simulation, "c", server).await;
                session.sync("/").await.unwrap();
                let list = session.list("/").await.unwrap();
                assert_eq!(list, simulation.administrator().children("/"));
            }
        }
        assert!(lost > 0 && kept > 0, "{lost} lost, {kept} kept");
    }

    #[tokio::test(start_paused = true)]
    async fn by_the_request_that_it_has_answered_last() {
        let simulation = servers(5, 3);
        let session = connect_to(&simulation, "a", 0).await;
        let fault = Fault::new(FaultKind::CutOff(GIVEN_UP * 2)).on(RequestKind::Sync);
        simulation.faults().inject(fault.nth(2));
        session.sync("/").await.unwrap();
        create(&*session, "/a").await;
        session.sync("/").await.unwrap();
        session.sync("/").await.unwrap();
        let created = session.create("/b", b"", CreateMode::Ephemeral, &everyone());
        assert!(created.await.is_err());
    }
}

mod a_cut_that_goes_one_way {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lets_a_process_hear_what_it_cannot_answer() {
        let simulation = servers(1, 1);
        let session = connect(&simulation, "a").await;
        create(&*session, "/a").await;
        let watch = session.get_and_watch("/a").await.unwrap().2;
        simulation.process("a").partition_one_way(Way::Up, TICK);
        let began = Instant::now();
        simulation.administrator().delete("/a").unwrap();
        watch.await;
        assert!(began.elapsed() < milliseconds(10));
        let _ = session.list("/").await;
        assert!(began.elapsed() >= TICK);
    }

    #[tokio::test(start_paused = true)]
    async fn lets_a_process_write_what_it_hears_no_answer_to() {
        let simulation = servers(2, 1);
        let session = connect(&simulation, "a").await;
        simulation.process("a").partition_one_way(Way::Down, TICK);
        let began = Instant::now();
        let created = session.create("/a", b"", CreateMode::Ephemeral, &everyone());
        sleep(milliseconds(20)).await;
        assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
        created.await.unwrap();
        assert!(began.elapsed() >= TICK);
    }

    #[tokio::test(start_paused = true)]
    async fn lets_a_follower_hear_its_leader_and_keep_no_session() {
        let simulation = servers(3, 3);
        let session = connect_to(&simulation, "a", 1).await;
        let beside = connect_to(&simulation, "a", 1).await;
        let other = connect_to(&simulation, "b", 2).await;
        let faults = simulation.faults();
        faults.cut_off_one_way(1, Way::Up, GIVEN_UP * 3);
        create(&*other, "/b").await;
        sleep(milliseconds(20)).await;
        assert_eq!(session.list("/").await.unwrap(), ["b", "zookeeper"]);
        assert!(!comes(milliseconds(100), beside.sync("/")).await);
        sleep(TIMEOUT + TICK).await;
        assert!(when_ended(&simulation, &*session).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn lets_a_follower_tell_its_leader_what_it_hears_no_answer_to() {
        let simulation = servers(4, 3);
        let session = connect_to(&simulation, "a", 1).await;
        let beside = connect_to(&simulation, "a", 1).await;
        let faults = simulation.faults();
        faults.cut_off_one_way(1, Way::Down, GIVEN_UP * 3);
        let created = session.create("/a", b"", CreateMode::Ephemeral, &everyone());
        sleep(milliseconds(20)).await;
        assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
        assert!(!comes(milliseconds(100), created).await);
        assert_eq!(beside.list("/").await.unwrap(), ["zookeeper"]);
    }
}

mod a_blocked_runtime {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn holds_up_a_session_and_not_the_tasks_of_its_process() {
        let simulation = servers(1, 1);
        let process = simulation.process("a");
        let session = connect(&simulation, "a").await;
        let mut background = tokio::spawn(process.ensemble().task(sleep(TICK / 2).boxed()));
        process.block_sessions(TIMEOUT * 2);
        let began = Instant::now();
        process.while_awake(sleep(TICK)).await;
        assert_eq!(began.elapsed(), TICK);
        assert!(!process.is_asleep());
        assert!(!comes(TICK, session.list("/")).await);
        assert!((&mut background).now_or_never().is_none());
        assert_eq!(
            session.state(),
            ConnectionState::Connected,
            "nobody has looked"
        );

        sleep(TIMEOUT).await;
        assert!(when_ended(&simulation, &*session).is_some());
        background.await.unwrap();
        assert!(began.elapsed() >= TIMEOUT * 2);
        sleep(milliseconds(50)).await;
        let expired = ConnectionState::Ended(SessionEnd::Expired);
        assert_eq!(session.state(), expired);
    }

    #[tokio::test(start_paused = true)]
    async fn that_goes_on_in_time_loses_nothing() {
        let simulation = servers(2, 1);
        let session = connect(&simulation, "a").await;
        simulation.process("a").block_sessions(TIMEOUT / 3);
        create(&*session, "/a").await;
        sleep(TIMEOUT * 2).await;
        assert_eq!(session.state(), ConnectionState::Connected);
        assert_eq!(simulation.administrator().children("/"), ["a", "zookeeper"]);
    }
}

mod limits {
    use super::*;

    fn limited(change: impl FnOnce(&mut Limits)) -> Simulation {
        let mut limits = Limits::default();
        change(&mut limits);
        Simulation::new(SimulationOptions {
            network_delay: Duration::ZERO..=Duration::ZERO,
            commit_delay: Duration::ZERO..=Duration::ZERO,
            limits,
            ..Default::default()
        })
    }

    async fn are_exceeded(simulation: &Simulation, request: bool) -> String {
        let session = connect(simulation, "a").await;
        let spinning = async {
            loop {
                match request {
                    true => drop(session.list("/").await),
                    false => tokio::task::yield_now().await,
                }
                simulation.counters();
            }
        };
        tokio::select! {
            biased;
            text = simulation.exceeds_its_limits() => text,
            () = spinning => unreachable!(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn are_exceeded_where_the_clock_stands_still() {
        let simulation = limited(|limits| limits.at_one_instant = 1_000);
        let text = are_exceeded(&simulation, true).await;
        assert!(text.contains("1000 things were done"), "{text}");
        assert_eq!(simulation.now(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    #[should_panic(expected = "something goes on without end")]
    async fn are_exceeded_by_what_lets_nobody_else_run() {
        let simulation = limited(|limits| limits.at_one_instant = 1_000);
        loop {
            simulation.counters();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn are_exceeded_by_too_many_requests() {
        let simulation = limited(|limits| limits.requests_per_second = 100);
        let text = are_exceeded(&simulation, true).await;
        assert_eq!(text, "a sent 101 requests within a second");
    }

    #[tokio::test(start_paused = true)]
    async fn are_exceeded_where_it_takes_too_long() {
        let simulation = limited(|limits| limits.wall_clock = milliseconds(5));
        let text = are_exceeded(&simulation, false).await;
        assert!(text.contains("have taken more than 5ms"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn are_exceeded_by_too_many_changes() {
        let simulation = limited(|limits| limits.changes = 2);
        let session = connect(&simulation, "a").await;
        create(&*session, "/a").await;
        assert!(simulation.exceeds_its_limits().now_or_never().is_none());
        create(&*session, "/b").await;
        let text = simulation.exceeds_its_limits().await;
        assert_eq!(text, "3 changes were committed");
    }
}

mod servers_restarted_with_other_settings {
    use super::*;

    fn settings(tick: Duration, most: Option<Duration>) -> ServerSettings {
        ServerSettings {
            tick,
            min_session_timeout: None,
            max_session_timeout: most,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn give_a_session_that_comes_back_less_and_its_client_tells_nobody() {
        let simulation = servers(1, 3);
        let session = connect(&simulation, "a").await;
        let administrator = simulation.administrator();
        assert_eq!(administrator.timeout_of(session.id()), Some(TIMEOUT));
        let less = settings(TICK, Some(TIMEOUT / 2));
        simulation.faults().restart(less, milliseconds(100));
        sleep(TICK).await;
        session.sync("/").await.unwrap();
        assert_eq!(session.timeout(), TIMEOUT);
        assert_eq!(administrator.timeout_of(session.id()), Some(TIMEOUT / 2));
        simulation.process("a").sleep(TIMEOUT);
        let began = simulation.now();
        sleep(TIMEOUT).await;
        let ended = when_ended(&simulation, &*session).unwrap();
        assert!(ended - began <= TIMEOUT / 2 + TICK, "{:?}", ended - began);
    }

    #[tokio::test(start_paused = true)]
    async fn count_in_other_ticks() {
        for (tick, latest) in [(TICK / 4, TIMEOUT + TICK / 4), (TICK, TIMEOUT + TICK)] {
            let simulation = servers(2, 3);
            let session = connect_to(&simulation, "a", 1).await;
            simulation.faults().restart(settings(tick, None), TICK / 2);
            sleep(TICK + milliseconds(300)).await;
            session.sync("/").await.unwrap();
            simulation.process("a").sleep(TIMEOUT * 2);
            let began = simulation.now();
            sleep(TIMEOUT * 2).await;
            let after = when_ended(&simulation, &*session).unwrap() - began;
            let latest = latest + tick / 2 + milliseconds(20);
            assert!(after > TIMEOUT - milliseconds(20), "{after:?}");
            assert!(after <= latest, "tick {tick:?}: {after:?}");
        }
    }
}

mod clocks {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn begin_anywhere_and_run_at_their_own_rate() {
        let simulation = Simulation::new(SimulationOptions {
            clock_drift: 10_000,
            ..Default::default()
        });
        let mut rates = Vec::new();
        for process in 0..20 {
            let ensemble = simulation.ensemble(&format!("p{process}"));
            let began = ensemble.now();
            assert_eq!(simulation.ensemble(&format!("p{process}")).now(), began);
            sleep(Duration::from_secs(1_000)).await;
            let rate = (ensemble.now() - began).as_millis();
            assert!((990_000..=1_010_000).contains(&rate), "{rate}");
            rates.push(rate);
        }
        assert!(rates.iter().any(|rate| *rate < 997_000), "{rates:?}");
        assert!(rates.iter().any(|rate| *rate > 1_003_000), "{rates:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn are_all_one_by_default() {
        let simulation = servers(1, 1);
        sleep(TICK).await;
        assert_eq!(simulation.ensemble("a").now(), simulation.now());
    }
}

mod a_server_that_refuses {
    use super::*;
    use zookeeper_recipes_core::ensemble::Operation;
    use zookeeper_recipes_core::{Refusal, ServerError};

    #[tokio::test(start_paused = true)]
    async fn what_is_too_much_for_it_does_nothing() {
        let simulation = servers(1, 3);
        let session = connect(&simulation, "a").await;
        for request in [RequestKind::Create, RequestKind::List, RequestKind::Sync] {
            let fault = Fault::new(FaultKind::Throttled).on(request);
            simulation.faults().inject(fault);
        }
        let acl = everyone();
        let (first, created, list, sync) = tokio::join!(
            session.create("/a", b"", CreateMode::Ephemeral, &acl),
            session.create("/b", b"", CreateMode::Ephemeral, &acl),
            session.list("/"),
            session.sync("/"),
        );
        let throttled = Some(Refusal::Throttled);
        assert_eq!(refusal(first), throttled);
        assert!(created.is_ok(), "what was asked after it is answered");
        assert_eq!(
            (refusal(list), refusal(sync)),
            (throttled.clone(), throttled)
        );
        assert_eq!(session.list("/").await.unwrap(), ["b", "zookeeper"]);
    }

    fn refusal<T>(result: Result<T, ServerError>) -> Option<Refusal> {
        match result {
            Err(ServerError::Refused(refusal)) => Some(refusal),
            _ => None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_large_closes_the_connection() {
        let simulation = servers(2, 1);
        let session = connect(&simulation, "a").await;
        let (small, large) = (vec![0; 1_048_000], vec![0; 1_048_575]);
        let mode = CreateMode::Persistent;
        let created = session.create("/a", &small, mode, &everyone()).await;
        assert!(created.is_ok());
        let created = session.create("/b", &large, mode, &everyone()).await;
        assert!(matches!(created, Err(ServerError::OutcomeUnknown(_))));
        let set = Operation::SetData {
            path: "/a".to_owned(),
            data: large,
            version: None,
        };
        assert!(session.transact(&[set]).await.is_err());
        assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
    }

    async fn unknown(opcode: Opcode) -> (Simulation, Arc<dyn ServerSession>) {
        let simulation = Simulation::new(SimulationOptions {
            unknown: vec![opcode],
            ..Default::default()
        });
        let session = connect(&simulation, "a").await;
        (simulation, session)
    }

    #[tokio::test(start_paused = true)]
    async fn what_it_does_not_know_closes_the_connection() {
        let acl = everyone();
        let (_, session) = unknown(Opcode::Create).await;
        let mode = CreateMode::Persistent;
        assert!(session.create("/a", b"", mode, &acl).await.is_err());

        let (_, session) = unknown(Opcode::CreateContainer).await;
        assert!(session.create("/a", b"", mode, &acl).await.is_ok());
        let mode = CreateMode::Container;
        assert!(session.create("/b", b"", mode, &acl).await.is_err());
        let create = Operation::Create {
            path: "/c".to_owned(),
            data: Vec::new(),
            mode,
            acl,
        };
        assert!(session.transact(&[create]).await.is_err());
        assert_eq!(session.list("/").await.unwrap(), ["a", "zookeeper"]);
    }

    #[tokio::test(start_paused = true)]
    async fn watches_set_anew_or_taken_off_closes_the_connection() {
        let (_, session) = unknown(Opcode::RemoveWatches).await;
        let watch = session.list_and_watch("/").await.unwrap().1;
        drop(watch);
        sleep(milliseconds(20)).await;
        assert!(session.list("/").await.is_ok(), "it has found its way back");

        let (simulation, session) = unknown(Opcode::SetWatches).await;
        let _watch = session.list_and_watch("/").await.unwrap().1;
        simulation.process("a").disconnect();
        let ended = comes(TIMEOUT * 2, session.list("/")).await;
        assert!(ended, "it cannot come back before the session is over");
        let expired = ConnectionState::Ended(SessionEnd::Expired);
        assert_eq!(session.state(), expired);
    }

    #[tokio::test(start_paused = true)]
    async fn by_lists_that_an_operator_changes() {
        let simulation = servers(3, 3);
        let session = connect(&simulation, "a").await;
        create(&*session, "/a").await;
        let administrator = simulation.administrator();
        let reads = [Acl::new(Permission::READ, AuthId::anyone())];
        let earlier = administrator.set_acl("/", &reads).unwrap();
        session.sync("/").await.unwrap();
        let deleted = session.delete("/a").await;
        assert_eq!(refusal(deleted), Some(Refusal::NoAuth));
        assert!(session.list("/").await.is_ok());
        assert_eq!(administrator.set_acl("/", &earlier).unwrap(), reads);
        session.delete("/a").await.unwrap();
        assert_eq!(administrator.set_acl("/a", &reads), Err(Refusal::NoNode));
    }
}
