//! What servers answer to the words of four letters that operators send them.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The longest wait for the answer of a server.
const PATIENCE: Duration = Duration::from_millis(500);

/// The most bytes of an answer. Each connection has about a hundred in the answer to `cons`.
const LARGEST_ANSWER: u64 = 16 << 20;

/// The port of a host that is given without one.
const PORT: &str = "2181";

/// The hosts of a connect string, each with its port.
pub(crate) fn hosts(connect: &str) -> Vec<String> {
    let hosts = connect.split(',').map(str::trim);
    let host = |host: &str| {
        let host = host.split_once("://").map_or(host, |(_, host)| host);
        let host = host.split_once('/').map_or(host, |(host, _)| host);
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if has_port {
            host.to_owned()
        } else {
            format!("{host}:{PORT}")
        }
    };
    hosts.map(host).collect()
}

/// A server's answer to a word. `None` if it does not answer, or does not allow the word.
pub(crate) async fn ask(host: &str, word: &str) -> Option<String> {
    let conversation = async {
        let mut stream = TcpStream::connect(host).await.ok()?;
        stream.write_all(word.as_bytes()).await.ok()?;
        let mut answer = Vec::new();
        let mut limited = stream.take(LARGEST_ANSWER);
        limited.read_to_end(&mut answer).await.ok()?;
        String::from_utf8(answer).ok()
    };
    let answer = timeout(PATIENCE, conversation).await.ok()??;
    let is_refusal = answer.contains("is not in the whitelist") || answer.trim().is_empty();
    (!is_refusal).then_some(answer)
}

/// The address of each session's client, if the servers tell it.
pub(crate) async fn addresses(connect: &str) -> HashMap<i64, String> {
    let hosts = hosts(connect);
    let answers = join_all(hosts.iter().map(|host| ask(host, "cons"))).await;
    let answers = answers.into_iter().flatten();
    answers.flat_map(|answer| clients(&answer)).collect()
}

/// The sessions and addresses in an answer to `cons`.
fn clients(answer: &str) -> Vec<(i64, String)> {
    let client = |line: &str| {
        let (address, rest) = line.trim().strip_prefix('/')?.split_once('[')?;
        let (_, session) = rest.split_once("sid=0x")?;
        let digits = session
            .split(|letter: char| !letter.is_ascii_hexdigit())
            .next()?;
        // The id has all 64 bits, and the first one is its sign.
        let session = u64::from_str_radix(digits, 16).ok()?;
        Some((
            i64::from_ne_bytes(session.to_ne_bytes()),
            address.to_owned(),
        ))
    };
    answer.lines().filter_map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_no_chroot_and_a_port() {
        let hosts = hosts("zk1:99, tcp://zk2,[::1]:77/app/x");
        assert_eq!(hosts, ["zk1:99", "zk2:2181", "[::1]:77"]);
    }

    #[test]
    fn clients_are_read_from_the_list_of_connections() {
        let answer = " /10.0.0.7:53904[1](queued=0,recved=2,sent=2,sid=0x1000a3b4c5d0000,lop=PING)\n \
                      /127.0.0.1:1[0](queued=0,recved=1,sent=0)\n\n";
        let expected = (0x0100_0a3b_4c5d_0000, "10.0.0.7:53904".to_owned());
        assert_eq!(clients(answer), [expected]);
    }
}
