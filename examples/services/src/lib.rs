//! What the examples of services and stores share: a PostgreSQL server, and a client of their pages.

use anyhow::Context;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub mod postgres;
#[cfg(doctest)]
mod readmes;

/// Sends a request by HTTP, and returns the text of the answer. `None` if its status is not 200.
pub async fn ask(
    address: &str,
    method: &str,
    path: &str,
    text: &str,
) -> anyhow::Result<Option<String>> {
    let mut connection = TcpStream::connect(address).await?;
    let length = text.len();
    let headers = format!("host: localhost\r\nconnection: close\r\ncontent-length: {length}");
    let request = format!("{method} {path} HTTP/1.1\r\n{headers}\r\n\r\n{text}");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let (head, page) = answer.split_once("\r\n\r\n").context("no HTTP answer")?;
    Ok(head.starts_with("HTTP/1.1 200").then(|| page.to_owned()))
}
