//! The report of the bench of the network.

use zookeeper_recipes_benches::report::{Cell, Machine, Plot, Report, Table, shown};

use super::limit;
use super::measurement::Measured;
use crate::peer::Peer;
use crate::processor::Cost;
use crate::row::Row;
use crate::summary::{Summary, picture};
use crate::target::Target;

/// How clients reach the servers.
pub(super) const NETWORK: &str = "clients over a network of this machine's own, see below";

impl Measured<'_> {
    /// A line for each work of each library.
    fn table(&self) -> Table {
        let summary = &self.summary;
        let lines = summary.plan.rows.iter();
        let lines = lines.flat_map(|&row| summary.plan.peers.iter().map(move |&peer| (row, peer)));
        let lines = lines.filter_map(|key| Some((key, summary.costs.get(&key)?)));
        type Line<'a> = ((Row, Peer), &'a Cost);
        Table::of(
            lines,
            &[
                ("work", &|((row, _), _): &Line<'_>| row.title().into()),
                ("library", &|((_, peer), _)| peer.name().into()),
                ("turns [1/s]", &|((row, peer), _)| {
                    summary.figures.median(*row, *peer).into()
                }),
                ("ours to it", &|((row, peer), _)| {
                    let is_other = *peer != Peer::Ours;
                    let ratio = is_other.then(|| summary.ratio(*row, *peer));
                    ratio.flatten().into()
                }),
                ("p50 [ms]", &|(_, cost)| cost.percentile(0.5).into()),
                ("p99 [ms]", &|(_, cost)| cost.percentile(0.99).into()),
                ("p99.9 [ms]", &|(_, cost)| cost.percentile(0.999).into()),
                ("round trips", &|(_, cost)| {
                    cost.for_a_turn(cost.passed.round_trips).into()
                }),
                ("packets to server", &|(_, cost)| {
                    cost.for_a_turn(cost.passed.to_server).into()
                }),
                ("to client", &|(_, cost)| {
                    cost.for_a_turn(cost.passed.to_client).into()
                }),
                ("switches", &|(_, cost)| cost.switches().into()),
                ("processor [µs]", &|(_, cost)| {
                    cost.of_a_turn(cost.client).into()
                }),
            ],
        )
    }
}

/// Writes the report.
///
/// # Errors
///
/// If a picture cannot be drawn.
pub(super) fn report(measured: &[Measured<'_>], machine: Machine) -> anyhow::Result<Report> {
    let title = "The same work over a network, by these recipes, by Curator and by kazoo";
    let mut report = Report::new("network", title, machine);
    let Some(first) = measured.first() else {
        return Ok(report);
    };
    report.paragraph(&first.summary.participants());
    report.heading("How many times better ours is than Curator");
    report.table("ratios", &ratios(measured, Peer::Curator));
    report.paragraph(
        "Each column is a network, by its round trip and by the share of the packets that it \
         loses each way. Each figure is the median of the ratios of turns in each round.",
    );
    for of in measured.chunk_by(|one, other| one.servers == other.servers) {
        let name = format!("ratios-{}", of[0].servers);
        report.plot(&name, &picture_of_ratios(of, Peer::Curator))?;
    }
    report.heading("How many times better ours is than kazoo");
    report.table("ratios-kazoo", &ratios(measured, Peer::Kazoo));

    for one in measured.iter().filter(|it| it.is_of_the_goals()) {
        report.heading(&format!("What is to be reached: {}", one.name()));
        let name = format!("targets-{}", one.servers);
        let targets = one.summary.targets(Target::over_a_network());
        report.table(&name, &targets);
        let name = format!("round-trips-{}", one.servers);
        report.plot(&name, &picture_of_round_trips(one))?;
    }
    for (one, number) in measured.iter().zip(1..) {
        report.heading(&format!("{}: all figures", one.name()));
        report.table(&format!("figures-{number}"), &one.table());
        report.paragraph(&format!(
            "To connect to a server took {} ms.",
            shown(one.connects_in)
        ));
    }
    limit::add(&mut report, measured);
    report.heading("How it is measured");
    report.paragraph(&method(&first.summary));
    Ok(report)
}

/// A line for each work, with the ratio over each network.
fn ratios(measured: &[Measured<'_>], other: Peer) -> Table {
    let names = measured.iter().map(Measured::name);
    let rows = measured[0].summary.plan.rows.iter().map(|&row| {
        let ratios = measured
            .iter()
            .map(|it| it.summary.ratio(row, other).into());
        [Cell::from(row.title())]
            .into_iter()
            .chain(ratios)
            .collect()
    });
    let columns = ["work".to_owned()].into_iter().chain(names);
    Table::new(columns.collect(), rows.collect())
}

fn picture_of_ratios(measured: &[Measured<'_>], other: Peer) -> Plot {
    let title = format!("{}: how many times better ours is", measured[0].ensemble());
    picture(
        title,
        "ours to Curator's",
        &measured[0].summary.plan.rows,
        measured.iter().map(|one| {
            let ratio = move |row| one.summary.ratio(row, other);
            (one.network(), ratio)
        }),
    )
}

fn picture_of_round_trips(one: &Measured<'_>) -> Plot {
    let Summary { plan, costs, .. } = &one.summary;
    picture(
        format!("{}: round trips of a turn", one.name()),
        "round trips, counted from the packets",
        &plan.rows,
        plan.peers.iter().map(|&peer| {
            let round_trips = move |row| {
                let cost = costs.get(&(row, peer))?;
                cost.for_a_turn(cost.passed.round_trips)
            };
            (peer.name().to_owned(), round_trips)
        }),
    )
}

fn method(summary: &Summary<'_>) -> String {
    format!(
        "- The servers run in one network namespace and the libraries in another. Each namespace \
         has a TUN device with an MTU of 1,500 bytes. The bench reads each packet from one device, \
         and writes it to the other half a round trip later. It loses packets at random. So TCP \
         of both sides sees a network: acknowledgements, Nagle's algorithm and retransmissions are \
         the kernel's. What the machine adds to a round trip is in the times to connect, above.\n\
         - Clients, servers and the bench share the processors. The threads that delay packets \
         have the highest priority.\n\
         - One server has its data in memory. Each of three servers has its data on one disk, \
         and waits for it at each commit. There is no delay between them, and clients connect to \
         the two followers.\n\
         - Round trips and packets are counted where the packets are delayed, for each turn, over all \
         turns. Packets with data count, acknowledgements alone, pings and probes do not, retransmissions do. A \
         round trip is a packet to the server that follows one from the server on the same \
         connection. In a queue the packets of all contenders count.\n\
         - A turn is an acquisition and its release. The percentiles are of the time of whole \
         turns, with the wait in the queue. Switches are voluntary ones of all threads of the \
         library's process; processor time is that process's.\n\
         - Each library was measured {} times over each network, for {:?} each time, in turns. \
         Before that, each did each work for {:?} without a delay, so that Java had compiled the \
         code in use.",
        summary.plan.rounds, summary.plan.time, summary.plan.warm_up,
    )
}
