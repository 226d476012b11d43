//! The packets between the libraries and their servers, counted on their way.

use std::collections::HashMap;
use std::ops::{AddAssign, Sub};

/// Packets with data of TCP. Acknowledgements alone, pings and probes are not counted, retransmissions are.
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
    /// By the ports of client and server.
    connections: HashMap<[u16; 2], Connection>,
}

#[derive(Debug, Default)]
struct Connection {
    client_was_last: bool,
    /// The number of the last request that the session has sent by itself.
    by_itself: Option<[u8; 4]>,
}

impl Packets {
    /// Counts a packet of IPv4, unless it carries no data of TCP, or is a ping or a probe.
    ///
    /// A session sends these by itself, also if nobody uses it.
    pub(crate) fn count(&mut self, packet: &[u8], to_server: bool) {
        let Some(([from, to], data)) = ports_and_data(packet) else {
            return;
        };
        let ports = if to_server { [from, to] } else { [to, from] };
        let connection = self.connections.entry(ports).or_default();
        let word = |at: usize| data.get(at..at + 4)?.try_into().ok();
        let is_one_frame =
            word(0).is_some_and(|it| u32::from_be_bytes(it) as usize + 4 == data.len());
        let number: Option<[u8; 4]> = word(4);
        match to_server {
            true if is_one_frame && matches!(word(8), Some([0, 0, 0, 9 | 11])) => {
                connection.by_itself = number;
                return;
            }
            false if is_one_frame && number == connection.by_itself => return,
            true => self.passed.to_server += 1,
            false => self.passed.to_client += 1,
        }
        if to_server && !connection.client_was_last {
            self.passed.round_trips += 1;
        }
        connection.client_was_last = to_server;
    }
}

/// The ports and the data of a packet of IPv4 that carries data of TCP.
fn ports_and_data(packet: &[u8]) -> Option<([u16; 2], &[u8])> {
    let short = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    let head = usize::from(packet.first()? & 0x0f) * 4;
    let is_tcp = packet[0] >> 4 == 4 && *packet.get(9)? == 6;
    let heads = head + usize::from(packet.get(head + 12)? >> 4) * 4;
    let data = packet.get(heads..usize::from(short(2)?))?;
    let ports = [short(head)?, short(head + 2)?];
    (is_tcp && !data.is_empty()).then_some((ports, data))
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
        let mut probe = packet(5, 1, 12);
        probe[40..].copy_from_slice(&[0, 0, 0, 8, 0, 0, 0, 7, 0, 0, 0, 9]);
        packets.count(&probe, true);
        probe[20..24].rotate_left(2);
        packets.count(&probe, false);
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
