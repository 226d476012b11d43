//! What every recipe promises, for the kinds of contenders.

use zookeeper_recipes_core::{Recipe, Session};
use zookeeper_recipes_testkit::conformance::{CheckedServer, Conformance};

use crate::kind::Kind;
use crate::recipe::{TestedRecipe, WRITER};
use crate::server::server;

/// Holds the contenders of this weight to all that every recipe promises, on a server of their own.
pub async fn conforms(recipe: TestedRecipe, weight: u64) {
    conforms_on(&server().await, recipe, weight).await;
}

/// Holds the contenders of this weight to all that every recipe promises, on this server.
pub async fn conforms_on(server: &dyn CheckedServer, recipe: TestedRecipe, weight: u64) {
    let checked = conformance(server, recipe, weight).check().await;
    checked.unwrap_or_else(|error| panic!("{}, weight {weight}: {error:?}", recipe.name));
}

/// All that every recipe promises, for the contenders of this weight, on this server.
pub fn conformance(
    server: &dyn CheckedServer,
    recipe: TestedRecipe,
    weight: u64,
) -> Conformance<'_> {
    let kind = Kind::new(recipe.name, recipe, weight);
    let made = move |session: &Session, path: &str| -> Box<dyn Recipe> { kind.at(session, path) };
    let mut conformance = Conformance::new(server, made);
    if recipe.capacity < WRITER {
        conformance = conformance.holders((recipe.capacity / weight) as usize);
    } else if weight < recipe.capacity {
        conformance = conformance.shared(move |session, path| kind.rival().at(session, path));
    }
    if !recipe.queues {
        conformance = conformance.unordered();
    }
    conformance
}
