//! Containers: directories that the servers delete.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use zookeeper_recipes_protocol::{CreateMode, ErrorCode, RequestBody};

use super::client::{Trouble, create};
use super::site::Site;
use super::verdict::{Flaw, Kept, Promise};

pub(super) const REAPED: Promise = Promise {
    name: "containers-go",
    without: "empty directories stay; delete them by hand if there are many",
};

/// How often the check looks.
const PAUSE: Duration = Duration::from_millis(250);

/// The servers delete a container some time after its last child.
pub(super) async fn are_reaped(site: &Site<'_>) -> Kept {
    let mut client = site.open(0).await?;
    let path = format!("{}/{}", site.root, REAPED.name);
    let container = RequestBody::CreateContainer(create(&path, CreateMode::Container));
    match client.done(container).await {
        Ok(_) => {}
        Err(trouble @ (Trouble::Closed(_) | Trouble::Refused(_, ErrorCode::Unimplemented))) => {
            return Err(Flaw::Substituted(trouble.to_string()));
        }
        Err(trouble) => return Err(trouble.into()),
    }
    let child = format!("{path}/child");
    client.create(&child, CreateMode::Ephemeral).await?;
    client.delete(&child).await?;
    let began = Instant::now();
    while client.exists(&path).await?.is_some() {
        if began.elapsed() > site.containers_within {
            return Err(Flaw::Substituted(format!(
                "an empty container was there after {:?}",
                site.containers_within
            )));
        }
        sleep(PAUSE).await;
    }
    let after = began.elapsed();
    client.close().await;
    Ok(format!("an empty container was deleted after {after:.1?}"))
}
