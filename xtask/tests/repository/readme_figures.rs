//! The figures of the README and of the page of the benches are those of the reports.

use std::error::Error;
use std::fs;

use crate::root;

type Outcome = Result<(), Box<dyn Error>>;

/// The rows of the first table below a heading, without the row of the headings.
fn rows<'a>(text: &'a str, heading: &str) -> Vec<Vec<&'a str>> {
    let below = text.split_once(&format!("\n{heading}\n"));
    let lines = below.map_or("", |(_, below)| below).lines();
    lines
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|row| {
            let cells = row.trim_matches('|').split('|');
            cells.map(|cell| cell.trim().trim_matches('*')).collect()
        })
        .collect()
}

const PAGE: &str = "benches/report";

fn page() -> std::io::Result<String> {
    fs::read_to_string(root().join(PAGE).join("README.md"))
}

/// The first report of this kind that the page of the benches links to.
fn report(kind: &str) -> Result<String, Box<dyn Error>> {
    let page = page()?;
    let link = page.split(['(', ')']).find(|part| part.ends_with(kind));
    let link = link.ok_or_else(|| format!("no link to {kind}"))?;
    Ok(fs::read_to_string(root().join(PAGE).join(link))?)
}

fn figure(cell: &str) -> Option<f64> {
    let digits: String = cell.chars().filter(|char| *char != ',').collect();
    digits.trim_end_matches(" ms").parse().ok()
}

/// Whether the one figure is the other, rounded.
fn is_alike(shown: &str, found: &str) -> bool {
    match (figure(shown), figure(found)) {
        (Some(shown), Some(found)) => (shown - found).abs() <= 0.01 * found.abs(),
        _ => false,
    }
}

#[test]
fn figures_of_the_herd_are_those_of_the_report() -> Outcome {
    let page = page()?;
    let report = report("herd.md")?;
    let found = rows(&report, "## Exclusive lock");
    let shown = rows(&page, "## The cost of the thundering herd");
    assert_eq!(shown.len(), 8);
    for row in shown {
        let [way, contenders, woken, requests, bytes, handoff] = row[..] else {
            return Err(format!("{row:?}").into());
        };
        let way = match way {
            "predecessor" => "predecessor (no read)",
            "poll, every 100 ms" => "poll",
            way => way,
        };
        let same = found
            .iter()
            .find(|found| found[0] == way && found[1] == contenders);
        let same = same.ok_or_else(|| format!("{way}, {contenders}"))?;
        for (shown, place) in [(woken, 2), (requests, 4), (bytes, 5), (handoff, 7)] {
            assert!(is_alike(shown, same[place]), "{row:?}: {same:?}");
        }
    }
    Ok(())
}

#[test]
fn figures_on_loopback_are_those_of_the_report() -> Outcome {
    let page = page()?;
    let report = format!("\n{}", report("peers.md")?);
    let heading = "# The same work by these recipes, by Curator, by kazoo and by Client::lock";
    let found = rows(&report, heading);
    let shown = rows(&page, "## Measured on loopback");
    assert!(!shown.is_empty());
    for row in shown {
        let same = found.iter().find(|found| found[0] == row[0]);
        let same = same.ok_or_else(|| row[0].to_owned())?;
        let ratios = &same[same.len() - 3..];
        for (shown, found) in row[1..].iter().zip(ratios) {
            assert!(
                is_alike(shown, found) || (shown.is_empty() && *found == "–"),
                "{row:?}: {same:?}"
            );
        }
    }
    Ok(())
}

#[test]
fn figures_over_a_network_are_those_of_the_report() -> Outcome {
    let page = page()?;
    let report = report("network.md")?;
    let to_curator = rows(&report, "## How many times better ours is than Curator");
    let to_kazoo = rows(&report, "## How many times better ours is than kazoo");
    let figures = rows(&report, "## one server, 2 ms: all figures");
    let shown = rows(&page, "## Measured over a network");
    assert_eq!(shown.len(), to_curator.len());
    // The columns of the report: one server, then three, each at 0.5, 2 and 10 ms, and with losses.
    let (one_server, three_servers, round_trips) = (2, 6, 7);
    for row in shown {
        let of = |rows: &[Vec<&str>], library: &str, column: usize| {
            let same = rows
                .iter()
                .find(|found| found[0] == row[0] && (library.is_empty() || found[1] == library));
            same.map_or_else(String::new, |found| found[column].to_owned())
        };
        let found = [
            of(&to_curator, "", one_server),
            of(&to_curator, "", three_servers),
            of(&to_kazoo, "", one_server),
            of(&figures, "ours", round_trips),
            of(&figures, "Curator", round_trips),
            of(&figures, "kazoo", round_trips),
        ];
        for (shown, found) in row[1..].iter().zip(&found) {
            assert!(is_alike(shown, found), "{row:?}: {found:?}");
        }
    }
    Ok(())
}

#[test]
fn figures_of_the_readme_are_those_of_the_report() -> Outcome {
    let readme = fs::read_to_string(root().join("README.md"))?;
    let page = page()?;
    let found = rows(&page, "## Measured over a network");
    let shown = rows(&readme, "## Cost");
    assert!(!shown.is_empty());
    for row in shown {
        let same = found.iter().find(|found| found[0] == row[0]);
        let same = same.ok_or_else(|| row[0].to_owned())?;
        assert_eq!([row[1], row[2]], [same[1], same[3]], "{row:?}");
    }
    Ok(())
}
