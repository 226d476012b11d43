//! A hold of each recipe with a time limit.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use zookeeper_recipes_core::{HoldState, LossReason};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::{
    RWLOCK, RecipeOptions, TestedRecipe, WRITER, downgrade, simulated_session,
};

const SECOND: Duration = Duration::from_secs(1);
const LIMIT: Duration = Duration::from_secs(3);

#[tokio::test(start_paused = true)]
async fn hold_of_each_recipe_ends_when_its_time_is_up() {
    let simulation = Simulation::new(SimulationOptions::default());
    let one = simulated_session(&simulation, "one").await;
    let two = simulated_session(&simulation, "two").await;
    for (number, tested) in TestedRecipe::ALL.into_iter().enumerate() {
        let path = format!("/recipe-{number}");
        let all = tested.capacity.min(WRITER);
        let options = RecipeOptions::new().max_hold(LIMIT).data("one");
        let limited = tested.make(&one, &path, all, options);
        let hangs = limited.expect("good options").acquire().await;
        let hangs = hangs.expect("nobody is before it");
        let rival = tested.at(&two, &path, all);
        let next = timeout(LIMIT + SECOND, rival.acquire()).await;
        let next = next.expect("in time").expect("its turn");
        assert_eq!(
            hangs.state(),
            HoldState::Lost(LossReason::TimeLimit),
            "{tested:?}"
        );
        drop(hangs);
        next.release().await.expect("it is held");
    }
}

#[tokio::test(start_paused = true)]
async fn time_limit_of_zero_is_refused_by_each_recipe() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    for tested in TestedRecipe::ALL {
        let options = RecipeOptions::new().max_hold(Duration::ZERO).data("one");
        let refused = tested.make(&session, "/recipe", tested.weights[0], options);
        assert!(refused.is_err(), "{tested:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn writer_that_becomes_a_reader_keeps_the_time_that_it_has_left() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let options = RecipeOptions::new().max_hold(LIMIT);
    let writer = RWLOCK.make(&session, "/lock", WRITER, options);
    let writing = writer.expect("good options").acquire().await;
    let writing = writing.expect("nobody is before it");
    sleep(2 * SECOND).await;
    let how = RWLOCK.downgrade.expect("a writer becomes a reader");
    let reading = downgrade(writing, how).await.expect("it is held");
    assert!(reading.remaining() <= SECOND);
    assert_eq!(reading.lost().await, LossReason::TimeLimit);
    let writer = RWLOCK.at(&session, "/lock", WRITER);
    let next = timeout(SECOND, writer.acquire()).await.expect("in time");
    assert!(next.expect("its turn").is_held());
}
