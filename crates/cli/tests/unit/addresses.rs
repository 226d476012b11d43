//! Tests of `src/addresses.rs`.

use clap::Parser;
use tokio::time::sleep;
use zookeeper_recipes_simulation::Simulation;

use super::*;

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    connection: Connection,
}

/// The program runs for long, and somebody replaces the certificates meanwhile.
#[tokio::test(start_paused = true)]
async fn addresses_stay_while_a_file_of_the_options_cannot_be_read() {
    let session = Simulation::default().session("zkr").await;
    let session = session.expect("a session opens");
    let options = Options::parse_from(["zkr", "--tls", "--ca", "/is/being/replaced"]);
    let mut book = AddressBook::new(&session, &options.connection);
    let wrong = book.refreshed(|_| false).await;
    assert!(wrong.is_err(), "what is wrong from the start is an error");
    let known: Addresses = [(7, "10.0.0.7:53904".to_owned())].into_iter().collect();
    (book.known, book.asked_at) = (known.clone(), Some(Instant::now()));
    sleep(LONG_PAUSE).await;
    let kept = book.refreshed(|_| false).await;
    assert!(kept.expect("no error").is_same(&known));
}
