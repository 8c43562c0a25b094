//! What a session uses, and what the machine has.

use std::{fs, time::Duration};

use super::{cgroup::Group, members::Whose, procfs::Proc, sys};
use crate::host::{Capacity, Usage};

/// What the living processes of a session use together. Blocks for a walk over its tree.
pub(super) fn of(proc: &Proc, whose: &Whose) -> Usage {
    let mut usage = Usage::default();
    for stat in whose.find_in_tree(proc) {
        let mut buffer = [0; 1024];
        let mut text = |file: &str| {
            let read = proc.read(format_args!("{}/{file}", stat.pid), &mut buffer);
            read.map(|it| String::from_utf8_lossy(it).into_owned()).unwrap_or_default()
        };
        usage.processes += 1;
        usage.cpu += cpu(&text("stat"), sys::clock_ticks_per_second());
        usage.memory_bytes += own_pages(&text("statm")) * sys::page_size();
    }
    // Knows also of those who have ended.
    if let Some(cpu) = whose.group().and_then(Group::cpu) {
        usage.cpu = cpu;
    }
    usage
}

/// CPU time of a process, which may be dead, and of the children that it has waited for.
pub(super) fn cpu_of(proc: &Proc, pid: i32) -> Duration {
    let mut buffer = [0; 1024];
    let read = proc.read(format_args!("{pid}/stat"), &mut buffer).unwrap_or_default();
    cpu(&String::from_utf8_lossy(read), sys::clock_ticks_per_second())
}

/// CPU time in a `/proc/P/stat`: in user and kernel mode, of the process and of its dead children.
fn cpu(stat: &str, ticks_per_second: u64) -> Duration {
    let rest = stat.rsplit(')').next().unwrap_or_default();
    let times = rest.split_ascii_whitespace().skip(11).take(4);
    let ticks: u64 = times.filter_map(|it| it.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / ticks_per_second.max(1))
}

/// Pages in a `/proc/P/statm` that are resident and not shared.
fn own_pages(statm: &str) -> u64 {
    let mut numbers =
        statm.split_ascii_whitespace().skip(1).filter_map(|it| it.parse::<u64>().ok());
    let (resident, shared) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    resident.saturating_sub(shared)
}

/// What the machine has.
pub fn capacity() -> Capacity {
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse().ok();
    Capacity {
        memory_bytes: fs::read_to_string("/proc/meminfo").ok().and_then(|it| total_memory(&it)),
        processes: number("/proc/sys/kernel/pid_max"),
        terminals: number("/proc/sys/kernel/pty/max"),
    }
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|it| it.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_taken_from_their_fields() {
        let stat = "42 (a) b) S 7 42 40 34817 42 4194304 1 2 3 4 100 50 30 20 20 0 3 0 99 0 0";
        assert_eq!(cpu(stat, 100), Duration::from_secs(2));
        assert_eq!(cpu("", 100), Duration::ZERO);
        assert_eq!(own_pages("1000 300 100 1 0 90 0"), 200);
        assert_eq!(own_pages(""), 0);
        assert_eq!(
            total_memory("MemTotal:       24683520 kB\nMemFree: 1 kB\n"),
            Some(25_275_924_480)
        );
        assert_eq!(total_memory("nothing"), None);
    }
}
