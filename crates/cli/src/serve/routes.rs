//! The requests that `zkr serve` answers.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, AUTHORIZATION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::stream;
use ring::digest::{SHA256, digest};
use tokio::sync::{Semaphore, watch};
use tokio::task::spawn_blocking;
use zookeeper_recipes_http::{Deadline, Refused, in_parts, streamed};

use super::events::Listener;
use super::parts::parts;
use super::snapshot::Snapshot;
use super::token::Token;

/// The page. It has its script and its style inside.
const PAGE: &str = include_str!("page.html");

/// What browsers may do with the page: run its script, use its style, and ask this server.
static PAGE_POLICY: LazyLock<String> = LazyLock::new(|| {
    let [script, style] = ["script", "style"].map(|tag| hash(inside(PAGE, tag)));
    format!(
        "default-src 'none'; script-src '{script}'; style-src '{style}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
});

/// The most streams of events at one time.
const MAX_STREAMS: usize = 64;

/// What the requests are answered with.
#[derive(Clone)]
pub(crate) struct Served {
    snapshots: watch::Receiver<Arc<Snapshot>>,
    ending: watch::Receiver<bool>,
    streams: Arc<Semaphore>,
    token: Option<Arc<Token>>,
    metrics_paths: usize,
    /// An older look is not ready.
    oldest: Duration,
}

impl Served {
    pub(crate) fn new(
        snapshots: watch::Receiver<Arc<Snapshot>>,
        ending: watch::Receiver<bool>,
        token: Option<Token>,
        metrics_paths: usize,
        oldest: Duration,
    ) -> Served {
        Served {
            snapshots,
            ending,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            token: token.map(Arc::new),
            metrics_paths,
            oldest,
        }
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.snapshots.borrow())
    }
}

pub(crate) fn router(served: Served) -> Router {
    let with_token = Router::new()
        .route("/api/overview", get(overview))
        .route("/api/queue", get(queue))
        .route("/api/sessions", get(sessions))
        .route("/events", get(events))
        .route("/metrics", get(metrics))
        .route_layer(from_fn_with_state(served.clone(), with_token));
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready))
        .merge(with_token)
        .fallback(unknown)
        .method_not_allowed_fallback(unknown_method)
        .with_state(served)
}

/// Refuses a request without the token, if there is one.
async fn with_token(State(served): State<Served>, request: Request, next: Next) -> Response {
    let shown = request.headers().get(AUTHORIZATION);
    let shown = shown.and_then(|it| it.to_str().ok()).unwrap_or_default();
    match &served.token {
        Some(token) if !token.is_shown_by(shown) => {
            let why = "The header Authorization has to be Bearer, a space and the token.";
            let refused = Refused::new(StatusCode::UNAUTHORIZED, why);
            with_header(refused, WWW_AUTHENTICATE, "Bearer")
        }
        _ => next.run(request).await,
    }
}

fn with_header(response: impl IntoResponse, name: HeaderName, value: &'static str) -> Response {
    let mut response = response.into_response();
    let value = HeaderValue::from_static(value);
    response.headers_mut().insert(name, value);
    response
}

async fn unknown(uri: Uri) -> Refused {
    Refused::not_found(format!("There is no {}: the page is at /.", uri.path()))
}

async fn unknown_method(method: Method) -> Response {
    let why = format!("{method} is not answered: this port changes nothing.");
    let refused = Refused::new(StatusCode::METHOD_NOT_ALLOWED, why);
    with_header(refused, ALLOW, "GET, HEAD")
}

async fn page() -> Response {
    let page = with_header(PAGE, CONTENT_TYPE, "text/html; charset=utf-8");
    with_header(page, CONTENT_SECURITY_POLICY, &PAGE_POLICY)
}

/// Ready if the last look is recent.
async fn ready(State(served): State<Served>) -> Result<&'static str, Refused> {
    let age = served.snapshot().live.age();
    if age > served.oldest {
        let why = format!("The last look is {} seconds old.", age.as_secs());
        return Err(Refused::new(StatusCode::SERVICE_UNAVAILABLE, why));
    }
    Ok("ok\n")
}

/// An answer in JSON that may be large, in parts.
fn json(deadline: Deadline, parts: impl Iterator<Item = String> + Send + 'static) -> Response {
    let response = in_parts(deadline, stream::iter(parts));
    with_header(response, CONTENT_TYPE, "application/json")
}

async fn overview(
    State(served): State<Served>,
    Extension(deadline): Extension<Deadline>,
) -> Response {
    json(deadline, served.snapshot().json())
}

async fn queue(
    State(served): State<Served>,
    Extension(deadline): Extension<Deadline>,
    uri: Uri,
) -> Result<Response, Refused> {
    let query = uri.query().unwrap_or_default().as_bytes();
    let mut fields = form_urlencoded::parse(query);
    let path = fields.find(|(name, _)| name == "path");
    let Some((_, path)) = path else {
        return Err(Refused::malformed(
            "The query has to be ?path= and the path of a queue.",
        ));
    };
    match served.snapshot().queue(&path) {
        Some(queue) => Ok(json(deadline, parts(queue.to_string()))),
        None => Err(Refused::not_found(
            "The last look has found no queue at this path.",
        )),
    }
}

async fn sessions(
    State(served): State<Served>,
    Extension(deadline): Extension<Deadline>,
) -> Result<Response, Refused> {
    let sessions = computed(&served, |snapshot| snapshot.sessions().to_string()).await?;
    Ok(json(deadline, parts(sessions)))
}

async fn metrics(State(served): State<Served>) -> Result<Response, Refused> {
    let paths = served.metrics_paths;
    let text = computed(&served, move |snapshot| snapshot.metrics(paths)).await?;
    Ok(with_header(
        text,
        CONTENT_TYPE,
        "text/plain; version=0.0.4; charset=utf-8",
    ))
}

/// A text of the last look. It takes a while for many queues, in which others are answered.
async fn computed(
    served: &Served,
    text: impl FnOnce(&Snapshot) -> String + Send + 'static,
) -> Result<String, Refused> {
    let snapshot = served.snapshot();
    let text = spawn_blocking(move || text(&snapshot)).await;
    text.map_err(|_| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, "The answer has failed."))
}

async fn events(
    State(served): State<Served>,
    Extension(deadline): Extension<Deadline>,
) -> Response {
    let Ok(permit) = served.streams.try_acquire_owned() else {
        let why = format!("{MAX_STREAMS} clients read the events already.");
        let refused = Refused::new(StatusCode::SERVICE_UNAVAILABLE, why);
        return with_header(refused, RETRY_AFTER, "10");
    };
    let listener = Listener {
        snapshots: served.snapshots,
        ending: served.ending,
        _permit: permit,
        last: None,
    };
    let response = streamed(deadline, listener.events());
    with_header(response, CONTENT_TYPE, "text/event-stream")
}

/// What is between the tags of this name.
fn inside<'p>(page: &'p str, tag: &str) -> &'p str {
    let (begin, end) = (format!("<{tag}>"), format!("</{tag}>"));
    let inside = page
        .split_once(&begin)
        .and_then(|(_, rest)| rest.split_once(&end));
    inside.map_or("", |(inside, _)| inside)
}

/// The hash of a script or a style, by which a policy allows it.
fn hash(text: &str) -> String {
    format!(
        "sha256-{}",
        STANDARD.encode(digest(&SHA256, text.as_bytes()))
    )
}
