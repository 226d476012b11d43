//! Connections that break, for a moment or for longer than the session lives.

use zookeeper_recipes_core::SessionState;

use crate::support::*;

on_both_servers!(embedded at night:
    waiter_comes_through_a_break_and_gets_its_turn_also_when_it_came_meanwhile,
    holder_comes_through_a_break_and_nobody_else_gets_in,
    frozen_holder_knows_its_loss_before_the_next_one_holds,
    frozen_contender_is_removed_with_its_session_and_learns_it,
    acquire_begun_while_suspended_waits_for_the_connection,
);

type Break = fn(&Proxy);

const BREAKS: &[(&str, Break)] = &[
    ("cut", Proxy::cut),
    ("reset", Proxy::reset),
    ("half-closed-to-server", |proxy| {
        proxy.half_close(Direction::ToServer)
    }),
    ("half-closed-to-client", |proxy| {
        proxy.half_close(Direction::ToClient)
    }),
];

async fn waiter_comes_through_a_break_and_gets_its_turn_also_when_it_came_meanwhile(
    server: TestServer,
) {
    let administrator = administrator(&server).await;
    let rival = session(&server, LONG).await;
    // Each with connections of its own, side by side.
    let kinds = KINDS.iter().map(async |&kind| {
        let proxy = proxy(&server).await;
        let victim = session(&proxy, LONG).await;
        for (break_name, break_now) in BREAKS {
            for released_meanwhile in [false, true] {
                let scenario = format!("{}-{break_name}-{released_meanwhile}", kind.name);
                let (first, waiter) = awaited(kind, &rival, &victim, &scenario).await;
                waits_in_earnest(kind, &server, (&victim, &proxy), first.node_path()).await;
                let connections = proxy.counters().connections();
                if released_meanwhile {
                    // The proxy passes on nothing from a new connection.
                    proxy.freeze();
                }
                break_now(&proxy);
                if released_meanwhile {
                    // Half-closing is held back by the freeze as well.
                    proxy.cut();
                    first.release().await.expect("it is released");
                    proxy.thaw();
                } else {
                    eventually("it is connected again", || async {
                        let again = proxy.counters().connections() > connections;
                        again && kind.on(&victim, &scenario).contenders().await.is_ok()
                    })
                    .await;
                    assert!(!waiter.is_finished(), "{scenario}: held twice");
                    first.release().await.expect("it is released");
                }
                let hold = acquired(&scenario, waiter).await;
                hold.release().await.expect("it is released");
                assert_no_contender_left(&administrator, kind, &scenario).await;
                assert_eq!(
                    creates(&administrator, kind, &scenario).await,
                    2,
                    "{scenario}"
                );
            }
        }
    });
    join_all(kinds).await;
    assert_no_watch_left(&server).await;
}

async fn holder_comes_through_a_break_and_nobody_else_gets_in(server: TestServer) {
    let administrator = administrator(&server).await;
    let rival = session(&server, LONG).await;
    let kinds = KINDS.iter().map(async |&kind| {
        let proxy = proxy(&server).await;
        let victim = session(&proxy, LONG).await;
        for (break_name, break_now) in BREAKS {
            let scenario = format!("{}-{break_name}", kind.name);
            let hold = held(kind.on(&victim, &scenario)).await;
            let next = acquire(kind.rival_on(&rival, &scenario));
            queue_length(kind, &*kind.on(&rival, &scenario), 2).await;
            let connections = proxy.counters().connections();
            break_now(&proxy);
            eventually("it is connected again, and held", || async {
                assert!(hold.is_held(), "{scenario}: {:?}", hold.state());
                proxy.counters().connections() > connections && hold.state() == HoldState::Held
            })
            .await;
            assert!(!next.is_finished(), "{scenario}: held twice");
            hold.release().await.expect("it is released");
            let next = acquired(&scenario, next).await;
            next.release().await.expect("it is released");
            assert_no_contender_left(&administrator, kind, &scenario).await;
        }
    });
    join_all(kinds).await;
    assert_no_watch_left(&server).await;
}

async fn frozen_holder_knows_its_loss_before_the_next_one_holds(server: TestServer) {
    let administrator = administrator(&server).await;
    let proxy = proxy(&server).await;
    let victim = session(&proxy, SHORT).await;
    let rival = session(&server, LONG).await;
    let scenario = "frozen";
    let successions = held_and_awaited(&victim, &rival, scenario).await;
    proxy.freeze();
    let frozen = Instant::now();
    for (kind, succession) in successions {
        let Succeeded {
            granted_at,
            lost: hold,
            next,
        } = succession.in_order().await;
        let free = granted_at - frozen;
        let most = SHORT + TICK + LATE;
        assert!(free < most, "{kind:?}: free for {free:?}");
        proxy.thaw();
        eventually("a new session is open", || async {
            victim.id().is_some_and(|id| id != hold.session_id())
        })
        .await;
        let again = acquire(kind.on(&victim, scenario));
        queue_length(kind, &*kind.on(&rival, scenario), 2).await;
        assert!(!hold.is_held(), "{kind:?}: what is lost stays lost");
        drop(hold);
        assert!(next.is_held(), "{kind:?}: {:?}", next.state());
        next.release().await.expect("it is released");
        let again = acquired("the victim, in a new session", again).await;
        again.release().await.expect("it is released");
    }
    for &kind in KINDS {
        assert_nothing_left(&server, &administrator, kind, scenario).await;
    }
}

async fn frozen_contender_is_removed_with_its_session_and_learns_it(server: TestServer) {
    let administrator = administrator(&server).await;
    let rival = session(&server, LONG).await;
    // One waits when nothing passes any more; the other does not even know that it has queued.
    let waiting_proxy = proxy(&server).await;
    let waiting = session(&waiting_proxy, SHORT).await;
    let entering_proxy = proxy(&server).await;
    let entering = session(&entering_proxy, SHORT).await;
    let mut contenders = Vec::new();
    let mut holds = Vec::new();
    for &kind in KINDS {
        let (first, waiter) = awaited(kind, &rival, &waiting, "waiting").await;
        contenders.push((kind, waiter));
        holds.push((kind, "waiting", first));

        let first = held(kind.rival_on(&rival, "entering")).await;
        first.release().await.expect("it is released");
    }
    // The connection that the fault strikes is frozen by it, and any later one by the proxy.
    let strikes = entering_proxy.fault(Fault::on(Operation::Create).at_reply(Breakage::Freeze));
    for &kind in KINDS {
        contenders.push((kind, acquire(kind.on(&entering, "entering"))));
    }
    in_time("the fault", strikes.first()).await;
    entering_proxy.freeze();
    waiting_proxy.freeze();
    for &kind in KINDS {
        let next = acquire(kind.rival_on(&rival, "entering"));
        let next = acquired("the queue is free again", next).await;
        holds.push((kind, "entering", next));
    }
    for &kind in KINDS {
        queue_length(kind, &*kind.on(&rival, "waiting"), 1).await;
    }
    // Only a server can know that the sessions are over.
    for (kind, contender) in &contenders {
        assert!(!contender.is_finished(), "{kind:?}");
    }
    entering_proxy.thaw();
    waiting_proxy.thaw();
    for (kind, contender) in contenders {
        let outcome = in_time("the attempt ends", contender)
            .await
            .expect("no panic");
        assert_session_over(kind, outcome, SessionEnd::Expired);
    }
    for (kind, scenario, hold) in holds {
        let again = match scenario {
            "waiting" => kind.on(&waiting, scenario),
            _ => kind.on(&entering, scenario),
        };
        let again = acquire(again);
        queue_length(kind, &*kind.on(&rival, scenario), 2).await;
        hold.release().await.expect("it is released");
        let again = acquired("in a new session", again).await;
        again.release().await.expect("it is released");
    }
    for &kind in KINDS {
        for scenario in ["waiting", "entering"] {
            assert_nothing_left(&server, &administrator, kind, scenario).await;
        }
    }
}

async fn suspend(proxy: &Proxy, session: &Session) {
    // The proxy passes on nothing from a new connection.
    proxy.freeze();
    proxy.cut();
    eventually("it is suspended", || async {
        matches!(session.state(), SessionState::Suspended(_))
    })
    .await;
}

async fn acquire_begun_while_suspended_waits_for_the_connection(server: TestServer) {
    let administrator = administrator(&server).await;
    let mended = proxy(&server).await;
    let patient = session(&mended, LONG).await;
    for &kind in KINDS {
        suspend(&mended, &patient).await;
        let acquiring = acquire(kind.on(&patient, "suspended"));
        let began = Instant::now();
        let outcome = kind
            .on(&patient, "suspended-with-a-deadline")
            .acquire_timeout(Duration::from_millis(200))
            .await;
        let took = began.elapsed();
        // Long before the session could end.
        assert!(took < LONG / 2, "{kind:?}: after {took:?}");
        assert!(
            matches!(outcome, Err(Error::DeadlineElapsed { .. })),
            "{kind:?}: {outcome:?}"
        );
        assert!(!acquiring.is_finished(), "{kind:?}");
        mended.thaw();
        let hold = acquired("there is a connection again", acquiring).await;
        assert!(hold.is_held(), "{kind:?}: {:?}", hold.state());
        assert_eq!(creates(&administrator, kind, "suspended").await, 1);
        hold.release().await.expect("it is released");
        for scenario in ["suspended", "suspended-with-a-deadline"] {
            assert_nothing_left(&server, &administrator, kind, scenario).await;
        }
    }
}
