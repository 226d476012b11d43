//! The four-letter words, answered as Apache's server answers them.

mod connections;
mod status;

#[cfg(feature = "admin")]
pub(super) use self::status::mode;
use super::member::Member;

/// The answer of a server without a leader.
const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// The answer to a four-letter word.
pub(super) fn answer(word: &str, member: &Member) -> String {
    let (reads_only, serves) = member.shared.with(|world| {
        let reads_only = world.servers.is_read_only(member.server);
        (
            reads_only,
            reads_only || !world.servers.is_down(member.server),
        )
    });
    match word {
        "ruok" => "imok".to_owned(),
        "isro" if reads_only => "ro".to_owned(),
        "isro" if !serves => "null".to_owned(),
        "isro" => "rw".to_owned(),
        _ if !serves => NOT_SERVING.to_owned(),
        "srvr" => status::srvr(member),
        "stat" => status::stat(member),
        "srst" => status::reset(member),
        "mntr" => status::mntr(member),
        "cons" => connections::cons(member),
        "dump" => connections::dump(member),
        "wchs" => connections::wchs(member),
        "wchp" => connections::wchp(member),
        "envi" => status::envi(member),
        "conf" => status::conf(member),
        other => format!("{other} is not executed because it is not in the whitelist.\n"),
    }
}
