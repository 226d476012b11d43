//! Sessions whose requests and notifications are counted.

use std::sync::Arc;

use anyhow::Context;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use zookeeper_recipes_core::{ConnectOptions, Session, ZookeeperEnsemble};
use zookeeper_recipes_testkit::meter::Meter;

use crate::testbed::SESSION_TIMEOUT;

/// How many sessions are opened at a time.
const OPENED_AT_A_TIME: usize = 32;

/// A session, with the counts of its requests and notifications.
#[derive(Clone, Debug)]
pub struct Member {
    pub session: Session,
    pub meter: Meter,
}

impl Member {
    /// Opens `number` sessions, each with a connection of its own.
    pub async fn connect(connect_string: &str, number: usize) -> anyhow::Result<Vec<Member>> {
        let connecting = stream::iter(0..number).map(|_| async {
            let options = ConnectOptions::new().session_timeout(SESSION_TIMEOUT);
            let ensemble = ZookeeperEnsemble::new(connect_string)?;
            let meter = Meter::default();
            let session = Session::open(meter.around(Arc::new(ensemble)), options).await?;
            anyhow::Ok(Member { session, meter })
        });
        let members = connecting.buffer_unordered(OPENED_AT_A_TIME).try_collect();
        members
            .await
            .with_context(|| format!("cannot open {number} sessions"))
    }

    pub async fn close(members: Vec<Member>) {
        let closing = stream::iter(members).map(|member| member.session.close());
        closing
            .buffer_unordered(OPENED_AT_A_TIME)
            .collect::<()>()
            .await;
    }
}
