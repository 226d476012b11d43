//! The requests of an uncontended lock and nothing else, by a bare socket and by the connection.

use zookeeper_recipes_connection::Connection;
use zookeeper_recipes_protocol::{
    Acl, AuthId, CreateMode, CreateRequest, DeleteRequest, ErrorCode, Permission, ReplyBody,
    RequestBody,
};
use zookeeper_recipes_suite::raw::Raw;

/// A name as long as a contender's.
const CONTENDER: &str = "_c_6e8f2c1a-9d3b-4f57-8a41-0c9d5e7b2f10-lock-";

/// Creates contenders in this directory over a blocking socket, which is the least that a client
/// can do, and deletes them.
pub fn socket_turns(socket: &mut Raw, directory: &str, times: u64) {
    for _ in 0..times {
        let path = created(socket.done(create(directory)));
        socket.done(delete(path));
    }
}

/// Creates contenders in this directory over the library's own connection, and deletes them.
pub async fn connection_turns(connection: &Connection, directory: &str, times: u64) {
    for _ in 0..times {
        let path = created(answer(connection, create(directory)).await);
        answer(connection, delete(path)).await;
    }
}

async fn answer(connection: &Connection, body: RequestBody) -> ReplyBody {
    let answer = connection.request(body).await;
    let (answer, _) = answer.expect("the server answers");
    assert_eq!(answer.reply.header.error, ErrorCode::Ok);
    answer.reply.body
}

fn create(directory: &str) -> RequestBody {
    let path = format!("{directory}/{CONTENDER}");
    let acl = vec![Acl::new(Permission::ALL, AuthId::anyone())];
    let mode = CreateMode::EphemeralSequential;
    RequestBody::Create2(CreateRequest::new(path, Vec::new(), acl, mode))
}

fn created(reply: ReplyBody) -> String {
    match reply {
        ReplyBody::Create2 { path, .. } => path,
        _ => panic!("another reply to a create"),
    }
}

fn delete(path: String) -> RequestBody {
    RequestBody::Delete(DeleteRequest::new(path, -1))
}
