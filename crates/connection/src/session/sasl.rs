//! The exchange by which a session shows who it is: over each connection, before anything else.
//!
//! A server that requires SASL refuses all other requests before it.

use std::time::Duration;

use zookeeper_recipes_protocol::{OpCode, Reply, ReplyBody, RequestBody, SaslRequest};

use crate::error::DisconnectReason;
use crate::session::digest_md5::{DigestMd5, SaslStep};
use crate::session::machine::{Machine, Phase};

impl<R, W> Machine<R, W> {
    /// A server has confirmed the session: SASL comes first, if there are credentials for it.
    pub(crate) fn authenticate(&mut self, now: Duration) {
        let Some(sasl) = &mut self.sasl else {
            return self.restore(now);
        };
        let token = sasl.begin();
        self.phase = Phase::Authenticating { since: now };
        self.send_token(token);
    }

    fn send_token(&mut self, token: Vec<u8>) {
        let token = Some(token);
        self.send_own(RequestBody::Sasl(SaslRequest { token }));
    }

    /// The answer to a token of the exchange.
    ///
    /// The reply of a server that refuses the credentials, or has no SASL, has an error or no token.
    pub(crate) fn challenged(
        &mut self,
        now: Duration,
        frame: &[u8],
    ) -> Result<(), DisconnectReason> {
        let token = match Reply::decode(frame, OpCode::Sasl)?.body {
            ReplyBody::Sasl(response) => response.token,
            _ => None,
        };
        let sasl = self.sasl.as_mut().zip(token);
        match sasl.and_then(|(sasl, token)| sasl.next(&token)) {
            Some(SaslStep::Respond(token)) => self.send_token(token),
            Some(SaslStep::Done) => self.restore(now),
            None => return self.credentials_refused(DigestMd5::SCHEME.to_owned()),
        }
        Ok(())
    }
}
