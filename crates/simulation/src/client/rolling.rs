//! What goes wrong by chance with one request.

use super::world::World;
use crate::chance::injected::{Fault, FaultKind};
use crate::record::request_kind::RequestKind;

impl World {
    /// Rolls the dice for what can go wrong with one request.
    pub(super) fn roll_for_request(&mut self, faults: &mut Vec<Fault>) {
        let kernel = self.kernel();
        let rates = &kernel.rates;
        let (lost, unanswered, throttled) = (rates.request_lost, rates.reply_lost, rates.throttled);
        let (request_late, reply_late, late_by) =
            (rates.request_late, rates.reply_late, rates.late_by);
        if kernel.chance(lost) {
            faults.push(Fault::new(FaultKind::RequestLost));
        }
        if kernel.chance(throttled) {
            faults.push(Fault::new(FaultKind::Throttled));
        }
        if kernel.chance(unanswered) {
            faults.push(Fault::new(FaultKind::ReplyLost));
        }
        if kernel.chance(request_late) {
            let by = kernel.draw_up_to(late_by);
            faults.push(Fault::new(FaultKind::RequestLate(by)));
        }
        if kernel.chance(reply_late) {
            let by = kernel.draw_up_to(late_by);
            faults.push(Fault::new(FaultKind::ReplyLate(by)));
        }
    }

    /// Rolls the dice for a server that does not know the outcome of a write.
    pub(super) fn roll_for_outcome(&mut self, kind: RequestKind, faults: &mut Vec<Fault>) {
        let kernel = self.kernel();
        let hidden = kernel.rates.outcome_hidden;
        if kind.is_write() && kernel.chance(hidden) {
            faults.push(Fault::new(FaultKind::OutcomeHidden));
        }
    }
}
