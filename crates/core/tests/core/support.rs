//! What most of these tests use.

use std::borrow::Cow;

use zookeeper_recipes_core::{
    Acl, AuthId, InvalidInput, NamedZnode, NodePath, Permission, QueueView, Rule, RuleHints,
    Session, Verdict,
};

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

/// As [`First`], and says that a holder is the only one. So its releases are marked.
#[derive(Debug)]
pub(crate) struct FirstAlone;

impl Rule for FirstAlone {
    fn label(&self) -> Cow<'_, str> {
        First.label()
    }

    fn decide(&self, view: &QueueView<'_>) -> Result<Verdict, InvalidInput> {
        First.decide(view)
    }

    fn hints(&self) -> &dyn RuleHints {
        self
    }
}

impl RuleHints for FirstAlone {
    fn holds_only_first(&self, _: &str) -> bool {
        true
    }
}

pub(crate) const SINGLE: &str = "/single";

/// A znode in this session, at [`SINGLE`].
pub(crate) async fn begin_single(session: &Session) -> NamedZnode {
    let path = NodePath::new(SINGLE).expect("a good path");
    let znode = NamedZnode::begin(session, &path, |_, _| true).await;
    znode.expect("its session is open")
}

/// An access control list that grants everything to everyone.
pub(crate) fn everyone() -> [Acl; 1] {
    [Acl::new(Permission::ALL, AuthId::anyone())]
}
