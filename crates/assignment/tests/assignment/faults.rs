//! Each partition is owned again within the stated bound.

use crate::support::*;

const PARTITIONS: usize = 9;

#[tokio::test(start_paused = true)]
async fn the_last_worker_owns_all_within_the_stated_bound_after_the_others_were_cut_off() {
    for seed in 0..10 {
        let simulation = Simulation::new(SimulationOptions {
            seed,
            servers: 3,
            ..SimulationOptions::default()
        });
        let mut fleet = Fleet::new(simulation, PARTITIONS);
        fleet.start_all(&["a", "b", "c"]).await;
        let last = ["a", "b", "c"][seed as usize % 3];
        for worker in ["a", "b", "c"].into_iter().filter(|it| *it != last) {
            fleet.process(worker).partition(Duration::from_secs(60));
        }
        let began = Instant::now();
        fleet.balanced(&[last]).await;
        // The session timeout, two ticks of the servers, and time for two plans.
        let bound = Duration::from_secs(6 + 2 * 2 + 1);
        assert!(began.elapsed() < bound, "{:?}", began.elapsed());
        // Those that were cut off come back, and get their share.
        fleet.balanced(&["a", "b", "c"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn partitions_are_planned_again_after_the_servers_have_lost_their_data() {
    for servers in [1, 3] {
        let simulation = Simulation::new(SimulationOptions {
            servers,
            ..SimulationOptions::default()
        });
        let mut fleet = Fleet::new(simulation, PARTITIONS);
        fleet.start_all(&["a", "b"]).await;
        fleet.simulation.faults().lose_data(Duration::from_secs(1));
        fleet.judge.begin_anew();
        fleet.balanced(&["a", "b"]).await;
        // New plans are written, and new workers get their share.
        fleet.kill("a");
        fleet.balanced(&["b"]).await;
        fleet.start("c").await;
        fleet.balanced(&["b", "c"]).await;
    }
}

/// The session of another process is in the backup, and so is its znode at the path of the record.
#[tokio::test(start_paused = true)]
async fn worker_publishes_again_if_a_backup_has_restored_the_record_of_an_earlier_session() {
    let mut fleet = Fleet::new(Simulation::with(|it| it.servers = 3), 4);
    let record = format!("{PATH}/owned/a");
    fleet.create(&["/app", PATH, &format!("{PATH}/owned")], b"");
    let earlier = fleet.simulation.process("earlier");
    let server = earlier.connect().await.expect("a session");
    let acl = [Acl::new(Permission::ALL, AuthId::anyone())];
    let empty = b"zookeeper-recipes owned 1 1 a:8080\n";
    let created = server.create(&record, empty, CreateMode::Ephemeral, &acl);
    created.await.expect("it is new");
    fleet.start_all(&["a"]).await;
    let backup = fleet.simulation.faults().back_up();
    earlier.kill();
    let published = |fleet: &Fleet| {
        let tree = fleet.simulation.administrator().tree().into_iter();
        let mut data = tree.filter(|node| node.path == record).map(|it| it.data);
        data.next()
            .is_some_and(|data| data.iter().filter(|it| **it == b'\n').count() == 5)
    };
    fleet.until("published", |_| published(&fleet)).await;
    let soon = Duration::from_millis(100);
    fleet.simulation.faults().restore(&backup, soon);
    sleep(soon * 2).await;
    // The servers admit the clients once they have committed something in the new epoch.
    fleet.create(&["/later"], b"");
    sleep(LONG).await;
    assert!(published(&fleet), "{}", fleet.tree());
    let grants = fleet.judge.grants();
    assert!(grants.values().all(|grants| *grants == 1), "{grants:?}");
}

/// As after a backup was restored: the session lives on, and what it has written since is gone.
#[tokio::test(start_paused = true)]
async fn worker_publishes_again_after_a_reconnect_if_its_record_is_another_one() {
    let mut fleet = Fleet::of(4);
    fleet.start_all(&["a"]).await;
    let administrator = fleet.simulation.administrator();
    let record = format!("{PATH}/owned/a");
    let data = || {
        let tree = administrator.tree().into_iter();
        tree.filter(|node| node.path == record)
            .map(|node| node.data)
            .next()
    };
    fleet
        .until("published", |_| {
            data().is_some_and(|data| data.iter().filter(|it| **it == b'\n').count() == 5)
        })
        .await;
    let published = data();
    for replaced in [true, false] {
        match replaced {
            true => administrator.set_data(&record, b"zookeeper-recipes owned 1 1 a:8080\n"),
            false => administrator.delete(&record),
        }
        .expect("it is there");
        fleet.process("a").disconnect();
        fleet
            .until("published again", |_| data() == published)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn all_follow_the_partitions_and_the_plans_that_a_backup_has_restored() {
    let simulation = Simulation::with(|it| it.servers = 3);
    let mut fleet = Fleet::new(simulation, 2);
    fleet.start_all(&["a"]).await;
    let operator = fleet.operator().await;
    let mut status = operator.watch_status().await.expect("an answer");
    let mut shows = async |count: usize| {
        let shown = status.wait_for(|status| status.partitions.len() == count);
        let shown = timeout(LONG, shown).await;
        assert!(shown.is_ok_and(|shown| shown.is_ok()), "{count}");
    };
    let backup = fleet.simulation.faults().back_up();
    let more = operator.set_partitions(Partitions::numbered(4)).await;
    more.expect("an answer");
    shows(4).await;
    fleet
        .until("more are owned", |judge| judge.owners().len() == 4)
        .await;
    let faults = fleet.simulation.faults();
    faults.restore(&backup, Duration::from_secs(1));
    sleep(Duration::from_secs(2)).await;
    fleet.judge.begin_anew();
    // The servers admit the clients once they have committed something in the new epoch.
    fleet.create(&["/later"], b"");
    shows(2).await;
    sleep(LONG).await;
    let status = operator.status().await.expect("an answer");
    let mut partitions = status.partitions.iter();
    assert!(partitions.all(|it| it.owner.is_some()), "{status:?}");
    assert_eq!(status.partitions.len(), 2);
    for (partition, worker) in fleet.judge.owners() {
        let is_recorded = status.partitions.iter().any(|it| it.id == partition);
        assert!(is_recorded, "{worker} owns {partition}");
    }
}
