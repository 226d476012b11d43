//! The example of a recipe of one's own keeps the laws of a rule, and what every recipe promises.

use zookeeper_recipes_core::{Queue, Recipe, Session};
use zookeeper_recipes_testkit::conformance::Conformance;
use zookeeper_recipes_testkit::laws::{BrokenLaw, Laws};
use zookeeper_recipes_testkit::{Server, ServerOptions};

#[path = "../examples/custom_recipe.rs"]
#[expect(dead_code, unreachable_pub)]
mod custom_recipe;

use custom_recipe::Direction;

fn bridge(session: &Session, path: &str, direction: Direction) -> Box<dyn Recipe> {
    Box::new(Queue::new(session, path, direction).expect("a good path"))
}

#[test]
fn the_rule_of_ones_own_keeps_the_laws() -> Result<(), BrokenLaw> {
    let one_way = |labels: &[&str]| labels.windows(2).all(|pair| pair[0] == pair[1]);
    let laws = Laws::of(&[&Direction::North, &Direction::South]);
    laws.holders(&one_way).wakes(&one_way).check()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recipe_of_ones_own_conforms() {
    let server = Server::start(ServerOptions::new())
        .await
        .expect("a server starts");
    let north = |session: &Session, path: &str| bridge(session, path, Direction::North);
    let south = |session: &Session, path: &str| bridge(session, path, Direction::South);
    Conformance::new(&server, north)
        .shared(south)
        .check()
        .await
        .expect("it conforms");
}
