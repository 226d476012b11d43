//! A rule whose directory's data is part of it.

use crate::support::*;

const PATH: &str = "/seats";

/// As many hold as the directory says.
#[derive(Debug)]
struct AsManyAsRecorded {
    /// What counts if there is no directory.
    without: Option<&'static [u8]>,
}

impl Rule for AsManyAsRecorded {
    fn label(&self) -> Cow<'_, str> {
        "seat-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let Some(data) = view.directory_data().or(self.without) else {
            return Err(InvalidInput::new("directory", PATH, "is not there"));
        };
        let text = String::from_utf8_lossy(data);
        let seats: usize = text
            .parse()
            .map_err(|_| InvalidInput::new("data", text.clone(), "is no number"))?;
        let me = view.place();
        if me < seats {
            return Ok(Verdict::Hold);
        }
        Ok(Verdict::Wait {
            on: (me - seats..me).collect(),
        })
    }

    fn directory_data(&self) -> Vec<u8> {
        b"1".to_vec()
    }

    fn reads_directory(&self) -> bool {
        true
    }

    fn may_be_replaced(&self, _: &str) -> bool {
        false
    }
}

async fn seats(simulation: &Simulation, process: &str) -> Queue {
    let without = Some(&b"1"[..]);
    queue(simulation, process, AsManyAsRecorded { without }).await
}

async fn queue(simulation: &Simulation, process: &str, rule: AsManyAsRecorded) -> Queue {
    let options = ConnectOptions::new().session_timeout(40 * SECOND);
    queue_by(
        &open(simulation.ensemble(process), options).await,
        PATH,
        rule,
    )
}

#[tokio::test(start_paused = true)]
async fn change_of_the_data_at_any_moment_of_a_waiters_look_is_seen() {
    for moment in 0..60 {
        let simulation = simulation!(
            seed: moment,
            network_delay: Duration::from_millis(2)..=Duration::from_millis(9),
        );
        let _held = hold(&seats(&simulation, "holder").await).await;
        let waiter = seats(&simulation, "waiter").await;
        let change = async {
            sleep(Duration::from_millis(moment)).await;
            simulation.administrator().set_data(PATH, b"2")
        };
        let patience = 10 * SECOND;
        let (waited, changed) = tokio::join!(waiter.acquire_timeout(patience), change);
        changed.expect("the directory is there");
        assert!(waited.is_ok(), "changed after {moment} ms: {waited:?}");
    }
}

/// The data is lowered just before the only one before the waiter goes.
async fn assert_a_going_is_no_turn_by_older_data(creates: i32) {
    for seed in 0..300 {
        let simulation = simulation!(
            seed,
            network_delay: Duration::from_millis(2)..=Duration::from_millis(9),
        );
        let administrator = simulation.administrator();
        let holder = seats(&simulation, "holder").await;
        take_turn(&holder).await;
        let counted = administrator.set_create_counter(PATH, creates);
        counted.expect("the directory is there");
        let held = hold(&holder).await;
        let waiter = seats(&simulation, "waiter").await;
        let going = async {
            sleep(Duration::from_millis(seed % 60)).await;
            administrator.set_data(PATH, b"0").expect("it is there");
            delete(&simulation, held.node_path());
        };
        let patience = 10 * SECOND;
        let (waited, ()) = tokio::join!(waiter.acquire_timeout(patience), going);
        assert!(waited.is_err(), "seed {seed}: {waited:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn going_at_any_moment_of_a_waiters_look_is_no_turn_by_older_data() {
    assert_a_going_is_no_turn_by_older_data(1).await;
}

/// All contenders have the same number, so the waiter reads each before it decides.
#[tokio::test(start_paused = true)]
async fn going_while_a_waiter_reads_contenders_of_one_number_is_no_turn_by_older_data() {
    assert_a_going_is_no_turn_by_older_data(i32::MAX).await;
}

#[tokio::test(start_paused = true)]
async fn waiter_whose_directory_is_deleted_as_it_looks_learns_that_its_znode_is() {
    for read in 1..=6 {
        let simulation = Simulation::default();
        let administrator = simulation.administrator();
        let _held = hold(&seats(&simulation, "holder").await).await;
        let waiter = seats(&simulation, "waiter").await;
        let late = Fault::new(FaultKind::RequestLate(SECOND));
        let late = late.of_process("waiter").on(RequestKind::Get).under(PATH);
        simulation.faults().inject(late.nth(read));
        let deleted = async {
            sleep(Duration::from_millis(500)).await;
            for child in administrator.children(PATH) {
                delete(&simulation, &format!("{PATH}/{child}"));
            }
            delete(&simulation, PATH);
        };
        let (waited, ()) = tokio::join!(waiter.acquire(), deleted);
        assert_fails!(waited, Error::ContenderDeleted);
    }
}

#[tokio::test(start_paused = true)]
async fn waiter_lists_once_when_it_comes_and_once_when_it_is_woken() {
    let simulation = Simulation::default();
    let held = hold(&seats(&simulation, "holder").await).await;
    let waiter = seats(&simulation, "waiter").await;
    let lists = || simulation.counters().requests(RequestKind::List);
    let before = lists();
    let waiting = spawned(&waiter);
    sleep(5 * SECOND).await;
    assert!(!waiting.is_finished());
    assert_eq!(lists() - before, 1);
    release(held).await;
    let hold = waiting.await.expect("no panic").expect("its turn");
    assert_eq!(lists() - before, 2);
    release(hold).await;
}

/// It has been the only one for some time, and lists the contenders no more.
#[tokio::test(start_paused = true)]
async fn contender_that_comes_back_alone_holds_by_the_data_of_now() {
    let simulation = Simulation::default();
    let queue = seats(&simulation, "one").await;
    let lists = || simulation.counters().requests(RequestKind::List);
    for _ in 0..10 {
        take_turn(&queue).await;
    }
    let before = lists();
    take_turn(&queue).await;
    assert_eq!(lists(), before);
    let lowered = simulation.administrator().set_data(PATH, b"0");
    lowered.expect("the directory is there");
    // No seat is left to wait for.
    let refused = queue.acquire().await;
    assert_fails!(refused, Error::InvalidInput);
}

#[tokio::test(start_paused = true)]
async fn try_without_a_directory_asks_the_rule_before_it_creates_one() {
    let simulation = Simulation::default();
    let rule = AsManyAsRecorded { without: None };
    let tried = queue(&simulation, "first", rule).await.try_acquire().await;
    assert_fails!(tried, Error::InvalidInput);
    let created = simulation.counters().requests(RequestKind::Create);
    assert_eq!(created, 0);
}
