//! Tests of `src/four_letter.rs`.

use super::*;

#[test]
fn clients_are_read_from_the_list_of_connections() {
    let answer = " /10.0.0.7:53904[1](queued=0,recved=2,sent=2,sid=0x1000a3b4c5d0000,lop=PING)\n \
                  /127.0.0.1:1[0](queued=0,recved=1,sent=0)\n \
                  /[0:0:0:0:0:0:0:1]:539[1](queued=0,recved=2,sent=2,sid=0x7,lop=PING)\n\n";
    let expected = [
        (0x0100_0a3b_4c5d_0000, "10.0.0.7:53904".to_owned()),
        (7, "[0:0:0:0:0:0:0:1]:539".to_owned()),
    ];
    assert_eq!(clients(answer), expected);
    assert_eq!(busiest(&answer.repeat(2)).expect("clients").1, 2);
}

#[test]
fn ephemeral_znodes_are_read_from_the_dump_of_a_server() {
    let answer = "SessionTracker dump:\nGlobal Sessions(2):\n0xffff000000000001\t4000ms\n\
                  ephemeral nodes dump:\nSessions with Ephemerals (2):\n\
                  0xffff000000000001:\n\t/a/\u{e9}\n\t/b\n0x7:\n\t/c\n\
                  Connections dump:\nConnections Sets (1)/(1):\n\
                  1 expire at Thu Jan 01 00:00:00 UTC 1970:\n\tip: /127.0.0.1:5 sessionId: 0x7\n";
    let of = |session, number, bytes| Ephemerals {
        session: SessionId(session),
        number,
        bytes,
    };
    let expected = [of(i64::MIN >> 15 | 1, 2, 4 + 5 + 4 + 2), of(7, 1, 6)];
    assert_eq!(ephemerals(answer), expected);
}

#[test]
fn limit_of_the_connections_of_an_address_is_read_if_there_is_one() {
    let read = |answer| connection_limit(answer);
    assert_eq!(
        read("clientPort=2181\nmaxClientCnxns=60\ntickTime=2000"),
        Some(60)
    );
    assert_eq!(read("maxClientCnxns=0"), None);
    assert_eq!(read("conf is not executed"), None);
}
