//! A hold by a znode whose name other sessions use, too, and the threads that see its end.

use shuttle::future::block_on;
use shuttle::thread;
use tokio::time::tick;
use zookeeper_recipes_core::{
    ConnectOptions, Hold, NamedZnode, NodePath, QueueOptions, Session, Stat,
};
use zookeeper_recipes_shuttle::{Server, check};

async fn hold(session: &Session, owner: &'static [u8]) -> Hold {
    let path = NodePath::new("/single").expect("a good path");
    let is_own = move |data: &[u8], _: &Stat| data == owner;
    let begun = NamedZnode::begin(session, &path, &QueueOptions::new(), is_own).await;
    let mut znode = begun.expect("a session");
    let created = znode.create(owner).await;
    let stat = created.expect("an answer").expect("nobody else's is there");
    let held = znode.hold("single", &stat).await;
    held.expect("an answer").expect("the lease runs")
}

#[test]
fn hold_that_is_dropped_as_soon_as_its_loss_shows_spares_the_next_holders_znode() {
    check(400, || {
        let server = Server::default();
        let open = || Session::open(server.ensemble(), ConnectOptions::new());
        let one = block_on(open()).expect("a session");
        let other = block_on(open()).expect("a session");
        let lost = block_on(hold(&one, b"one"));
        assert!(server.delete(lost.node_path()));
        let next = block_on(hold(&other, b"other"));
        let drops = thread::spawn(move || {
            block_on(lost.lost());
            drop(lost);
        });
        // The loss watch of a hold is set at the next tick of its session.
        tick();
        drops.join().expect("no panic");
        assert_eq!(server.children("/"), ["single"]);
        block_on(next.release()).expect("released");
        for session in [one, other] {
            block_on(session.close());
        }
    });
}
