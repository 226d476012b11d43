//! The environment of the library in a simulated process.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_connection::{
    Connecting, DisconnectReason, Host, LookingUp, Network, Stream,
};
use zookeeper_recipes_core::{ConnectOptions, Environment, InvalidInput};

use super::connections::{Knock, LookUp};
use super::process::{Clock, ProcessId};
use super::stream::SimulatedStream;
use super::turns::Kind;
use crate::engine::shared::Shared;
use crate::engine::tasks;

/// A simulated process, as the library in it sees it.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedEnvironment {
    pub(crate) shared: Arc<Shared>,
    pub(crate) process: ProcessId,
    pub(crate) clock: Clock,
}

impl Network for SimulatedEnvironment {
    fn look_up(&self, host: &Host) -> LookingUp {
        let (shared, name) = (Arc::clone(&self.shared), host.name.clone());
        Box::pin(async move {
            let (found, after) = match shared.with(|world| world.look_up(&name)) {
                LookUp::Found(found, after) => (Ok(found), after),
                LookUp::Failed(after) => {
                    let silent = io::Error::other("the name servers do not answer");
                    (Err(DisconnectReason::NoAddress(Arc::new(silent))), after)
                }
            };
            if !after.is_zero() {
                tokio::time::sleep(after).await;
            }
            found
        })
    }

    fn connect(&self, _: &Host, address: SocketAddr, _: Duration) -> Connecting {
        let (shared, process) = (Arc::clone(&self.shared), self.process);
        Box::pin(async move {
            let refused = || io::Error::from(io::ErrorKind::ConnectionRefused);
            let (knock, path) = shared.with(|world| {
                let path = world.servers.path_delay_of(process);
                (world.knock(process, address), path)
            });
            let round_trip = path * 2;
            match knock {
                Knock::Lost => std::future::pending().await,
                Knock::Refused(after) => {
                    tokio::time::sleep(after + round_trip).await;
                    Err(refused().into())
                }
                Knock::Accepted { server, after } => {
                    tokio::time::sleep(after + round_trip).await;
                    let stream = SimulatedStream::open(&shared, process, server);
                    let stream = stream.ok_or_else(refused)?;
                    Ok(Box::new(stream) as Box<dyn Stream>)
                }
            }
        })
    }

    fn now(&self) -> Duration {
        self.clock.at(self.shared.now())
    }
}

impl Environment for SimulatedEnvironment {
    fn network(&self, options: &ConnectOptions) -> Result<Arc<dyn Network>, InvalidInput> {
        // The connection of the library, which is simulated as it is, uses both.
        options.refuse_all_but(&["session_timeout", "auth"], "a simulated ensemble")?;
        Ok(Arc::new(self.clone()))
    }

    fn random(&self) -> u128 {
        self.shared.with(|world| world.kernel().rng.u128(..))
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let (shared, process) = (Arc::clone(&self.shared), self.process);
        async move { tasks::run(&shared, process, Kind::Background, work).await }.boxed()
    }
}
