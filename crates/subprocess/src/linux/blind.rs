//! The end of a session without a process table: of what can be reached through the terminal.
//!
//! The foreground group has its grace before the leader is told to hang up. Whatever else was started
//! is only reached by the hang-up.

use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use super::{
    process::LocalProcess,
    target::{Kept, RECHECK, wait_for},
    teardown::{ASK_AGAIN, Grace, KILL_BOUND},
};
use crate::host::{Survivor, TerminateError};

/// Ends what is in the foreground, then the leader.
pub(super) async fn terminate(
    process: &mut LocalProcess,
    grace: Grace,
    output: &mut Vec<u8>,
) -> Result<(), TerminateError> {
    let leader = &process.leader;
    let mut kept = Kept::new(process.pty.master(), output);
    let front = process.pty.foreground().filter(|&it| it != leader.pid).and_then(Pid::from_raw);
    if let Some(group) = front
        && kill_process_group(group, Signal::TERM).is_ok()
        && !wait_for(group_ended(group), grace.of_descendants, &mut kept).await
        && kill_process_group(group, Signal::KILL).is_ok()
    {
        wait_for(group_ended(group), Instant::now() + KILL_BOUND, &mut kept).await;
    }

    let deadline = grace.of_leader();
    let mut refused = leader.signal(Signal::TERM).err();
    let mut pause = ASK_AGAIN;
    while refused.is_none() {
        refused = leader.signal(Signal::HUP).err();
        let next = deadline.min(Instant::now() + pause);
        if wait_for(leader.ended(), next, &mut kept).await {
            break;
        }
        if next == deadline {
            refused = leader.signal(Signal::KILL).err();
            wait_for(leader.ended(), Instant::now() + KILL_BOUND, &mut kept).await;
            break;
        }
        pause *= 4;
    }
    if let Some(group) = &leader.group {
        group.group().kill();
    }
    kept.read();
    process.note_exit();
    process.leader.collect();
    if process.leader.is_collected() {
        return Ok(());
    }
    let reason =
        refused.map_or_else(|| "still there after SIGKILL".to_owned(), |it| it.to_string());
    let command = "the session's leader".to_owned();
    Err(TerminateError { survivors: vec![Survivor { pid: process.leader.pid, command, reason }] })
}

/// Waits until a process group is empty, for which there is no event.
async fn group_ended(group: Pid) {
    while test_kill_process_group(group).is_ok() {
        tokio::time::sleep(RECHECK).await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn the_foreground_has_its_grace() {
        use crate::host::{TerminalProcess as _, TerminalSize, TerminalSpec};
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("done");
        let one = std::num::NonZeroU16::MIN;
        let spec = TerminalSpec {
            program: "/bin/bash".into(),
            args: ["--noprofile", "--norc", "-i"].map(str::to_owned).to_vec(),
            env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            cwd: "/".into(),
            size: TerminalSize { rows: one, cols: one },
            isolation: crate::host::Isolation::None,
            umask: 0o022,
            confinement: crate::host::Confinement::None,
            bounds: crate::host::Bounds::default(),
        };
        let mut process = LocalProcess::start(&spec, None, false).unwrap();
        let mut output = Vec::new();
        let end = format!("sleep 0.3; echo complete > {}; exit", file.display());
        let line = format!("bash -c 'trap \"{end}\" TERM; while :; do sleep 1000; done'\r");
        process.write(line.as_bytes());
        tokio::time::timeout(Duration::from_secs(30), async {
            while process.pty.foreground().is_none_or(|it| it == process.pid() || !traps_term(it)) {
                let soon = Some(Instant::now() + Duration::from_millis(5));
                process.next(soon, &mut output).await;
            }
            let grace = Grace::from_now(Duration::from_hours(1));
            terminate(&mut process, grace, &mut output).await.unwrap();
        })
        .await
        .unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "complete\n");
    }

    /// Whether a process catches TERM, and is not a shell on its way to another program.
    fn traps_term(pid: i32) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let caught = status.lines().find_map(|it| it.strip_prefix("SigCgt:")).unwrap_or("0");
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        u64::from_str_radix(caught.trim(), 16).unwrap() & 1 << 14 != 0
            && line.split(|&it| it == 0).nth(1) == Some(b"-c")
    }
}
