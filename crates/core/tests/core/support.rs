//! The rule that most of these tests are about nothing but.

use std::borrow::Cow;

use zookeeper_recipes_core::{InvalidInput, QueueView, Rule, Verdict};

/// Holds when nobody is before it, and waits on the one right before it.
#[derive(Debug)]
pub(crate) struct First;

impl Rule for First {
    fn label(&self) -> Cow<'_, str> {
        "lock-".into()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        let me = view.place();
        Ok(match me {
            0 => Verdict::Hold,
            _ => Verdict::wait_on(me - 1),
        })
    }
}
