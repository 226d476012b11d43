//! What the system reports of a process.

use std::fs;
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn processor_time_grows_with_work() {
        let before = processor_time(std::process::id()).expect("Linux reports it");
        let began = Instant::now();
        let worked = || processor_time(std::process::id()).is_some_and(|after| after > before);
        while !worked() {
            assert!(began.elapsed() < Duration::from_secs(60), "it has worked");
        }
    }
}
