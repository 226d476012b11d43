//! The circles of an overview, as lines.

use super::view::Data;
use crate::queue::circle_lines;

/// The possible deadlocks, at this time in milliseconds since 1970.
pub(super) fn lines(data: &Data, now: i64) -> Vec<String> {
    let Some(overview) = data.overview() else {
        return vec!["only `zkr watch` of a path above queues shows possible deadlocks".to_owned()];
    };
    let circles = overview.circles();
    let mut lines = vec![format!(
        "{}: {} in {} queues",
        overview.path(),
        counted(circles.len()),
        overview.queues().len()
    )];
    for circle in circles {
        lines.push(String::new());
        lines.extend(circle_lines(circle, &|session| data.address(session), now));
    }
    lines
}

pub(super) fn counted(circles: usize) -> String {
    match circles {
        0 => "no possible deadlock".to_owned(),
        1 => "1 possible deadlock".to_owned(),
        _ => format!("{circles} possible deadlocks"),
    }
}
