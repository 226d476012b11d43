//! Tests of `src/partitions.rs`.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::*;
use crate::ports::free_port;

#[tokio::test]
async fn follower_that_is_early_reaches_its_leader_once_that_listens() {
    let ports = [0, 1].map(|_| MemberPorts {
        quorum: free_port().expect("a port"),
        election: free_port().expect("a port"),
    });
    let partitions = Partitions::start(&ports).await.expect("proxies start");
    let way = partitions.ways[&(0, 1)].quorum.address();
    let follower = TcpStream::connect(way).await.expect("the proxy listens");
    let ends = timeout(Duration::from_millis(100), follower.readable()).await;
    assert!(
        ends.is_err(),
        "the connection ends before there is a leader"
    );
    let leader = TcpListener::bind((Ipv4Addr::LOCALHOST, ports[1].quorum)).await;
    let leader = leader.expect("the port is free");
    let reached = timeout(Duration::from_secs(10), leader.accept()).await;
    reached.expect("in time").expect("a follower");
}
