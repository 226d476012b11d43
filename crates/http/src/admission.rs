//! Which requests a port answers: none that a web page of another origin sends.
//!
//! A browser sends the requests of any web page to a port of 127.0.0.1. It adds headers that the page
//! cannot change:
//!
//! | what the page does | what the browser adds | the answer |
//! |---|---|---|
//! | `fetch`, a form, a script | `Origin: http://evil.example`, or `Origin: null` | 403 |
//! | asks whether it may send JSON (a preflight) | the same | 403 |
//! | uses a name of its own that resolves to 127.0.0.1 (DNS rebinding) | `Host: evil.example:8080` | 403 |
//! | sends a body, in an old browser that adds no `Origin` | no JSON as `Content-Type` | 415 |
//!
//! A page can still send a `GET` that has no `Origin`, as for an image. Such a request changes nothing,
//! and the browser does not show its answer to the page.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use axum::Router;
use axum::body::HttpBody;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderName, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};

use crate::response::Refused;

/// The most bytes of a body.
const LARGEST_BODY: usize = 64 << 10;

/// The headers of each answer.
const HEADERS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// The policy of an answer that has no other: it is no page.
const NO_PAGE: &str = "default-src 'none'; frame-ancestors 'none'";

/// By which names a port is asked.
#[derive(Clone, Debug)]
pub struct Admission {
    hosts: Hosts,
}

#[derive(Clone, Debug)]
enum Hosts {
    /// A loopback address with this port.
    Loopback(u16),
    /// An IP address, `localhost` or one of these names, with any port.
    Named(Arc<[String]>),
}

impl Admission {
    /// A port that serves this machine only: `127.0.0.1`, `localhost` or `[::1]`, with this port.
    pub fn loopback(port: u16) -> Admission {
        Admission {
            hosts: Hosts::Loopback(port),
        }
    }

    /// A port that is asked by these names, by `localhost` or by an IP address, with any port: that of
    /// a tunnel or of a proxy.
    ///
    /// A web page that rebinds a name is asked for by that name, never by an IP address.
    pub fn named(names: impl IntoIterator<Item = String>) -> Admission {
        Admission {
            hosts: Hosts::Named(names.into_iter().collect()),
        }
    }

    fn check(&self, request: &Request) -> Result<(), Refused> {
        let forbidden = |why| Err(Refused::new(StatusCode::FORBIDDEN, why));
        // HTTP lets a client name the host in the request line, too.
        let named = request.uri().authority();
        let host = only(request.headers(), &HOST).and_then(|host| host.to_str().ok());
        let host = host.filter(|host| self.is_own(host));
        let Some(host) = host.filter(|_| named.is_none_or(|it| self.is_own(it.as_str()))) else {
            return forbidden(format!("The header Host has to be {}.", self.own()));
        };
        let mut origins = request.headers().get_all(ORIGIN).iter();
        if !origins.all(|origin| is_of(origin, host)) {
            return forbidden("A web page of another origin may send nothing here.".to_owned());
        }
        if !is_of_own_page(request) {
            return forbidden("A web page of another site may load nothing from here.".to_owned());
        }
        check_body(request)
    }

    /// True if the port has this name, with its port.
    fn is_own(&self, authority: &str) -> bool {
        let is = |host: &str, own: &str| own.eq_ignore_ascii_case(host);
        match &self.hosts {
            Hosts::Loopback(port) => {
                let host = match authority.strip_suffix(&format!(":{port}")) {
                    Some(host) => host,
                    // A client leaves out the port that is HTTP's own.
                    None if *port == 80 => authority,
                    None => return false,
                };
                let own = ["127.0.0.1", "localhost", "[::1]"];
                own.iter().any(|own| is(host, own))
            }
            Hosts::Named(names) => {
                let host = without_port(authority);
                let inner = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
                inner.is_some_and(|inner| inner.parse::<Ipv6Addr>().is_ok())
                    || host.parse::<Ipv4Addr>().is_ok()
                    || is(host, "localhost")
                    || names.iter().any(|own| is(host, own))
            }
        }
    }

    /// The own names, for a person.
    fn own(&self) -> String {
        match &self.hosts {
            Hosts::Loopback(port) => format!("127.0.0.1:{port}, localhost:{port} or [::1]:{port}"),
            Hosts::Named(_) => "an IP address, localhost or a name of --host".to_owned(),
        }
    }
}

/// The authority without its port, if it has one.
fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()) => {
            host
        }
        _ => authority,
    }
}

/// True if this is the origin of the page at this host.
fn is_of(origin: &HeaderValue, host: &str) -> bool {
    let origin = origin.to_str().unwrap_or_default();
    let authority = ["http://", "https://"]
        .iter()
        .find_map(|scheme| origin.strip_prefix(scheme));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

/// False if the browser says that a page of another site wants this. A person may follow its links.
fn is_of_own_page(request: &Request) -> bool {
    let is = |name: &'static str, value: &str| {
        let header = only(request.headers(), &HeaderName::from_static(name));
        header.is_some_and(|it| it.as_bytes() == value.as_bytes())
    };
    let has_site = request.headers().contains_key("sec-fetch-site");
    let is_own = is("sec-fetch-site", "same-origin") || is("sec-fetch-site", "none");
    let is_link = is("sec-fetch-mode", "navigate") && is("sec-fetch-dest", "document");
    !has_site || is_own || is_link && request.method() == Method::GET
}

/// The router, behind the checks of each request. Each answer says that no browser may keep, frame or
/// share it.
pub fn guarded(router: Router, admission: Admission) -> Router {
    router
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .layer(from_fn_with_state(admission, admit))
}

/// Passes a request on, or refuses it.
async fn admit(State(admission): State<Admission>, request: Request, next: Next) -> Response {
    let mut response = match admission.check(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let policy = headers.entry(CONTENT_SECURITY_POLICY);
    policy.or_insert(HeaderValue::from_static(NO_PAGE));
    response
}

/// Refuses a body that is no JSON, or too large.
fn check_body(request: &Request) -> Result<(), Refused> {
    let size = request.body().size_hint();
    if size.lower() > LARGEST_BODY as u64 {
        let why = format!("The body has more than {LARGEST_BODY} bytes.");
        return Err(Refused::new(StatusCode::PAYLOAD_TOO_LARGE, why));
    }
    let headers = request.headers();
    let has_no_body = size.exact() == Some(0) && !headers.contains_key(CONTENT_TYPE);
    if has_no_body || only(headers, &CONTENT_TYPE).is_some_and(is_json) {
        return Ok(());
    }
    Err(Refused::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "A body needs the header Content-Type: application/json.",
    ))
}

fn is_json(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default();
    let kind = text.split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// The value of a header. `None` if the request has several, or none.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
#[path = "../tests/unit/admission.rs"]
mod tests;
