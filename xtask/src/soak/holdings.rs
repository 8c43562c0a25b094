//! What this process holds of the machine, and whether it is more than it was.

use std::{fmt, fs, time::Duration};

use anyhow::ensure;
use testkit::Snapshot;

/// Ends of threads and of what they hold come without an event.
const LOOK: Duration = Duration::from_millis(100);
/// A thread for blocking work leaves the runtime after ten idle seconds.
const LOOKS: usize = 200;

/// Memory that there may be beyond that of before: what an allocator keeps does not grow with time.
const SPARE_MEMORY: u64 = 64 << 20;

pub(crate) struct Holdings {
    snapshot: Snapshot,
    threads: usize,
    memory: u64,
}

impl Holdings {
    /// Looks now.
    pub(crate) fn take() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let number = |name: &str| {
            let line = status.lines().find_map(|it| it.strip_prefix(name));
            line.and_then(|it| it.split_ascii_whitespace().next()?.parse::<u64>().ok())
        };
        Self {
            snapshot: Snapshot::take(),
            threads: number("Threads:").and_then(|it| it.try_into().ok()).unwrap_or(0),
            memory: number("VmRSS:").unwrap_or(0) * 1024,
        }
    }

    /// After everything that a first round leaves behind for moments is gone.
    pub(crate) async fn settled() -> Self {
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK).await;
        }
        Self::take()
    }

    /// As soon as there is no more than `before`, or else after a while.
    pub(crate) async fn settled_like(before: &Self) -> Self {
        for _ in 0..2 * LOOKS {
            let now = Self::take();
            if now.compare(before).is_ok() {
                return now;
            }
            tokio::time::sleep(LOOK).await;
        }
        Self::take()
    }

    /// Fails when there is more than `before`.
    pub(crate) fn compare(&self, before: &Self) -> anyhow::Result<()> {
        let leaks = self.snapshot.beyond(&before.snapshot);
        ensure!(leaks.is_empty(), "left over:\n{leaks}");
        ensure!(
            self.threads <= before.threads,
            "{} threads, {} before",
            self.threads,
            before.threads
        );
        ensure!(
            self.memory <= before.memory + SPARE_MEMORY,
            "{} MiB of memory, {} before",
            self.memory >> 20,
            before.memory >> 20
        );
        Ok(())
    }
}

impl fmt::Display for Holdings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} descriptors, {} terminals, {} processes, {} threads, {} MiB",
            self.snapshot.descriptors.len(),
            self.snapshot.terminals.len(),
            self.snapshot.processes.len(),
            self.threads,
            self.memory >> 20
        )
    }
}
