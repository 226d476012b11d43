//! The contenders of a queue, as [`Recipe::contenders`](crate::Recipe::contenders) lists them.

use crate::contender::Contender;
use crate::error::Error;
use crate::queue::directory::refuse_missing_chroot;
use crate::queue::session_queue::SessionQueue;
use crate::recipe::QueueEntry;
use crate::rule::{QueueView, Rule};

/// Lists the contenders that the rule counts, in the order of the queue.
pub(crate) async fn entries(queue: &SessionQueue<'_>) -> Result<Vec<QueueEntry>, Error> {
    let listing = queue.list().await?;
    if listing.is_missing {
        refuse_missing_chroot(queue.live, &*queue.server, queue.directory()).await?;
    }
    let ordered = queue.in_order(listing).await?;
    let read = queue.read_each(&ordered.contenders).await?;
    let mut contenders = Vec::new();
    let mut nodes = Vec::new();
    for (contender, node) in ordered.contenders.into_iter().zip(read) {
        // A contender without a znode has left since the list.
        if let Some(node) = node {
            contenders.push(contender);
            nodes.push(node);
        }
    }
    let rule = &*queue.shared.rule;
    let holds = |position| holds(rule, &contenders[..=position], ordered.data.as_deref());
    let each = nodes.into_iter().enumerate().map(|(position, node)| {
        let name = contenders[position].name();
        QueueEntry::new(position, name, node, holds(position))
    });
    Ok(each.collect())
}

/// True if the rule lets the last contender hold.
fn holds(rule: &dyn Rule, contenders: &[Contender], data: Option<&[u8]>) -> bool {
    let split = contenders.split_last();
    split.is_some_and(|(me, before)| rule.holds(&QueueView::new(before, me, data)))
}
