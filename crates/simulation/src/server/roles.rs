//! Who leads and who follows, as the four-letter words tell it.

use super::member::{Member, MemberState};
use super::state::Servers;

impl Servers {
    /// The members that follow, and that the leader can reach.
    pub(crate) fn followers(&self) -> impl Iterator<Item = &Member> {
        let members = self.members.iter().enumerate();
        let others = members.filter(|(at, _)| *at != self.leader);
        others
            .map(|(_, member)| member)
            .filter(|member| member.state == MemberState::Serving)
    }

    /// Whether a member leads, and serves.
    pub(crate) fn leads(&self, server: usize) -> bool {
        self.leader == server && self.members[server].state != MemberState::Down
    }
}
