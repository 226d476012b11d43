//! Transfers and proclamations, with Curator's latch in the election.

use std::time::Duration;

use tokio::task::JoinSet;
use zookeeper_recipes_election::{LeaderElection, Leadership};
use zookeeper_recipes_interop::{Conversation, Referee, Report};
use zookeeper_recipes_suite::{LONG, TestServer, in_time, on_both_servers, queue_length, session};

use crate::peers::{Peer, available};
use crate::process::{Contenders, Language, PATH, Task, all_done, until};

on_both_servers!(embedded at night:
    latch_before_the_successor_leads_and_after_it_the_successor,
    latch_is_not_put_to_sleep_by_notices_and_proclamations,
);

const LATCH: &str = "curator-latch-0";

struct Stage {
    server: TestServer,
    referee: Referee,
    /// Campaigns never.
    operator: LeaderElection,
}

impl Stage {
    async fn new(server: TestServer) -> Stage {
        let session = session(&server, LONG).await;
        Stage {
            referee: Referee::listen(1).expect("a free port"),
            operator: LeaderElection::new(&session, PATH, "operator").expect("a good path"),
            server,
        }
    }

    /// A candidate of ours, in a session of its own.
    async fn candidate(&self, id: &'static str) -> Candidate {
        let session = session(&self.server, LONG).await;
        let conversation = Conversation::connect(self.referee.address()).await;
        Candidate {
            election: LeaderElection::new(&session, PATH, id).expect("a good path"),
            referee: conversation.expect("the referee listens"),
        }
    }

    /// Starts a latch of Curator that leads once, and stays long enough that a second leader would
    /// come in beside it.
    async fn latch(&self, place: usize) -> Contenders {
        let task = Task::new(&self.server, 1, Duration::from_secs(1));
        let latch = Contenders::start(Language::Curator, &task, &self.referee, &[("latch", 1)]);
        queue_length(&self.operator, place).await;
        latch
    }

    async fn led_by(&self, id: &str) -> Report {
        until("it leads", &self.referee, |report| {
            report.inside.iter().any(|name| name == id)
        })
        .await
    }
}

/// A candidate of ours that reports to the referee when it leads.
struct Candidate {
    election: LeaderElection,
    referee: Conversation,
}

impl Candidate {
    async fn lead(&mut self) -> Leadership {
        let leadership = self.election.acquire().await.expect("it leads");
        let znode = leadership.node_path().rsplit('/').next();
        let znode = znode.expect("a name").to_owned();
        let id = self.election.id();
        self.report(&format!("enter {id} exclusive {znode}")).await;
        leadership
    }

    async fn resign(&mut self, leadership: Leadership) {
        self.report(&format!("leave {}", leadership.id())).await;
        leadership.release().await.expect("it resigns");
    }

    async fn report(&mut self, line: &str) {
        self.referee
            .report(line)
            .await
            .expect("the referee answers");
    }

    /// Campaigns again and again, and resigns when it is asked to.
    async fn campaign(mut self) {
        loop {
            let leadership = self.lead().await;
            leadership.asked_to_resign().await;
            self.resign(leadership).await;
        }
    }
}

/// The names of all who have led, in that order. The test fails if two have led at once.
fn leaders(report: &Report) -> Vec<&str> {
    assert_eq!(report.violations, [""; 0]);
    assert!(report.companions.values().all(|beside| beside.is_empty()));
    report.entries.iter().map(String::as_str).collect()
}

async fn latch_before_the_successor_leads_and_after_it_the_successor(server: TestServer) {
    if !available("transfers with Curator", Peer::Curator) {
        return;
    }
    let stage = Stage::new(server).await;
    let mut ours = JoinSet::new();
    ours.spawn(stage.candidate("leader").await.campaign());
    stage.led_by("leader").await;
    let latch = stage.latch(2).await;
    ours.spawn(stage.candidate("between").await.campaign());
    queue_length(&stage.operator, 3).await;
    ours.spawn(stage.candidate("successor").await.campaign());
    queue_length(&stage.operator, 4).await;

    let transferred = stage.operator.transfer_to("successor").await;
    transferred.expect("the successor is named");
    let report = stage.led_by("successor").await;
    assert_eq!(leaders(&report), ["leader", LATCH, "successor"]);
    all_done([latch], &stage.referee).await;
    let leader = stage.operator.leader().await.expect("it is known");
    assert_eq!(leader.expect("somebody leads").id, "successor");
    assert_eq!(stage.referee.report().entries.len(), 3);
    assert_eq!(ours.len(), 3, "no candidate has failed");
}

async fn latch_is_not_put_to_sleep_by_notices_and_proclamations(server: TestServer) {
    if !available("proclamations with Curator", Peer::Curator) {
        return;
    }
    let stage = Stage::new(server).await;
    let mut first = stage.candidate("first").await;
    let leads = first.lead().await;
    let mut second = stage.candidate("second").await;
    let campaign = tokio::spawn(async move {
        let leads = second.lead().await;
        (second, leads)
    });
    queue_length(&stage.operator, 2).await;
    let latch = stage.latch(3).await;

    // The latch waits behind a candidate that waits.
    for said in ["one", "two"] {
        leads.term().proclaim(said).await.expect("it is proclaimed");
    }
    let named = stage.operator.transfer_to("second").await;
    named.expect("the successor is named");
    in_time("it is asked", leads.asked_to_resign()).await;
    first.resign(leads).await;
    let (mut second, leads) = in_time("it leads", campaign).await.expect("no panic");

    // The latch waits behind the leader.
    let proclaimed = leads.term().proclaim("three").await;
    proclaimed.expect("it is proclaimed");
    let named = stage.operator.transfer_to("second").await;
    named.expect("the successor is named again");
    let leader = stage.operator.leader().await.expect("it is known");
    let said = leader.expect("somebody leads").proclaimed;
    assert_eq!(said.as_deref(), Some("three"));
    second.resign(leads).await;

    let report = stage.led_by(LATCH).await;
    assert_eq!(leaders(&report), ["first", "second", LATCH]);
    all_done([latch], &stage.referee).await;
}
