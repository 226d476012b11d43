//! Watches of whole trees.

use zookeeper_recipes_core::NodePath;
use zookeeper_recipes_core::ensemble::TreeEvent;

use crate::support::*;

on_both_servers!(tree_is_watched_over_each_connection_and_beside_other_watches_of_its_path);

/// Creates, writes and deletes, and the events of that.
async fn change(client: &Client, path: &str) -> Vec<TreeEvent> {
    create(client, path).await;
    client.set_data(path, b"x", None).await.expect("written");
    client.delete(path, None).await.expect("deleted");
    let path = path.to_owned();
    vec![
        TreeEvent::Created(path.clone()),
        TreeEvent::DataChanged(path.clone()),
        TreeEvent::Deleted(path),
    ]
}

async fn tree_is_watched_over_each_connection_and_beside_other_watches_of_its_path(
    server: TestServer,
) {
    let proxy = proxy(&server).await;
    let (session, administrator) = (session(&proxy, SHORT).await, administrator(&server).await);
    let any = NodePath::new("/any").expect("a path");
    let raw = session.server(&any).await.expect("a session is open");
    create(&administrator, "/tree").await;
    create(&administrator, "/tree/deep").await;
    let (_, children) = raw.list_and_watch("/tree").await.expect("listed");
    let mut tree = raw.watch_tree("/tree").await.expect("watched");
    let mut expect = async |events: Vec<TreeEvent>| {
        for event in events {
            let found = in_time("an event", tree.next()).await;
            assert_eq!(found, Some(event));
        }
    };
    // On servers before 3.9 the watch of the tree replaces the others of its path.
    assert_eq!(in_time("an end", children).await, WatchEvent::Unwatched);
    expect(change(&administrator, "/tree/deep/\u{e4}\u{732b}").await).await;

    // The watch of the tree covers that of its own data.
    let (_, _, data) = raw.get_and_watch("/tree").await.expect("read");
    let (_, _, unwanted) = raw.get_and_watch("/tree").await.expect("read");
    drop(unwanted);
    raw.sync("/tree").await.expect("the removal was answered");
    expect(change(&administrator, "/tree/b").await).await;
    administrator
        .set_data("/tree", b"x", None)
        .await
        .expect("written");
    expect(vec![TreeEvent::DataChanged("/tree".to_owned())]).await;
    in_time("the event of the data", data).await;

    proxy.cut();
    expect(vec![TreeEvent::Missed]).await;
    expect(change(&administrator, "/tree/c").await).await;

    drop(tree);
    assert_no_watch_left(&server).await;
}
