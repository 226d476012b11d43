//! The circles of an overview, as lines.

use super::view::Data;
use crate::plain_text::counted;
use crate::queue::circle_lines;

/// The possible deadlocks, at this time in milliseconds since 1970.
pub(super) fn lines(data: &Data, now: i64) -> Vec<String> {
    let Some(overview) = data.overview() else {
        return vec!["only `zkr watch` of a path above queues shows possible deadlocks".to_owned()];
    };
    let circles = overview.circles();
    let mut lines = vec![format!(
        "{}: {} in {}",
        overview.path(),
        possible_deadlocks(circles.len()),
        counted(overview.queues().len(), "queue", "queues")
    )];
    for circle in circles {
        lines.push(String::new());
        lines.extend(circle_lines(circle, &data.addresses, &data.zkr, now));
    }
    lines
}

pub(super) fn possible_deadlocks(circles: usize) -> String {
    match circles {
        0 => "no possible deadlock".to_owned(),
        _ => counted(circles, "possible deadlock", "possible deadlocks"),
    }
}
