//! The rule that most of these tests are about nothing but.

use std::borrow::Cow;

use zookeeper_recipes_core::{Contender, Rule, Verdict};

/// Holds when nobody is before it, and waits on the one right before it.
#[derive(Debug)]
pub(crate) struct First;

impl Rule for First {
    fn label(&self) -> Cow<'_, str> {
        "lock-".into()
    }

    fn decide(&self, _: &[Contender], me: usize) -> Verdict {
        match me {
            0 => Verdict::Hold,
            _ => Verdict::wait_on(me - 1),
        }
    }
}
