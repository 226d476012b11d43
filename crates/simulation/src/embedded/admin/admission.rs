//! Which requests the admin port answers: none that a web page of another origin sends.
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

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;

use super::response::Refused;

/// The most bytes of a body.
pub(super) const LARGEST_BODY: usize = 64 << 10;

/// Decides which requests the admin port answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Admission {
    /// The port that the requests come to.
    pub(super) port: u16,
}

/// Passes a request on, or refuses it.
pub(super) async fn admit(
    State(admission): State<Admission>,
    request: Request,
    next: Next,
) -> Result<Response, Refused> {
    admission.check(&request)?;
    Ok(next.run(request).await)
}

impl Admission {
    fn check(self, request: &Request) -> Result<(), Refused> {
        let forbidden = |why| Err(Refused::new(StatusCode::FORBIDDEN, why));
        // HTTP lets a client name the host in the request line, too.
        let named = request.uri().authority();
        let is_own = |host: &HeaderValue| host.to_str().is_ok_and(|host| self.is_own(host));
        if !only(request.headers(), &HOST).is_some_and(is_own)
            || named.is_some_and(|named| !self.is_own(named.as_str()))
        {
            let port = self.port;
            return forbidden(format!(
                "The header Host has to be 127.0.0.1:{port}, localhost:{port} or [::1]:{port}."
            ));
        }
        let mut origins = request.headers().get_all(ORIGIN).iter();
        if !origins.all(|origin| self.is_own_origin(origin)) {
            return forbidden("A web page of another origin may send nothing here.".to_owned());
        }
        check_body(request)
    }

    /// True if this is `<host>:<port>` of the admin port.
    fn is_own(self, authority: &str) -> bool {
        let host = match authority.strip_suffix(&format!(":{}", self.port)) {
            Some(host) => host,
            // A client leaves out the port that is HTTP's own.
            None if self.port == 80 => authority,
            None => return false,
        };
        let own = ["127.0.0.1", "localhost", "[::1]"];
        own.iter().any(|own| own.eq_ignore_ascii_case(host))
    }

    fn is_own_origin(self, origin: &HeaderValue) -> bool {
        let origin = origin.to_str().ok();
        let authority = origin.and_then(|origin| origin.strip_prefix("http://"));
        authority.is_some_and(|authority| self.is_own(authority))
    }
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
#[path = "../../../tests/unit/admission.rs"]
mod tests;
