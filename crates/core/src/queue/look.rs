//! A look at the queue: asks the rule about one contender.

use crate::contender::{Contender, Identity, Sequence, recipe_of};
use crate::error::Error;
use crate::hold::alone::Alone;
use crate::invalid_input::InvalidInput;
use crate::path::NodePath;
use crate::queue::place::Place;
use crate::queue::session_queue::{Listing, Ordered, SessionQueue};
use crate::queue::wait::{Awaited, WaitOn, Watches};
use crate::rule::{QueueView, Rule, Verdict};

/// The outcome of a look.
pub(crate) enum Look {
    Hold,
    /// The contender leaves the queue, and enters it again.
    StepBack,
    Wait(WaitOn),
}

/// Orders the contenders, and asks the rule about this one.
pub(crate) async fn look(
    queue: &SessionQueue<'_>,
    place: &mut Place,
    watches: &mut Watches,
    mut listing: Listing,
) -> Result<Look, Error> {
    let rule = &*queue.shared.rule;
    let (contenders, data, me, is_only_child) = loop {
        refuse_other_recipes(queue, &listing.names)?;
        let is_only_child = listing.names.len() == 1;
        let ordered = queue.in_order(listing).await?;
        let own = place.name();
        let mut names = ordered.contenders.iter().map(Contender::name);
        let me = names.position(|name| Some(name) == own);
        let me = me.ok_or_else(|| place.deleted())?;
        // If the turn came after the list, the list may lack one to step back for.
        if !ordered.some_left || !rule.hints().may_step_back(&ordered.contenders[me], None) {
            break (ordered.contenders, ordered.data, me, is_only_child);
        }
        listing = queue.list().await?;
    };
    match decide(rule, &contenders[..=me], data.as_deref())? {
        Verdict::Hold if steps_back(queue, watches, &contenders, me).await? => Ok(Look::StepBack),
        Verdict::Hold => {
            place.alone = is_only_child.then(|| Alone {
                sequence: contenders[me].sequence(),
                czxid: place.node.stat.czxid,
                was_known_alone: place.known_alone,
            });
            Ok(Look::Hold)
        }
        Verdict::Wait { on } if !on.is_empty() && on.iter().all(|&place| place < me) => {
            let awaited = |place: usize| Awaited {
                name: contenders[place].name().to_owned(),
                czxid: contenders[place].czxid(),
                hands_off: hands_off(rule, &contenders[place..=me], data.as_deref()),
                stands_alone: stands_alone(rule, &contenders[..=me], place),
            };
            let contenders = on.into_iter().map(awaited).collect();
            Ok(Look::Wait(WaitOn {
                contenders,
                position: me,
                data,
            }))
        }
        Verdict::Wait { .. } => {
            let problem = "waits on no contender, or on a contender that is not before it";
            Err(rule_is_broken(rule, problem).into())
        }
    }
}

/// True if this contender leaves the queue to the contenders behind it.
///
/// Reads the directory's data after the list. The data may name a contender that came after the
/// list. Its holder then has to go, and not this contender.
async fn steps_back(
    queue: &SessionQueue<'_>,
    watches: &mut Watches,
    contenders: &[Contender],
    me: usize,
) -> Result<bool, Error> {
    let rule = &*queue.shared.rule;
    let (me, behind) = (&contenders[me], &contenders[me + 1..]);
    if behind.is_empty() || !rule.hints().may_step_back(me, None) || watches.rule_out_a_step_back()
    {
        return Ok(false);
    }
    let data = queue.read_directory().await?;
    Ok(rule.hints().steps_back(me, behind, data.as_deref()))
}

/// True if a new contender would hold at once. Sends one read.
pub(crate) async fn could_win(queue: &SessionQueue<'_>) -> Result<bool, Error> {
    let rule = &*queue.shared.rule;
    let listing = queue.list().await?;
    refuse_other_recipes(queue, &listing.names)?;
    let Ordered {
        mut contenders,
        data,
        ..
    } = queue.in_order(listing).await?;
    let last = contenders.last();
    let next = last.map_or(0.into(), |last| last.sequence().next());
    let label = queue.shared.label()?;
    let name = format!("{}{next}", Identity::random().name(label));
    let newcomer = queue.contender(&name);
    contenders.push(newcomer.ok_or_else(|| rule_is_broken(rule, UNCOUNTED))?);
    Ok(decide(rule, &contenders, data.as_deref())? == Verdict::Hold)
}

/// Asks the rule about the last contender.
fn decide(
    rule: &dyn Rule,
    contenders: &[Contender],
    data: Option<&[u8]>,
) -> Result<Verdict, InvalidInput> {
    match contenders.split_last() {
        Some((me, before)) => rule.decide(&QueueView::new(before, me, data)),
        None => Err(rule_is_broken(rule, UNCOUNTED)),
    }
}

/// True if the last contender holds once the first marks its release.
///
/// Only a contender that held alone marks its release, so no contender before it is left. The list
/// shows all contenders between the two. Some may have left since. This cannot change "hold" into
/// "wait", because a rule is monotone.
fn hands_off(rule: &dyn Rule, contenders: &[Contender], data: Option<&[u8]>) -> bool {
    let Some((first, rest)) = contenders.split_first() else {
        return false;
    };
    first.marks_release()
        && rule.hints().holds_alone(first.label())
        && matches!(decide(rule, rest, data), Ok(Verdict::Hold))
}

/// True if any deletion of the contender at this place lets the last contender hold.
fn stands_alone(rule: &dyn Rule, contenders: &[Contender], place: usize) -> bool {
    // If more contenders are before the waiter, one deletion seldom lets it hold.
    let only = matches!(contenders, [_, _]) && place == 0;
    only && !rule.reads_directory()
        && !rule.hints().may_be_replaced(contenders[place].label())
        && matches!(decide(rule, &contenders[1..], None), Ok(Verdict::Hold))
}

/// Refuses a queue that contains contenders of another recipe.
///
/// Each of two recipes under one path grants without regard to the other.
fn refuse_other_recipes(queue: &SessionQueue<'_>, children: &[String]) -> Result<(), Error> {
    let rule = &*queue.shared.rule;
    let other = children.iter().find_map(|name| {
        let recipe = recipe_of(name, |label| !rule.counts(label))?;
        Some((name, recipe))
    });
    match other {
        None => Ok(()),
        Some((name, recipe)) => Err(Error::OtherRecipe {
            path: queue.directory().to_owned(),
            child: name.clone(),
            recipe,
        }),
    }
}

const UNCOUNTED: &str = "does not count the contenders that it creates";

fn rule_is_broken(rule: &dyn Rule, problem: &str) -> InvalidInput {
    InvalidInput::new("rule with the label", rule.label(), problem)
}

/// Refuses a label that cannot name a znode, or that the rule does not count.
///
/// Returns a name with this label. The name of each contender is as long.
pub(crate) fn check_label(rule: &dyn Rule, label: &str) -> Result<String, InvalidInput> {
    let name = format!("{}{}", Identity::NONE.name(label), Sequence::from(0));
    if let Err(error) = NodePath::new(&format!("/{name}")) {
        let problem = format!("cannot name a znode: {error}");
        return Err(rule_is_broken(rule, &problem));
    }
    if name.contains('/') {
        return Err(rule_is_broken(
            rule,
            "cannot name a znode: the label contains '/'",
        ));
    }
    match Contender::parse(&name, |label| rule.counts(label)) {
        Some(_) => Ok(name),
        None => Err(rule_is_broken(rule, UNCOUNTED)),
    }
}
