//! What the workers publish.

use super::*;
use crate::pieces::Lines;

fn published(worker: &str, token: i64) -> (String, std::sync::Arc<[u8]>) {
    let token = word(FencingToken::from(token), UNIX_EPOCH);
    let piece = Piece {
        of: 1,
        note: format!("{worker}:80"),
        lines: Lines::from([("p".to_owned(), token)]),
    };
    (worker.to_owned(), piece.text(OWNED).into())
}

#[test]
fn larger_token_wins() {
    for (first, second, winner) in [(7, 40, "b"), (40, 7, "a")] {
        let owners = owners(&[published("a", first), published("b", second)].into());
        let owner = &owners["p"];
        assert_eq!(owner.worker, winner);
        assert_eq!(owner.address, format!("{winner}:80"));
        assert_eq!(owner.fencing_token, FencingToken::from(40));
    }
}
