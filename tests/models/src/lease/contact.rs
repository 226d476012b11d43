//! The contact that the lease counts from, or may count from soon.

use super::{Age, CountedFrom, LeaseModel, WaitFrom};

/// How far a request has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Request {
    /// Not sent yet.
    #[default]
    Unsent,
    /// On the way to the server.
    Sent,
    /// Through the leader; the answer is on its way.
    Served {
        /// How many pings were under way to the follower before the answer.
        behind: u8,
    },
    /// The client has processed the answer.
    Answered,
}

/// The contact that the model follows.
///
/// `sent` is the age of the moment that the lease would count from; `None` if the contact
/// is covered: the lease that counts from it runs out before any leader expires the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Contact {
    /// None, or one whose lease has run out.
    None,
    /// Not confirmed yet.
    Pending {
        /// When its request was sent.
        sent: Option<Age>,
        /// Since when the confirming request waits, as far as that matters.
        waited: Age,
        /// Its own request, and the requests that confirm it.
        requests: [Request; 3],
        /// For how long the lease before it still runs, if the rule asks for that.
        runs_for: Age,
        /// The session had been silent for as long as a lease when the request reached the server.
        after_silence: bool,
    },
    /// The lease counts from it.
    Counted {
        /// When its request was sent.
        sent: Option<Age>,
        by_reconnect: bool,
        /// The session had been silent for as long as a lease when the request reached the server.
        after_silence: bool,
    },
}

impl Contact {
    /// A contact whose request is sent now; nothing if the rule takes none.
    pub(super) fn begin(&self, model: &LeaseModel) -> Option<Contact> {
        let runs_for = match self {
            Contact::Pending { .. } => return None,
            _ if !model.rule.only_while_it_runs => 0,
            Contact::Counted {
                sent: Some(sent), ..
            } if *sent < model.rule.lease => model.rule.lease - sent,
            _ => return None,
        };
        Some(Contact::Pending {
            sent: Some(0),
            waited: 0,
            requests: [Request::Sent, Request::Unsent, Request::Unsent],
            runs_for,
            after_silence: false,
        })
    }

    /// Whether the lease runs.
    pub(super) fn holds(&self, lease: Age) -> bool {
        matches!(self, Contact::Counted { sent: Some(sent), .. } if *sent <= lease)
    }

    pub(super) fn is_answered(&self) -> bool {
        matches!(self, Contact::Pending { requests, .. } if requests[0] == Request::Answered)
    }

    /// The request that is to be sent next, if it may be sent now.
    pub(super) fn next_request(&self, model: &LeaseModel) -> Option<usize> {
        let Contact::Pending {
            waited, requests, ..
        } = self
        else {
            return None;
        };
        let rule = &model.rule;
        let next = requests[..rule.answers]
            .iter()
            .position(|request| *request == Request::Unsent)?;
        let may_be_sent = match next {
            1 => {
                *waited >= rule.wait
                    && (rule.wait_from == WaitFrom::Sending || requests[0] == Request::Answered)
            }
            _ => requests[next - 1] == Request::Answered,
        };
        may_be_sent.then_some(next)
    }

    /// The request that reaches the server next.
    pub(super) fn next_to_serve(&self) -> Option<usize> {
        let Contact::Pending { requests, .. } = self else {
            return None;
        };
        requests
            .iter()
            .position(|request| *request == Request::Sent)
    }

    /// The request that is answered next, and how many pings come before the answer.
    pub(super) fn next_to_answer(&self) -> Option<(usize, u8)> {
        let Contact::Pending { requests, .. } = self else {
            return None;
        };
        requests
            .iter()
            .enumerate()
            .find_map(|(index, request)| match request {
                Request::Served { behind } => Some((index, *behind)),
                _ => None,
            })
    }

    /// Moves a request on.
    pub(super) fn set(&mut self, index: usize, request: Request) {
        if let Contact::Pending { requests, .. } = self {
            requests[index] = request;
        }
    }

    /// Takes in the answer to a request.
    pub(super) fn answer(&mut self, index: usize, model: &LeaseModel) {
        let rule = &model.rule;
        self.set(index, Request::Answered);
        let Contact::Pending {
            sent,
            waited,
            runs_for,
            after_silence,
            ..
        } = self
        else {
            return;
        };
        if rule.only_while_it_runs && *runs_for == 0 {
            *self = Contact::None;
            return;
        }
        if index == 0 {
            if rule.wait_from == WaitFrom::Answer {
                *waited = 0;
            }
            if rule.counted_from == CountedFrom::Answer {
                *sent = Some(0);
            }
        }
        if index + 1 == rule.answers {
            *self = Contact::Counted {
                sent: *sent,
                by_reconnect: false,
                after_silence: *after_silence,
            };
        }
    }

    /// Takes in that a reconnect has been proved.
    pub(super) fn reconnect(&mut self) {
        if let Contact::Pending {
            sent,
            after_silence,
            ..
        } = self
        {
            *self = Contact::Counted {
                sent: *sent,
                by_reconnect: true,
                after_silence: *after_silence,
            };
        }
    }

    /// Forgets what was not answered on the connection that has gone.
    pub(super) fn disconnect(&mut self, model: &LeaseModel) {
        if let Contact::Pending {
            waited, requests, ..
        } = self
        {
            if requests[0] == Request::Answered {
                *requests = [Request::Answered, Request::Unsent, Request::Unsent];
                *waited = model.rule.wait;
            } else {
                *self = Contact::None;
            }
        }
    }

    /// Lets a unit of time pass.
    pub(super) fn age(&mut self) {
        match self {
            Contact::None => {}
            Contact::Pending {
                sent,
                waited,
                runs_for,
                ..
            } => {
                *sent = sent.map(|sent| sent + 1);
                *waited += 1;
                *runs_for = runs_for.saturating_sub(1);
            }
            Contact::Counted { sent, .. } => *sent = sent.map(|sent| sent + 1),
        }
    }

    /// Forgets what makes no difference any more; `touched` is the last touch at the leader that
    /// may expire the session.
    pub(super) fn forget(&mut self, touched: Option<Age>, model: &LeaseModel) {
        let rule = &model.rule;
        let is_settled = rule.counted_from == CountedFrom::Sending
            || self.is_answered()
            || matches!(self, Contact::Counted { .. });
        let (Contact::Pending { sent, .. } | Contact::Counted { sent, .. }) = self else {
            return;
        };
        match sent {
            Some(sent) if !is_settled => *sent = 0,
            Some(sent) if *sent > rule.lease => return *self = Contact::None,
            Some(age) => {
                // A leader that is yet to be elected touches the session later than this.
                let touched = touched.unwrap_or(*age);
                let is_covered = touched + rule.lease < *age + model.servers.timeout;
                if is_covered && !model.servers.unreduced && !rule.only_while_it_runs {
                    *sent = None;
                }
            }
            None => {}
        }
        if let Contact::Pending { sent, waited, .. } = self {
            *waited = match sent {
                None => rule.wait,
                Some(_) => (*waited).min(rule.wait),
            };
        }
    }
}
