//! What no recipe can work with: a clear error from each, and nothing left behind.

use std::time::Duration;

use zookeeper_client::{Acl, Acls, AuthId, CreateMode, Permission};
use zookeeper_recipes_core::{AllOf, Error, Refusal, Session, WaitStrategy};
use zookeeper_recipes_simulation::{Simulation, SimulationOptions};
use zookeeper_recipes_suite::{
    LOCK, LONG, RecipeOptions, TestedRecipe, administrator, children, exists, server, session,
    simulated_session,
};

/// What the refusal of an acquisition and of a try say.
async fn refusals(recipe: TestedRecipe, session: &Session, path: &str) -> [Error; 2] {
    let recipe = recipe.at(session, path, recipe.weights[0]);
    let acquired = recipe
        .acquire()
        .await
        .expect_err("there is no place for it");
    let tried = recipe.try_acquire().await;
    [acquired, tried.expect_err("there is no place for it")]
}

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
async fn a_path_that_no_request_can_carry_is_refused_in_few_words() {
    let simulation = Simulation::new(SimulationOptions::default());
    let session = simulated_session(&simulation, "one").await;
    let path = "/long".repeat(220_000);
    for recipe in TestedRecipe::ALL {
        let made = recipe.make(&session, &path, recipe.weights[0], RecipeOptions::new());
        let error = made.expect_err("no request can carry it").to_string();
        assert!(error.contains("1100000 bytes"), "{recipe:?}: {error}");
        assert!(error.len() < 100, "{recipe:?}: {error}");
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

#[tokio::test(flavor = "multi_thread")]
async fn an_ephemeral_directory_is_refused() {
    let server = server().await;
    let client = administrator(&server).await;
    let ephemeral = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    // The data is that of a semaphore's directory.
    let created = client.create("/ephemeral", b"5", &ephemeral).await;
    created.expect("it can be created");
    let session = session(&server, LONG).await;
    for recipe in TestedRecipe::ALL {
        // The znode of a lock without a queue would be the ephemeral one itself.
        let paths = match recipe.queues {
            true => &["/ephemeral", "/ephemeral/below"][..],
            false => &["/ephemeral/below"],
        };
        for path in paths {
            let made = recipe.at(&session, path, recipe.weights[0]);
            let error = made.acquire().await.expect_err("no place for a queue");
            let refusal = match &error {
                Error::Refused { refusal, .. } => Some(refusal),
                _ => None,
            };
            let expected = Some(&Refusal::NoChildrenForEphemerals);
            assert_eq!(refusal, expected, "{recipe:?}: {error}");
            assert!(error.to_string().contains("ephemeral"), "{error}");
        }
    }
    assert!(children(&client, "/ephemeral").await.is_empty());
}

fn is_no_permission(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::NoAuth | Refusal::NoPermission(_))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_without_permission_is_refused() {
    let server = server().await;
    let client = administrator(&server).await;
    let read_only = [Acl::new(Permission::READ, AuthId::anyone())];
    let options = CreateMode::Persistent.with_acls((&read_only[..]).into());
    let created = client.create("/guarded", b"5", &options).await;
    created.expect("it can be created");
    let session = session(&server, LONG).await;
    for recipe in TestedRecipe::ALL {
        let path = match recipe.queues {
            true => "/guarded",
            false => "/guarded/lock",
        };
        for error in refusals(recipe, &session, path).await {
            assert!(
                matches!(&error, Error::Refused { refusal, path, .. }
                    if is_no_permission(refusal) && path == "/guarded"),
                "{recipe:?}: {error}"
            );
        }
    }
    assert!(children(&client, "/guarded").await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_chroot_is_named() {
    let server = server().await;
    let client = administrator(&server).await;
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let created = client.mkdir("/not/there", &persistent).await;
    created.expect("it can be created");
    let chroot = format!("{}/not/there", server.connect_string());
    let session = session(&chroot, LONG).await;
    for path in ["/not/there", "/not"] {
        client.delete(path, None).await.expect("it is empty");
    }
    for recipe in TestedRecipe::ALL {
        for path in ["/lock", "/locks/a"] {
            let made = recipe.at(&session, path, recipe.weights[0]);
            let error = made.acquire().await.expect_err("there is no place for it");
            let named = matches!(&error, Error::MissingChroot { chroot } if chroot == "/not/there");
            assert!(named, "{recipe:?}: {error}");
            assert!(error.to_string().contains("/not/there"), "{error}");
            let listed = made.contenders().await;
            let error = listed.expect_err("an empty list would look like an empty queue");
            let named = matches!(&error, Error::MissingChroot { chroot } if chroot == "/not/there");
            assert!(named, "{recipe:?}: {error}");
        }
    }
    assert!(!exists(&client, "/not").await);
}
