//! When the servers expire a session.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes_protocol::{CreateMode, RequestBody};

use super::site::Site;
use super::verdict::{Kept, Promise, broken};

pub(super) const EXPIRES: Promise = Promise {
    name: "session-expires",
    without: "two processes may hold, or a lock stays taken after its process has died",
};

pub(super) const LIVES: Promise = Promise {
    name: "session-lives",
    without: "a hold ends although its process answers",
};

/// How often the check looks.
const PAUSE: Duration = Duration::from_millis(50);

/// A server expires a session at the next tick after T, and a follower reports a session half a
/// tick late. One second is for elections and slow disks.
fn latest(timeout: Duration, tick: Option<Duration>) -> Duration {
    // By default T is at least two ticks.
    timeout + tick.unwrap_or(timeout / 2) * 3 / 2 + Duration::from_secs(1)
}

/// A session that sends nothing loses its ephemeral znode not before T, and within the bound.
pub(super) async fn expires(site: &Site<'_>) -> Kept {
    let mut observer = site.open(0).await?;
    let directory = site.directory(&mut observer, EXPIRES.name).await?;
    let path = format!("{directory}/ephemeral");
    let mut silent = site.open_caught_up(1).await?;
    let sent = Instant::now();
    silent.create(&path, CreateMode::Ephemeral).await?;
    let answered = Instant::now();
    let timeout = silent.session.timeout;
    let latest = latest(timeout, site.tick);
    loop {
        let asked = Instant::now();
        observer.sync(&path).await?;
        if observer.exists(&path).await?.is_none() {
            let after = sent.elapsed();
            observer.close().await;
            return match after < timeout {
                true => broken(format!(
                    "a session with T = {timeout:?} expired after {after:?}"
                )),
                false => Ok(format!(
                    "a silent session with T = {timeout:?} expired after {after:.1?} \
                     (allowed: from T to {latest:?})"
                )),
            };
        }
        if asked - answered > latest {
            return broken(format!(
                "a silent session with T = {timeout:?} was not expired after {latest:?}"
            ));
        }
        sleep(PAUSE).await;
    }
}

/// A session that sends nothing but pings lives on.
pub(super) async fn lives(site: &Site<'_>) -> Kept {
    let mut observer = site.open(0).await?;
    let directory = site.directory(&mut observer, LIVES.name).await?;
    let path = format!("{directory}/ephemeral");
    let mut pinging = site.open_caught_up(1).await?;
    pinging.create(&path, CreateMode::Ephemeral).await?;
    let began = Instant::now();
    let timeout = pinging.session.timeout;
    let long = latest(timeout, site.tick);
    while began.elapsed() < long {
        pinging.done(RequestBody::Ping).await?;
        observer.sync(&path).await?;
        if observer.exists(&path).await?.is_none() {
            return broken(format!(
                "a session with T = {timeout:?} that pings each {:?} expired after {:.1?}",
                timeout / 4,
                began.elapsed()
            ));
        }
        sleep(timeout / 4).await;
    }
    pinging.close().await;
    observer.close().await;
    Ok(format!(
        "a session with T = {timeout:?} that only pings lived for {long:?}"
    ))
}
