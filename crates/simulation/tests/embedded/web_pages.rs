//! The admin port and the requests that it must not take: of web pages, of slow clients, large ones.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::json;

use crate::admin::{Place, place};

/// Longer than the server waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Sends these lines and this body, and returns the status of the answer.
fn status(place: &Place, head: &[&str], body: &str) -> u16 {
    let mut stream = TcpStream::connect(&place.admin).expect("it listens");
    let text = format!("{}\r\n\r\n{body}", head.join("\r\n"));
    stream.write_all(text.as_bytes()).expect("it reads");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("an open socket");
    let mut answer = Vec::new();
    // A server that has not read all ends the connection by a reset, after its answer.
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8(answer).expect("text");
    let status = answer.split(' ').nth(1).expect("a status");
    status.parse().expect("a number")
}

/// Waits until the server has closed a connection.
fn wait_until_closed(mut stream: &TcpStream) {
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("an open socket");
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
}

#[test]
fn request_of_a_web_page_of_another_origin_is_refused() {
    let place = place(3);
    let host = format!("Host: {}", place.admin);
    let (_, port) = place.admin.split_once(':').expect("a port");
    let rebound = format!("Host: evil.example:{port}");
    let other_port = "Host: 127.0.0.1:1".to_owned();
    let absolute = format!("POST http://evil.example:{port}/members/1/stop HTTP/1.1");
    let by_ip = format!("Origin: http://127.0.0.1:{port}.evil.example");
    let stop = "POST /members/1/stop HTTP/1.1";
    let cases: [(&[&str], u16); 17] = [
        (&[stop, &host, "Origin: http://evil.example"], 403),
        (&[stop, &host, "Origin: null"], 403),
        (&[stop, &host, "Origin: http://127.0.0.1:1"], 403),
        (&[stop, &host, "Origin: http://localhost"], 403),
        (&[stop, &host, &by_ip], 403),
        (
            &[
                stop,
                &host,
                "Origin: null",
                "Content-Type: application/json",
            ],
            403,
        ),
        (&[stop, &rebound], 403),
        (&[stop, &other_port], 403),
        (&[stop, "Host: 127.0.0.1"], 403),
        (&[stop, "Host:"], 403),
        (&[stop, &host, &rebound], 403),
        (&[stop, &rebound, &host], 403),
        (&[&absolute, &host], 403),
        (&["POST /members/1/stop HTTP/1.0"], 403),
        (&["POST /members/1/stop HTTP/1.0", &rebound], 403),
        // A form without fields.
        (
            &[
                stop,
                &host,
                "Content-Type: application/x-www-form-urlencoded",
            ],
            415,
        ),
        (
            &[stop, &host, "Content-Type: text/plain; application/json"],
            415,
        ),
    ];
    for (head, expected) in cases {
        assert_eq!(status(&place, head, ""), expected, "{head:?}");
    }
    let answer = place.done("GET /members", &json!({}));
    assert_eq!(
        answer["members"][1]["state"], "follower",
        "nothing was stopped"
    );
}

#[test]
fn question_and_read_of_a_web_page_of_another_origin_are_refused() {
    let place = place(3);
    let host = format!("Host: {}", place.admin);
    let (_, port) = place.admin.split_once(':').expect("a port");
    let rebound = format!("Host: evil.example:{port}");
    let preflight = [
        "OPTIONS /members/1/stop HTTP/1.1",
        &host,
        "Origin: http://evil.example",
        "Access-Control-Request-Method: POST",
    ];
    assert_eq!(status(&place, &preflight, ""), 403);
    for path in ["/", "/members", "/sessions", "/faults", "/nothing"] {
        let read = format!("GET {path} HTTP/1.1");
        assert_eq!(status(&place, &[&read, &rebound], ""), 403, "{path}");
    }
}

#[test]
fn body_has_to_be_json() {
    let place = place(1);
    let host = format!("Host: {}", place.admin);
    let (post, length) = ("POST /faults/drop-reply HTTP/1.1", "Content-Length: 2");
    let json = "Content-Type: application/json";
    let text = "Content-Type: text/plain";
    let chunked = "Transfer-Encoding: chunked";
    assert_eq!(status(&place, &[post, &host, length], "{}"), 415);
    assert_eq!(status(&place, &[post, &host, length, text], "{}"), 415);
    assert_eq!(
        status(&place, &[post, &host, length, json, text], "{}"),
        415
    );
    assert_eq!(
        status(&place, &[post, &host, chunked, text], "0\r\n\r\n"),
        415
    );
    let get = "GET /members HTTP/1.1";
    assert_eq!(status(&place, &[get, &host, length, text], "{}"), 415);
    assert_eq!(place.done("GET /faults", &json!({}))["waiting"], 0);
}

#[test]
fn own_page_and_tools_are_answered() {
    let place = place(1);
    let (_, port) = place.admin.split_once(':').expect("a port");
    for own in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        let host = format!("Host: {own}:{port}");
        assert_eq!(status(&place, &["GET /members HTTP/1.1", &host], ""), 200);
        let origin = format!("Origin: http://{own}:{port}");
        let json = "Content-Type: Application/JSON; charset=utf-8";
        let lag = ["POST /members/0/lag HTTP/1.1", &host, &origin, json];
        let length = "Content-Length: 18";
        let head = [&lag[..], &[length]].concat();
        assert_eq!(status(&place, &head, r#"{"milliseconds":1}"#), 200);
        let stop = ["POST /members/0/start HTTP/1.1", &host];
        assert_eq!(status(&place, &stop, ""), 200);
        let old = ["GET /members HTTP/1.0", &host];
        assert_eq!(status(&place, &old, ""), 200);
        let absolute = format!("GET http://{own}:{port}/members HTTP/1.1");
        assert_eq!(status(&place, &[&absolute, &host], ""), 200);
    }
}

#[test]
fn large_heads_and_bodies_are_refused() {
    let place = place(1);
    let host = format!("Host: {}", place.admin);
    let json = "Content-Type: application/json";
    let large = format!("X-Large: {}", "x".repeat(20 << 10));
    assert_eq!(status(&place, &["GET / HTTP/1.1", &host, &large], ""), 431);
    let cut = "POST /faults/cut HTTP/1.1";
    let announced = ["Content-Length: 65537", json];
    let head = [&[cut, &host][..], &announced].concat();
    assert_eq!(status(&place, &head, ""), 413);
    let chunk = format!("10001\r\n{}", " ".repeat(65_537));
    let head = [cut, &host, json, "Transfer-Encoding: chunked"];
    assert_eq!(status(&place, &head, &chunk), 413);
}

#[test]
fn slow_connections_are_closed_and_others_are_answered_meanwhile() {
    let place = place(1);
    let half_body = format!(
        "POST /faults/cut HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
         Content-Length: 40\r\n\r\n{{",
        place.admin
    );
    let sent = [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost: x\r\nX-",
        &half_body,
    ];
    // More than may be open at one time.
    let slow = (0..300).map(|number| {
        let mut stream = TcpStream::connect(&place.admin).expect("it listens");
        let text = sent[number % sent.len()];
        stream.write_all(text.as_bytes()).expect("it reads");
        stream
    });
    let slow: Vec<TcpStream> = slow.collect();
    place.done("GET /members", &json!({}));
    for stream in &slow {
        wait_until_closed(stream);
    }
}
