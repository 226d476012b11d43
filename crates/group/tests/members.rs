//! Members that come, leave and die, on a simulated ensemble.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{Acl, AuthId, CreateMode, Error, FencingToken, Permission, Refusal};
use zookeeper_recipes_group::{Group, GroupState, Membership, Session};
use zookeeper_recipes_simulation::{Fault, FaultKind, RequestKind, Simulation};
use zookeeper_recipes_suite::simulated_session;

const PATH: &str = "/app/members";
const LONG: Duration = Duration::from_secs(60);

fn group(session: &Session) -> Group {
    Group::new(session, PATH).expect("a good path")
}

/// A simulation, and the group as a process sees it.
async fn one() -> (Simulation, Group) {
    let simulation = Simulation::default();
    let group = group_of(&simulation, "one").await;
    (simulation, group)
}

async fn group_of(simulation: &Simulation, process: &str) -> Group {
    group(&simulated_session(simulation, process).await)
}

fn is_taken(joined: &Result<Membership, Error>) -> bool {
    matches!(joined, Err(Error::Refused { refusal, .. }) if *refusal == Refusal::NodeExists)
}

/// Waits until this member has a znode again.
async fn is_joined_again(member: &Membership) {
    let mut holds = member.holds();
    let joined = timeout(LONG, holds.wait_for(Option::is_some)).await;
    assert!(joined.is_ok() && member.is_joined());
}

fn token(member: &Membership) -> Option<FencingToken> {
    let holds = member.holds();
    let held = holds.borrow();
    held.as_ref().map(|hold| hold.fencing_token())
}

/// Waits until the watch shows members of exactly these names.
async fn shows(watched: &mut watch::Receiver<GroupState>, names: &[&str]) {
    let as_expected = |state: &GroupState| {
        let shown = state.members().iter().map(|member| member.name.as_str());
        *state != GroupState::Unknown && shown.eq(names.iter().copied())
    };
    let shown = timeout(LONG, watched.wait_for(as_expected)).await;
    let shown = shown.map(|state| drop(state.expect("the session is open")));
    shown.unwrap_or_else(|_| panic!("{:?} is not {names:?}", *watched.borrow()));
}

#[tokio::test(start_paused = true)]
async fn member_is_shown_with_its_data_until_it_leaves() {
    let (simulation, group) = one().await;
    let mut watched = group_of(&simulation, "other").await.watch();
    shows(&mut watched, &[]).await;
    let one = group.join("one", "address").await.expect("it is free");
    assert!(one.is_joined());
    shows(&mut watched, &["one"]).await;
    assert_eq!(watched.borrow().members()[0].data, b"address");
    assert_eq!(
        watched.borrow().members(),
        group.members().await.expect("read")
    );
    one.leave().await.expect("it is a member");
    assert!(simulation.administrator().children(PATH).is_empty());
    shows(&mut watched, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn dropped_membership_leaves_in_the_background() {
    let (_simulation, group) = one().await;
    let mut watched = group.watch();
    let one = group.join("one", "").await.expect("it is free");
    shows(&mut watched, &["one"]).await;
    drop(one);
    shows(&mut watched, &[]).await;
}

#[tokio::test(start_paused = true)]
async fn member_joins_again_after_its_session_is_replaced() {
    let simulation = Simulation::default();
    let session = simulated_session(&simulation, "one").await;
    let mut watched = group_of(&simulation, "other").await.watch();
    let one = group(&session).join("one", "data").await.expect("free");
    shows(&mut watched, &["one"]).await;
    let first = watched.borrow().members()[0].clone();
    simulation.administrator().expire(first.session_id);
    let again = |state: &GroupState| state.member("one").is_some_and(|it| it.token > first.token);
    let shown = timeout(LONG, watched.wait_for(again)).await;
    let second = shown.expect("in time").expect("open").members()[0].clone();
    assert_eq!(second.data, b"data");
    assert_eq!(Some(second.session_id), session.id());
    is_joined_again(&one).await;
}

#[tokio::test(start_paused = true)]
async fn member_whose_znode_is_deleted_by_hand_joins_again() {
    let (simulation, group) = one().await;
    let mut watched = group.watch();
    let one = group.join("one", "").await.expect("it is free");
    shows(&mut watched, &["one"]).await;
    let first = watched.borrow().members()[0].token;
    // The session watches its znode from the next probe on.
    sleep(Duration::from_secs(5)).await;
    let administrator = simulation.administrator();
    administrator.delete("/app/members/one").expect("it exists");
    let again = |state: &GroupState| state.member("one").is_some_and(|it| it.token > first);
    let shown = timeout(LONG, watched.wait_for(again)).await;
    assert!(shown.is_ok(), "it has not joined again");
    is_joined_again(&one).await;
}

#[tokio::test(start_paused = true)]
async fn member_that_is_cut_off_knows_it_before_the_group_does() {
    let simulation = Simulation::default();
    let process = simulation.process("one");
    let group = group_of(&simulation, "one").await;
    let mut watched = group_of(&simulation, "other").await.watch();
    let one = group.join("one", "").await.expect("it is free");
    shows(&mut watched, &["one"]).await;
    process.partition(Duration::from_secs(3600));
    loop {
        let gone = watched.borrow_and_update().members().is_empty();
        assert!(!gone || !one.is_joined(), "it takes itself for a member");
        if gone {
            break;
        }
        watched.changed().await.expect("the session is open");
    }
}

#[tokio::test(start_paused = true)]
async fn taken_name_is_refused_or_awaited() {
    let simulation = Simulation::default();
    let first = group_of(&simulation, "first").await;
    let second = group_of(&simulation, "second").await;
    let one = first.join("one", "first").await.expect("it is free");
    let refused = second.try_join("one", "second").await;
    assert!(is_taken(&refused), "{refused:?}");
    let mut watched = second.watch();
    let waiting = tokio::spawn(async move { second.join("one", "second").await });
    sleep(LONG).await;
    assert!(one.is_joined() && !waiting.is_finished());
    simulation.process("first").kill();
    let other = timeout(LONG, waiting).await.expect("in time");
    let other = other.expect("no panic").expect("the name is free");
    assert!(other.is_joined());
    let renewed = |state: &GroupState| state.member("one").is_some_and(|it| it.data == b"second");
    let shown = timeout(LONG, watched.wait_for(renewed)).await;
    assert!(shown.is_ok(), "the data of the later member is read");
}

#[tokio::test(start_paused = true)]
async fn join_that_is_dropped_at_any_moment_leaves_nothing() {
    for step in 0..100 {
        let simulation = Simulation::with(|it| it.seed = step);
        let group = group_of(&simulation, "one").await;
        let join = group.join("one", "").boxed();
        let time = Duration::from_micros(300 * step);
        drop(timeout(time, join).await);
        sleep(Duration::from_secs(1)).await;
        let left = simulation.administrator().children(PATH);
        assert!(left.is_empty(), "step {step}: {left:?}");
        assert!(simulation.administrator().watches().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn znode_of_a_create_without_an_answer_is_the_members_own() {
    for kind in [FaultKind::ReplyLost, FaultKind::RequestLost] {
        let (simulation, group) = one().await;
        let before = group.join("before", "").await.expect("it is free");
        let lost = Fault::new(kind).on(RequestKind::Create);
        simulation.faults().inject(lost.under("/app/members/one"));
        let one = timeout(LONG, group.join("one", "")).await;
        let one = one.expect("in time").expect("it is its own");
        assert_eq!(simulation.faults().waiting(), 0);
        assert!(one.is_joined() && before.is_joined());
        one.leave().await.expect("it is a member");
        assert_eq!(simulation.administrator().children(PATH), ["before"]);
    }
}

/// Neither value is a clone of the other.
#[tokio::test(start_paused = true)]
async fn two_values_of_one_session_join_with_one_name_one_after_the_other() {
    for kind in [FaultKind::ReplyLost, FaultKind::RequestLost] {
        let simulation = Simulation::default();
        let session = simulated_session(&simulation, "one").await;
        let (first, second) = (group(&session), group(&session));
        let one = first.join("one", "first").await.expect("it is free");
        let refused = second.try_join("one", "second").await;
        assert!(is_taken(&refused), "{refused:?}");

        let lost = Fault::new(kind).on(RequestKind::Create);
        simulation.faults().inject(lost.under("/app/members/one"));
        let waiting = timeout(LONG, second.join("one", "second")).await;
        assert!(waiting.is_err(), "{kind:?}: {waiting:?}");
        assert!(one.is_joined(), "{kind:?}");
        let members = first.members().await.expect("they are read");
        assert_eq!(members[0].data, b"first", "{kind:?}");
        let (left, two) = tokio::join!(one.leave(), timeout(LONG, second.join("one", "second")));
        left.expect("it was a member");
        let two = two.expect("in time").expect("the name is free");
        assert!(two.is_joined());
        let members = second.members().await.expect("they are read");
        assert_eq!(members[0].data, b"second", "{kind:?}");
    }
}

/// A name that two sessions of one process use is free once the server says so.
#[tokio::test(start_paused = true)]
async fn values_of_two_sessions_leave_a_name_to_each_other_on_the_server() {
    let simulation = Simulation::default();
    let first = group_of(&simulation, "one").await;
    let second = group_of(&simulation, "two").await;
    let _one = first.join("one", "first").await.expect("it is free");
    simulation.process("one").partition(LONG * 10);
    let joined = timeout(LONG, second.join("one", "second")).await;
    let two = joined.expect("the first session expires").expect("free");
    assert!(two.is_joined());
}

#[tokio::test(start_paused = true)]
async fn join_after_a_member_that_has_not_left_yet_does_not_take_its_znode() {
    let (simulation, group) = one().await;
    let one = group.join("one", "").await.expect("it is free");
    let first = token(&one);
    for kind in [RequestKind::Delete, RequestKind::Create] {
        let lost = Fault::new(FaultKind::RequestLost).on(kind);
        simulation.faults().inject(lost.under("/app/members/one"));
    }
    drop(one);
    let next = timeout(LONG, group.join("one", "")).await;
    let next = next.expect("in time").expect("the name is free");
    assert_eq!(simulation.faults().waiting(), 0);
    let now = token(&next);
    assert!(now > first, "{now:?} after {first:?}");
    sleep(LONG).await;
    assert!(next.is_joined());
    assert_eq!(token(&next), now);
}

#[tokio::test(start_paused = true)]
async fn member_that_comes_as_a_watch_begins_is_shown() {
    for step in 0..100 {
        let simulation = Simulation::with(|it| it.seed = step);
        let group = group_of(&simulation, "one").await;
        let mut watched = group_of(&simulation, "other").await.watch();
        sleep(Duration::from_micros(100 * step)).await;
        let one = group.join("one", "").await.expect("it is free");
        shows(&mut watched, &["one"]).await;
        drop(one);
    }
}

#[tokio::test(start_paused = true)]
async fn only_ephemeral_children_are_members() {
    let (simulation, group) = one().await;
    let one = group.join("one", "").await.expect("it is free");
    let administrator = simulation.administrator();
    let child = administrator.create("/app/members/other", b"", CreateMode::Persistent);
    child.expect("the directory exists");
    let members = group.members().await.expect("they are read");
    assert_eq!(members.len(), 1, "{members:?}");
    drop(one);
}

#[tokio::test(start_paused = true)]
async fn bad_name_is_refused_and_leaves_nothing() {
    let (simulation, group) = one().await;
    let none = Vec::new();
    let names = ["", "a/b", "."].map(|name| (name, none.clone()));
    for (name, data) in names.into_iter().chain([("one", vec![0; 2 << 20])]) {
        let error = group.join(name, data).await.expect_err("it is no input");
        assert!(matches!(error, Error::InvalidInput(_)), "{error}");
    }
    assert_eq!(simulation.administrator().children("/"), ["zookeeper"]);
}

#[tokio::test(start_paused = true)]
async fn watch_without_the_permission_to_read_says_so() {
    let simulation = Simulation::default();
    let one = group_of(&simulation, "one").await;
    let _one = one.join("one", "").await.expect("it is free");
    let administrator = simulation.administrator();
    let nobody = [Acl::new(
        Permission::READ,
        AuthId::digest("nobody", "secret"),
    )];
    administrator.set_acl(PATH, &nobody).expect("it exists");
    let mut watched = group_of(&simulation, "other").await.watch();
    let refused = GroupState::Refused(Refusal::NoAuth);
    let shown = timeout(LONG, watched.wait_for(|state| *state == refused)).await;
    assert!(shown.is_ok_and(|shown| shown.is_ok()));
}

/// The reply to its create is lost, and the earlier znode is found at its path.
#[tokio::test(start_paused = true)]
async fn next_member_does_not_take_the_znode_of_the_last_one_for_its_own() {
    let (simulation, group) = one().await;
    let first = group.join("name", "first").await.expect("it is free");
    let token = group.members().await.expect("they are read")[0].token;
    let faults = simulation.faults();
    for nth in 1..=8 {
        let refused = Fault::new(FaultKind::Throttled).on(RequestKind::Delete);
        faults.inject(refused.nth(nth));
    }
    faults.inject(Fault::new(FaultKind::ReplyLost).on(RequestKind::Create));
    drop(first);
    let next = timeout(LONG, group.join("name", "next")).await;
    let next = next.expect("in time").expect("the last one leaves");
    let members = group.members().await.expect("they are read");
    assert_eq!(members[0].data, b"next");
    assert!(members[0].token > token);
    // The last one's znode was there when the next one looked for its own.
    assert_eq!(faults.waiting(), 0);
    sleep(LONG).await;
    assert!(next.is_joined(), "nobody deletes its znode");
}

#[tokio::test(start_paused = true)]
async fn watch_shows_what_a_backup_has_restored_though_nothing_changes_later() {
    let simulation = Simulation::with(|it| it.servers = 3);
    let group = group_of(&simulation, "one").await;
    let mut watched = group_of(&simulation, "other").await.watch();
    let one = group.join("one", "").await.expect("it is free");
    shows(&mut watched, &["one"]).await;
    let backup = simulation.faults().back_up();
    one.leave().await.expect("it is a member");
    shows(&mut watched, &[]).await;
    simulation.faults().restore(&backup, Duration::from_secs(1));
    sleep(Duration::from_secs(2)).await;
    // The servers admit the clients once they have committed something in the new epoch.
    let administrator = simulation.administrator();
    let created = administrator.create("/later", b"", CreateMode::Persistent);
    created.expect("a leader");
    shows(&mut watched, &["one"]).await;
}
