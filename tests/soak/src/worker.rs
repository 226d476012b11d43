//! A process that contends for every recipe and works on partitions, and reports to the referee what
//! it holds.
//!
//! Its standard input has its [orders](crate::order::Order). It ends at once when its input ends, so that it never
//! outlives the program that started it.

use std::convert::Infallible;
use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::timeout;
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOptions, ConnectOptions, Partition, Partitions, Session,
};

use crate::contender::{Contender, PIECE, RECIPES};
use crate::line::{Line, Reported};
use crate::order::Order;
use crate::settings::{PARTITIONS, PATH, SESSION_TIMEOUT, TICK};

pub(crate) async fn run(connect: &str, referee: &str, id: &str) -> anyhow::Result<()> {
    let referee = Arc::new(Line::connect(referee)?);
    referee.report(&format!("ready {id}"))?;
    let options = ConnectOptions::new()
        .session_timeout(SESSION_TIMEOUT)
        .tick(TICK);
    let session = Session::connect_in_background(connect, options)?;
    let mut orders = Order::read_all();
    let mut contenders = JoinSet::new();
    for recipe in RECIPES {
        let contender = Contender {
            recipe,
            worker: id.to_owned(),
            session: session.clone(),
            referee: referee.clone(),
            orders: orders.clone(),
        };
        contenders.spawn(contender.run());
    }
    let options = AssignmentOptions::new().drain_at_most(SESSION_TIMEOUT / 2);
    let partitions = Partitions::numbered(PARTITIONS);
    let assignment = Assignment::with_options(&session, PATH, partitions, id, options)?;
    let (worker, referee) = (id.to_owned(), referee.clone());
    let work = move |owned: Partition| {
        let (worker, referee) = (worker.clone(), referee.clone());
        async move {
            work(&worker, &referee, owned).await;
            Ok::<(), Infallible>(())
        }
    };
    let shutdown = async move {
        // An error means that the process ends, too.
        let _ = orders.wait_for(|order| *order == Order::End).await;
    };
    assignment.run(shutdown, work).await?;
    while let Some(ended) = contenders.join_next().await {
        ended??;
    }
    session.close().await;
    Ok(())
}

/// Works until it should drain. The referee hears of the end before the partition is released.
async fn work(worker: &str, referee: &Arc<Line>, owned: Partition) {
    let whose = format!("{worker} assignment/{}", owned.id());
    let reported = Reported::new(referee, whose, owned.fencing_token().get(), [1, 1]);
    while !owned.is_draining() {
        if owned.is_held() {
            reported.works();
        }
        // A timeout means that the work continues.
        let _ = timeout(PIECE, owned.draining()).await;
    }
}
