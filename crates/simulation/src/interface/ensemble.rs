//! An ensemble, as the recipes use it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use zookeeper_recipes_core::ensemble::{
    AuthId, Ensemble, Scope, ServerSession, SessionEnd, SessionId,
};
use zookeeper_recipes_core::{Identity, ServerError};

use super::session::SimulatedSession;
use crate::process::machine::{Clock, ProcessId};
use crate::process::turns::Kind;
use crate::run::shared::Shared;
use crate::run::tasks;
use crate::wire::connection::ClientId;

/// The ensemble, as one process reaches it.
#[derive(Debug)]
pub(crate) struct SimulatedEnsemble {
    pub(crate) shared: Arc<Shared>,
    pub(crate) process: ProcessId,
    pub(crate) clock: Clock,
    pub(crate) name: String,
    pub(crate) chroot: String,
    pub(crate) identities: Vec<AuthId>,
}

impl Ensemble for SimulatedEnsemble {
    fn connect(&self) -> BoxFuture<'_, Result<Arc<dyn ServerSession>, ServerError>> {
        let mut identities = vec![AuthId::new("ip", "127.0.0.1")];
        identities.extend(self.identities.iter().cloned());
        let (own_identity, client, opened, states) = self.shared.with(|world| {
            let rng = &mut world.kernel().rng;
            let secret = format!("{:032x}:{:032x}", rng.u128(..), rng.u128(..));
            let own_identity = AuthId::new("digest", &secret);
            identities.push(own_identity.clone());
            let (client, opened, states) = world.open_client(self.process, identities);
            (own_identity, client, opened, states)
        });
        let mut opening = Opening {
            shared: Arc::clone(&self.shared),
            client: Some(client),
        };
        async move {
            opened
                .await
                .unwrap_or(Err(ServerError::SessionOver(SessionEnd::Closed)))?;
            opening.is_done();
            let (id, timeout) = self.shared.with(|world| {
                let client = world.clients.get(&client);
                client.map_or((SessionId(0), Duration::ZERO), |client| {
                    (SessionId(client.session), client.timeout)
                })
            });
            let session = SimulatedSession {
                shared: Arc::clone(&self.shared),
                client,
                id,
                timeout,
                states,
                own_identity,
                scope: Scope::new(&self.chroot, self.identities.is_empty()),
            };
            Ok(Arc::new(session) as Arc<dyn ServerSession>)
        }
        .boxed()
    }

    fn now(&self) -> Duration {
        self.clock.at(self.shared.now())
    }

    fn address(&self) -> String {
        format!("simulation (from {})", self.name)
    }

    fn servers(&self) -> Vec<String> {
        vec![format!("simulation {:020}", self.shared.number())]
    }

    fn chroot(&self) -> &str {
        &self.chroot
    }

    fn identity(&self) -> Identity {
        let bits = self.shared.with(|world| world.kernel().rng.u128(..));
        Identity::from_random_bits(bits)
    }

    fn task(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        let shared = Arc::clone(&self.shared);
        let process = self.process;
        async move { tasks::run(&shared, process, Kind::Background, work).await }.boxed()
    }
}

/// A session that is being opened: left to its timeout where nobody waits for it any more.
struct Opening {
    shared: Arc<Shared>,
    client: Option<ClientId>,
}

impl Opening {
    fn is_done(&mut self) {
        self.client = None;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        if let Some(client) = self.client {
            self.shared.with(|world| world.abandon(client));
        }
    }
}
