//! What no recipe can work with: a clear error from each, and nothing left behind.

use std::time::Duration;

use zookeeper_recipes::AllOf;
use zookeeper_recipes_core::{
    Acl, AfterSessionLoss, AuthId, ConnectOptions, CreateMode, Error, InvalidInput, NodePath,
    Permission, QueueOptions, Refusal, Session, WaitStrategy,
};
use zookeeper_recipes_election::LeaderElection;
use zookeeper_recipes_group::Group;
use zookeeper_recipes_lock::{ExclusiveLock, SingleNodeLock};
use zookeeper_recipes_rwlock::RwLock;
use zookeeper_recipes_semaphore::Semaphore;
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::{LOCK, RecipeOptions, TestedRecipe, simulated_session};

#[tokio::test(start_paused = true)]
async fn a_path_that_cannot_be_a_recipes_is_refused_and_quoted() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    for path in [
        "",
        "/",
        "locks",
        "/locks/",
        "//locks",
        "/a//b",
        "/a/./b",
        "/a/..",
        "/zookeeper",
        "/zookeeper/quota",
        "/a\0b",
        "/a\nb",
        "/a\u{85}",
        "/a\u{1f512}",
    ] {
        for recipe in TestedRecipe::ALL {
            let made = recipe.make(&session, path, recipe.weights[0], RecipeOptions::new());
            let error = made.expect_err("no recipe's path");
            assert_eq!(error.value(), path, "{recipe:?}");
            assert!(error.to_string().contains(&format!("{path:?}")), "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn durations_of_any_length_can_be_waited() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    for long in [Duration::MAX, Duration::MAX / 2] {
        for (number, recipe) in TestedRecipe::ALL.into_iter().enumerate() {
            let path = format!("/recipe-{number}");
            let free = recipe.at(&session, &path, recipe.weights[0]);
            let hold = free.acquire_timeout(long).await.expect("it is free");
            let polls = recipe.waiting(WaitStrategy::Poll(long));
            hold.release().await.expect("it is held");
            let polls = polls.at(&session, &path, recipe.weights[0]);
            let hold = polls.acquire_timeout(long).await.expect("it is free");
            hold.release().await.expect("it is held");
        }
        let lock = || LOCK.at(&session, "/lock", 1);
        let hold = lock().acquire().await.expect("it is free");
        let polls = LOCK.waiting(WaitStrategy::Poll(long));
        let waits = polls.at(&session, "/lock", 1);
        let waited = waits.acquire_timeout(Duration::from_secs(1)).await;
        assert!(waited.is_err_and(|error| error.is_timeout()));
        hold.release().await.expect("it is held");
        let all = AllOf::new([lock()]).expect("one recipe");
        let all = all.acquire_timeout(long).await.expect("it is free");
        all.release().await.expect("it is held");
    }
}

#[tokio::test(start_paused = true)]
async fn a_directory_that_takes_no_contender_is_refused_with_its_cause() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let anyone = |permissions| [Acl::new(permissions, AuthId::anyone())];
    let path = NodePath::new("/any").expect("a good path");
    let client = session.server(&path).await.expect("it is open");
    for (directory, mode, granted, cause) in [
        (
            "/ephemeral",
            CreateMode::Ephemeral,
            Permission::ALL,
            Refusal::NoChildrenForEphemerals,
        ),
        (
            "/guarded",
            CreateMode::Persistent,
            Permission::READ,
            Refusal::NoPermission(Permission::CREATE),
        ),
    ] {
        // The data is that of a semaphore's directory.
        let created = client.create(directory, b"5", mode, &anyone(granted));
        created.await.expect("it is free");
        for recipe in TestedRecipe::ALL {
            // The znode of a lock without a queue would be the directory itself.
            let path = match recipe.queues {
                true => directory.to_owned(),
                false => format!("{directory}/lock"),
            };
            let made = recipe.at(&session, &path, recipe.weights[0]);
            let acquired = made.acquire().await.map(drop);
            for outcome in [acquired, made.try_acquire().await.map(drop)] {
                let error = outcome.expect_err("there is no place for it");
                let is_clear =
                    matches!(&error, Error::Refused { refusal, .. } if *refusal == cause);
                assert!(is_clear, "{recipe:?}: {error}");
            }
        }
        let children = simulation.administrator().children(directory);
        assert_eq!(children, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_option_that_a_recipe_cannot_use_is_refused_when_it_is_made() {
    type Make = fn(&Session, QueueOptions) -> Result<(), InvalidInput>;
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let new = QueueOptions::new;
    let set = [
        ("strategy", new().strategy(WaitStrategy::Parent)),
        ("data", new().data("node-7")),
        (
            "after_session_loss",
            new().after_session_loss(AfterSessionLoss::Requeue),
        ),
        ("mark_release", new().mark_release(false)),
        ("one_contender", new().one_contender()),
    ];
    let recipes: [(Make, &[&str]); 6] = [
        (
            |session, options| ExclusiveLock::with_options(session, "/a", options).map(drop),
            &[],
        ),
        (
            |session, options| RwLock::with_options(session, "/a", options).map(drop),
            &["one_contender"],
        ),
        (
            |session, options| Semaphore::with_options(session, "/a", 2, options).map(drop),
            &["strategy", "mark_release", "one_contender"],
        ),
        (
            |session, options| LeaderElection::with_options(session, "/a", "b", options).map(drop),
            &["strategy", "data", "mark_release", "one_contender"],
        ),
        (
            |session, options| SingleNodeLock::with_options(session, "/a", options).map(drop),
            &[
                "strategy",
                "after_session_loss",
                "mark_release",
                "one_contender",
            ],
        ),
        (
            |session, options| Group::with_options(session, "/a", options).map(drop),
            &[
                "strategy",
                "data",
                "after_session_loss",
                "mark_release",
                "one_contender",
            ],
        ),
    ];
    for (make, refused) in recipes {
        for (name, options) in &set {
            let outcome = make(&session, options.clone());
            let named = outcome.err().map(|error| error.value().to_owned());
            let expected = refused.contains(name).then(|| (*name).to_owned());
            assert_eq!(named, expected, "{name}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_chroot_is_named() {
    let simulation = Simulation::new(SimulationOptions::default());
    let administrator = simulation.administrator();
    let created = administrator.create("/app", b"", CreateMode::Persistent);
    created.expect("it is free");
    let ensemble = simulation.process("one").with_chroot("/app").ensemble();
    let session = Session::open(ensemble, ConnectOptions::new()).await;
    let session = session.expect("the chroot is there");
    administrator.delete("/app").expect("it is empty");
    for recipe in TestedRecipe::ALL {
        for path in ["/lock", "/locks/a"] {
            let made = recipe.at(&session, path, recipe.weights[0]);
            let acquired = made.acquire().await.map(drop);
            // An empty list would look like an empty queue.
            for outcome in [acquired, made.contenders().await.map(drop)] {
                let error = outcome.expect_err("there is no place for it");
                let named = matches!(&error, Error::MissingChroot { chroot } if chroot == "/app");
                assert!(named, "{recipe:?}: {error}");
            }
        }
    }
}
