//! Who holds, by the holders' own account: at most one at a time, each with a newer token.

use std::sync::{Mutex, MutexGuard, PoisonError};

use zookeeper_recipes_lock::FencingToken;

/// Told by each contender when it certainly holds and when it no longer does.
///
/// A contender enters after its acquire has returned and leaves before it calls release. All of
/// them share one referee in one process, so that "at the same time" is no question of clocks.
#[derive(Debug, Default)]
pub(crate) struct Referee {
    game: Mutex<Game>,
}

#[derive(Debug, Default)]
struct Game {
    inside: Vec<(String, FencingToken)>,
    newest: Option<FencingToken>,
    entries: usize,
    violations: Vec<String>,
}

impl Referee {
    pub(crate) fn enter(&self, who: &str, token: FencingToken) {
        let mut game = self.game();
        let violations: Vec<String> = game
            .inside
            .iter()
            .map(|(other, others)| {
                format!("{who} entered (token {token}) while {other} was inside (token {others})")
            })
            .collect();
        game.violations.extend(violations);
        if let Some(newest) = game.newest.filter(|newest| *newest >= token) {
            let violation =
                format!("{who} entered with token {token}, which is not newer than {newest}");
            game.violations.push(violation);
        }
        game.newest = game.newest.max(Some(token));
        game.entries += 1;
        game.inside.push((who.to_owned(), token));
    }

    pub(crate) fn leave(&self, who: &str) {
        self.game().inside.retain(|(other, _)| other != who);
    }

    /// How often somebody entered.
    pub(crate) fn entries(&self) -> usize {
        self.game().entries
    }

    /// What was not as it must be, in words.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.game().violations.clone()
    }

    fn game(&self) -> MutexGuard<'_, Game> {
        // A holder that panicked inside has still been inside.
        self.game.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_with_newer_tokens_is_as_it_must_be() {
        let referee = Referee::default();
        for token in [3, 5, 9] {
            referee.enter("a", token.into());
            referee.leave("a");
        }
        assert_eq!(referee.entries(), 3);
        assert!(referee.violations().is_empty());
    }

    #[test]
    fn two_inside_are_named_with_their_tokens() {
        let referee = Referee::default();
        referee.enter("a", 3.into());
        referee.enter("b", 4.into());
        let violations = referee.violations();
        assert_eq!(
            violations,
            ["b entered (token 4) while a was inside (token 3)"]
        );
    }

    #[test]
    fn token_that_does_not_grow_is_a_violation() {
        let referee = Referee::default();
        for token in [7, 7, 6] {
            referee.enter("a", token.into());
            referee.leave("a");
        }
        assert_eq!(referee.violations().len(), 2);
    }
}
