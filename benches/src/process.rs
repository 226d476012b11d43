//! What the system reports of a process.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The processor time of all threads of a process since it began; `None` if the system does not
/// report it. The system counts in steps, usually of 10 ms.
pub fn processor_time(process: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the name, in parentheses. It may contain spaces and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(Duration::from_secs_f64(
        (user + system) as f64 / ticks as f64,
    ))
}

/// How many bytes of a process are in memory; `None` if the system does not report it.
pub fn resident(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// How many bytes the live objects of a process in Java take, after a full collection; `None` if
/// the machine has no `jcmd`, or that cannot ask the process.
pub fn java_heap(process: u32) -> Option<u64> {
    let jcmd = match env::var_os("JAVA_HOME") {
        Some(home) if !home.is_empty() => Path::new(&home).join("bin/jcmd"),
        _ => PathBuf::from("jcmd"),
    };
    let ask = |order: &str| {
        let mut command = Command::new(&jcmd);
        let output = command.args([&process.to_string(), order]).output();
        let output = output.ok().filter(|it| it.status.success())?;
        String::from_utf8(output.stdout).ok()
    };
    ask("GC.run")?;
    used(&ask("GC.heap_info")?)
}

/// The sum of what is used of each generation of a serial collector's heap.
fn used(heap: &str) -> Option<u64> {
    let generations = heap.lines().filter(|line| line.contains(" generation "));
    let kibibytes = generations.map(|line| {
        let (_, used) = line.split_once(", used ")?;
        used.split_once('K')?.0.parse::<u64>().ok()
    });
    let kibibytes: Option<Vec<u64>> = kibibytes.collect();
    let sum = kibibytes?.iter().sum::<u64>();
    (sum > 0).then_some(sum * 1024)
}
