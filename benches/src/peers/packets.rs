//! The packets between the libraries and their servers, counted on their way.

use std::collections::HashMap;
use std::ops::{AddAssign, Sub};

/// Packets with data of TCP. Acknowledgements alone and pings are not counted, retransmissions are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) to_server: u64,
    pub(crate) to_client: u64,
    /// How often the client sent when the server had sent last, or nobody had, on one connection.
    pub(crate) round_trips: u64,
}

/// The counts until now, of all connections.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    pub(crate) passed: Passed,
    /// By the ports of client and server: the connections whose client has sent last.
    client_was_last: HashMap<[u16; 2], bool>,
}

impl Packets {
    /// Counts a packet of IPv4, unless it carries no data of TCP, or a ping of a session.
    pub(crate) fn count(&mut self, packet: &[u8], to_server: bool) {
        let Some([from, to]) = ports_of_data(packet) else {
            return;
        };
        let ports = if to_server { [from, to] } else { [to, from] };
        let client_was_last = self.client_was_last.insert(ports, to_server);
        match to_server {
            true => self.passed.to_server += 1,
            false => self.passed.to_client += 1,
        }
        if to_server && client_was_last != Some(true) {
            self.passed.round_trips += 1;
        }
    }
}

/// A ping and the answer to one, by their lengths and their transaction number.
const PINGS: [[u8; 8]; 2] = [
    [0, 0, 0, 8, 0xff, 0xff, 0xff, 0xfe],
    [0, 0, 0, 16, 0xff, 0xff, 0xff, 0xfe],
];

/// The ports of a packet of IPv4 that carries data of TCP, other than a ping.
fn ports_of_data(packet: &[u8]) -> Option<[u16; 2]> {
    let short = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let head = usize::from(packet.first()? & 0x0f) * 4;
    let is_tcp = packet[0] >> 4 == 4 && *packet.get(9)? == 6;
    let heads = head + usize::from(packet.get(head + 12)? >> 4) * 4;
    let data = packet.get(heads..usize::from(short(2)?))?;
    let is_ping = data.len() <= 20 && PINGS.iter().any(|ping| data.starts_with(ping));
    (is_tcp && !data.is_empty() && !is_ping).then_some([short(head)?, short(head + 2)?])
}

impl Sub for Passed {
    type Output = Passed;

    fn sub(self, before: Passed) -> Passed {
        Passed {
            to_server: self.to_server - before.to_server,
            to_client: self.to_client - before.to_client,
            round_trips: self.round_trips - before.round_trips,
        }
    }
}

impl AddAssign for Passed {
    fn add_assign(&mut self, other: Passed) {
        self.to_server += other.to_server;
        self.to_client += other.to_client;
        self.round_trips += other.round_trips;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet of TCP with this many bytes of data.
    fn packet(from: u16, to: u16, data: u8) -> Vec<u8> {
        let mut packet = vec![0; 40 + usize::from(data)];
        (packet[0], packet[3], packet[9], packet[32]) = (0x45, 40 + data, 6, 0x50);
        packet[20..22].copy_from_slice(&from.to_be_bytes());
        packet[22..24].copy_from_slice(&to.to_be_bytes());
        packet
    }

    #[test]
    fn round_trip_is_what_is_sent_after_an_answer_on_the_same_connection() {
        let mut packets = Packets::default();
        packets.count(&packet(5, 1, 10), true);
        packets.count(&packet(5, 1, 10), true);
        packets.count(&packet(6, 1, 10), true);
        packets.count(&packet(1, 5, 0), false);
        packets.count(&packet(1, 5, 10), false);
        packets.count(&packet(5, 1, 0), true);
        packets.count(&packet(5, 1, 10), true);
        let mut ping = packet(5, 1, 12);
        ping[40..48].copy_from_slice(&PINGS[0]);
        packets.count(&ping, true);
        packets.count(&[0x60; 40], true);
        packets.count(&[0x45], true);
        let expected = Passed {
            to_server: 4,
            to_client: 1,
            round_trips: 3,
        };
        assert_eq!(packets.passed, expected);
    }
}
