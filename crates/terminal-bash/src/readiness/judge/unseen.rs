//! A foreground of which nobody can be seen to wait, because its processes may not be looked at: of
//! another user, or without a process table.
//!
//! | the terminal … | ready if it stays so for | evidence |
//! |---|---|---|
//! | is the shell's, behind its own mark, and nobody at all can be seen, or nobody else is there | 2 ms | `settled` |
//! | has somebody blocked in `read` | 1 ms | `opaque_read` |
//! | had bracketed paste switched on since the write, nothing of ours echoed after it | 5 ms, blind 10 ms | `editor_mode` |
//! | is in canonical mode with echo off, where a blocked read cannot be told | 40 ms | `settled` |

use std::time::Duration;

use subprocess::{ProcessFacts, Scan, Wait};
use terminal::{Evidence as Strength, StateKind};

use super::{Look, Verdict, Waiter};
use crate::readiness::Prompt;

/// What the terminal alone tells; none when it tells nothing, somebody runs, or nobody is hidden.
pub(super) fn verdict(look: &Look<'_>, shell: i32) -> Option<Verdict> {
    let threads = || look.processes.iter().flat_map(|process| process.threads.iter());
    if threads().any(|it| matches!(it.wait, Wait::Running | Wait::Uninterruptible)) {
        return None;
    }
    let blind = look.scan == Scan::Blind;
    let hidden = look.processes.iter().find(|it| hides(it));
    let waiter = match hidden {
        Some(process) => Waiter { pid: process.pid, tid: process.pid },
        None if blind => Waiter { pid: 0, tid: 0 },
        None => return None,
    };
    let shell_alone = matches!(look.processes, [only] if only.pid == shell);
    let prompt = look.prompt.filter(|_| blind || shell_alone);
    let opened = !look.modes.canonical && look.screen.editor_opened;
    let silent = look.modes.canonical && !look.modes.echo;
    let (evidence, millis) = match look.blocked_reader {
        _ if prompt.is_some() => (Strength::Settled, 2),
        Some(true) => (Strength::OpaqueRead, 1),
        _ if opened => (Strength::EditorMode, if blind { 10 } else { 5 }),
        None if silent => (Strength::Settled, 40),
        _ => return None,
    };
    let kind = match prompt {
        Some(Prompt::Primary) => StateKind::Prompt,
        Some(Prompt::Continuation) => StateKind::Continuation,
        None => look.kind(),
    };
    Some(Verdict::Settling { kind, evidence, window: Duration::from_millis(millis), waiter })
}

/// Whether one of them may not be looked at.
pub(super) fn is_hidden(processes: &[ProcessFacts]) -> bool {
    processes.iter().any(hides)
}

fn hides(process: &ProcessFacts) -> bool {
    process.threads.iter().any(|thread| thread.wait == Wait::Opaque)
}
