//! Members of the embedded ensemble are stopped and started again.

use std::io;
use std::net::TcpStream;

use zookeeper_recipes_protocol::{CreateMode, ErrorCode, PathRequest, RequestBody};
use zookeeper_recipes_simulation::{EmbeddedServer, SimulationOptions};

use crate::raw::{Raw, at, create};
use crate::{embedded, resume};

fn refuses(address: &str) -> bool {
    let connected = TcpStream::connect(address);
    connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// The ensemble of three, with options of the simulation.
fn ensemble(change: impl FnOnce(&mut SimulationOptions)) -> EmbeddedServer {
    embedded(|it| {
        it.members = 3;
        change(&mut it.simulation);
    })
}

#[test]
fn stopped_member_refuses_until_it_is_started_on_the_same_port() {
    let ensemble = ensemble(|_| {});
    let mut client = Raw::connect(&ensemble.member(1));
    client.done(create("/alive", CreateMode::Ephemeral));
    ensemble.faults().stop_member(1);
    assert!(refuses(&ensemble.member(1)));
    assert!(client.is_closed());
    assert!(ensemble.faults().is_stopped(1));

    let mut moved = resume(&ensemble.member(2), &client);
    assert_eq!(moved.connected.session_id, client.connected.session_id);
    moved.done(create("/moved", CreateMode::Ephemeral));

    ensemble.faults().start_member(1);
    let mut again = Raw::connect(&ensemble.member(1));
    again.done(RequestBody::Exists(at("/alive", false)));
    again.done(RequestBody::Exists(at("/moved", false)));
}

#[test]
fn lone_server_that_is_stopped_comes_back_with_its_data_and_sessions() {
    let server = EmbeddedServer::start().expect("it starts");
    let address = server.connect_string();
    let mut client = Raw::connect(&address);
    client.done(create("/alive", CreateMode::Ephemeral));
    server.faults().stop_member(0);
    assert!(refuses(&address));
    server.faults().start_member(0);
    let mut again = resume(&address, &client);
    assert_eq!(again.connected.session_id, client.connected.session_id);
    again.done(RequestBody::Exists(at("/alive", false)));
}

#[test]
fn server_that_is_dropped_while_a_member_is_stopped_is_gone() {
    let ensemble = ensemble(|_| {});
    let faults = ensemble.faults();
    let address = ensemble.member(1);
    faults.stop_member(1);
    drop(ensemble);
    faults.start_member(1);
    assert!(refuses(&address));
}

#[test]
fn member_without_a_quorum_serves_those_who_only_read() {
    let ensemble = ensemble(|options| options.read_only_mode = true);
    Raw::connect(&ensemble.member(0)).done(create("/there", CreateMode::Persistent));
    ensemble.faults().stop_member(1);
    ensemble.faults().stop_member(2);
    let mut reader = Raw::connect_to_read(&ensemble.member(0)).expect("it serves");
    assert_eq!(reader.connected.read_only, Some(true));
    reader.done(RequestBody::GetData(at("/there", false)));
    let code = reader.fails(create("/absent", CreateMode::Persistent));
    assert_eq!(code, ErrorCode::NotReadOnly);
    let path = "/".to_owned();
    let code = reader.fails(RequestBody::Sync(PathRequest { path }));
    assert_eq!(code, ErrorCode::NotReadOnly);
    reader.ask(RequestBody::Ping);

    ensemble.faults().start_member(1);
    assert!(reader.is_closed(), "there is a leader");
    let mut writer = Raw::connect_to_read(&ensemble.member(0)).expect("it serves");
    assert_eq!(writer.connected.read_only, Some(false));
    writer.done(create("/written", CreateMode::Persistent));
}
