//! Metrics for Prometheus: a worker under a lock, and the page that Prometheus reads.
//!
//! `cargo run --example prometheus`
//!
//! The feature `metrics` of `zookeeper-recipes` is on. The page `docs::events` of the crate says
//! what each metric is. Queries for a dashboard:
//!
//! | panel | query |
//! |---|---|
//! | who leads, one in the fleet | `sum(zookeeper_recipes_holding{recipe="election"})` |
//! | turns in a second | `sum by (name) (rate(zookeeper_recipes_acquired_total[5m]))` |
//! | time waited, 99th percentile | `histogram_quantile(0.99, sum by (name, le) (rate(zookeeper_recipes_waited_seconds_bucket[5m])))` |
//! | time held, 99th percentile | `histogram_quantile(0.99, sum by (name, le) (rate(zookeeper_recipes_held_seconds_bucket[5m])))` |
//! | waiting now | `sum by (name) (zookeeper_recipes_waiting)` |
//! | attempts that fail | `sum by (name, kind) (rate(zookeeper_recipes_failed_total[5m]))` |
//! | round trip to the ensemble | `histogram_quantile(0.99, sum by (instance, le) (rate(zookeeper_recipes_session_probe_seconds_bucket[5m])))` |
//!
//! Alerts:
//!
//! | when | expression |
//! |---|---|
//! | a hold was lost | `sum by (name, reason) (increase(zookeeper_recipes_lost_total[10m])) > 0` |
//! | nobody leads | `sum(zookeeper_recipes_holding{recipe="election"}) < 1` for two session timeouts |
//! | a lock is held for ten minutes | `min_over_time(zookeeper_recipes_holding{name="report"}[10m]) > 0` |
//! | sessions expire | `increase(zookeeper_recipes_session_expiries_total[1h]) > 0` |

use std::error::Error;

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use zookeeper_recipes::common::describe_metrics;
use zookeeper_recipes::{ExclusiveLock, LockOptions, Session};
use zookeeper_recipes_example_services::ask;
use zookeeper_recipes_examples::Playground;

/// The bounds of the histograms' buckets, in seconds.
const BUCKETS: [f64; 8] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0];

/// Installs the recorder, before the first session. What it returns prints the page.
fn install_recorder() -> Result<PrometheusHandle, Box<dyn Error>> {
    let builder = PrometheusBuilder::new().set_buckets(&BUCKETS)?;
    let handle = builder.install_recorder()?;
    describe_metrics();
    Ok(handle)
}

/// What the service does: three turns under the lock `report`.
async fn work(session: &Session) -> Result<(), Box<dyn Error>> {
    // The name is a label of the metrics. The path is none.
    let options = LockOptions::new().name("report");
    let lock = ExclusiveLock::with_options(session, "/locks/report", options)?;
    for _ in 0..3 {
        lock.acquire().await?.release().await?;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let metrics = install_recorder()?;
    let page = Router::new().route("/metrics", get(async move || metrics.render()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let serve = tokio::spawn(axum::serve(listener, page).into_future());

    let playground = Playground::open().await?;
    let session = playground.connect().await?;
    work(&session).await?;
    // Prometheus reads the page like this.
    let scraped = ask(&address.to_string(), "GET", "/metrics", "").await?;
    println!("{}", scraped.ok_or("no page")?);
    session.close().await;
    serve.abort();
    Ok(playground.close().await?)
}
