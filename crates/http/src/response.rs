//! Answers in JSON.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An answer in JSON, with a line feed for people.
pub fn json_response(status: StatusCode, value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, format!("{value:#}\n")).into_response()
}

/// A request that is refused, with one sentence that says why.
#[derive(Debug)]
pub struct Refused {
    status: StatusCode,
    why: String,
}

impl Refused {
    /// A refusal with this status.
    pub fn new(status: StatusCode, why: impl Into<String>) -> Refused {
        Refused {
            status,
            why: why.into(),
        }
    }

    /// The status 400.
    pub fn malformed(why: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, why)
    }

    /// The status 404.
    pub fn not_found(why: impl Into<String>) -> Refused {
        Refused::new(StatusCode::NOT_FOUND, why)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        json_response(self.status, &json!({ "error": self.why }))
    }
}
