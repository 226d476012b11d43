//! What a contender holds, as it is reported to the ledger.

use zookeeper_recipes_core::{Hold, HoldView};

use crate::ledger::Ledger;

/// A hold that its contender has not let go of. Dropped, it lets go.
pub(crate) struct Holding<'a> {
    ledger: &'a Ledger,
    number: u64,
    weight: u64,
    hold: Option<Hold>,
}

impl<'a> Holding<'a> {
    /// Reports that the hold was granted this very moment.
    pub(crate) fn new(ledger: &'a Ledger, who: &str, weight: u64, hold: Hold) -> Holding<'a> {
        let number = ledger.granted(who, weight, &hold.view());
        Holding {
            ledger,
            number,
            weight,
            hold: Some(hold),
        }
    }

    /// As [`new`](Self::new), if another owner has the hold itself.
    pub(crate) fn of_another(
        ledger: &'a Ledger,
        who: &str,
        weight: u64,
        hold: &HoldView,
    ) -> Holding<'a> {
        let number = ledger.granted(who, weight, hold);
        Holding {
            ledger,
            number,
            weight,
            hold: None,
        }
    }

    /// By what the ledger knows it.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }

    pub(crate) fn view(&self) -> Option<HoldView> {
        self.hold.as_ref().map(Hold::view)
    }

    /// Takes the hold out, which still counts as held until this is dropped.
    pub(crate) fn take(&mut self) -> Option<Hold> {
        self.hold.take()
    }

    /// Takes the hold out, which from here on does not count as held.
    pub(crate) fn let_go(mut self) -> Option<Hold> {
        self.ledger.letting_go(self.number);
        self.hold.take()
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.ledger.letting_go(self.number);
    }
}
