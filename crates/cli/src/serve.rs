//! The page, the JSON and the metrics of `zkr serve`.
//!
//! | path | answer |
//! |---|---|
//! | `/` | the page, without data |
//! | `/api/overview` | all queues and circles, as the last look has shown them |
//! | `/api/queue?path=…` | the contenders of one queue |
//! | `/api/sessions` | the sessions, what each holds, and for whom each waits |
//! | `/events` | server-sent events: the overview, and then what each look has changed |
//! | `/metrics` | for Prometheus |
//! | `/healthz`, `/readyz` | 200 if the process serves; if the last look is recent |

mod events;
mod metrics;
mod parts;
mod routes;
mod sessions;
mod snapshot;
mod token;
mod updates;

pub(crate) use routes::{Served, router};
pub(crate) use snapshot::Showing;
pub(crate) use token::Token;
pub(crate) use updates::{follow, snapshot};
