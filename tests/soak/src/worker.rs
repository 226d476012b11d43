//! A process that contends for every recipe and works on partitions, and reports to the referee what
//! it holds.
//!
//! Its standard input has its [orders](Order). It ends at once when its input ends, so that it never
//! outlives the program that started it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use zookeeper_recipes_assignment::{
    Assignment, AssignmentOptions, ConnectOptions, Partition, Partitions, Session,
};

use crate::contender::{Contender, PIECE, RECIPES};
use crate::line::{Line, Reported};
use crate::processes::{PARTITIONS, PATH};
use crate::{SESSION_TIMEOUT, TICK};

/// What a process is to do, by a line on its standard input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// `work`: it releases each hold after some milliseconds.
    Work,
    /// `stay`: it keeps each hold until the hold is lost.
    Stay,
    /// `end`: it shuts down.
    End,
}

impl Order {
    const ALL: [Order; 3] = [Order::Work, Order::Stay, Order::End];

    pub(crate) fn line(self) -> &'static str {
        match self {
            Order::Work => "work",
            Order::Stay => "stay",
            Order::End => "end",
        }
    }
}

pub(crate) async fn run(connect: &str, referee: &str, id: &str) -> anyhow::Result<()> {
    let referee = Arc::new(Line::connect(referee)?);
    referee.report(&format!("ready {id}"))?;
    let options = ConnectOptions::new()
        .session_timeout(SESSION_TIMEOUT)
        .tick(TICK);
    let session = Session::connect_in_background(connect, options)?;
    let mut orders = read_orders();
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
    let work = async |owned: Partition| -> Result<(), Infallible> {
        work(id, &referee, owned).await;
        Ok(())
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

/// The orders. A thread ends the process when the input ends, even if the tasks are blocked.
fn read_orders() -> watch::Receiver<Order> {
    let (sender, orders) = watch::channel(Order::Work);
    std::thread::spawn(move || {
        for line in io::stdin().lines().map_while(Result::ok) {
            let order = Order::ALL.into_iter().find(|order| order.line() == line);
            order.map(|order| sender.send_replace(order));
        }
        std::process::exit(1);
    });
    orders
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
