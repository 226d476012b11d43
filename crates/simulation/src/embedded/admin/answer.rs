//! The answers of the admin port.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// An answer in JSON, with a line feed for people.
pub(super) fn json_response(status: StatusCode, value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json")];
    (status, headers, format!("{value:#}\n")).into_response()
}
