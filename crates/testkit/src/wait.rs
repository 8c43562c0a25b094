//! Waiting for something to happen, with a guard against waiting forever.
//!
//! The guard is no measurement: it is far beyond what any correct run needs.

use std::{fmt, panic::Location, time::Duration};

use terminal::SendOperation;

/// Nothing correct takes this long, on the slowest machine.
pub const HANG: Duration = Duration::from_secs(30);

/// Between two looks at a part of the world that announces nothing, such as the process table.
const LOOK: Duration = Duration::from_millis(5);

/// Awaits `future`.
///
/// # Panics
///
/// After [`HANG`], naming `what` and the caller.
#[track_caller]
pub fn guarded<F: Future>(what: impl fmt::Display, future: F) -> impl Future<Output = F::Output> {
    let caller = Location::caller();
    async move {
        let Ok(output) = tokio::time::timeout(HANG, future).await else {
            panic!("hangs: {what} (at {caller})");
        };
        output
    }
}

/// Waits until `holds`, for conditions without an event of their own. Where there is one (a
/// channel, [`Script::saw`](crate::Script::saw), a descriptor), await that.
///
/// # Panics
///
/// After [`HANG`], naming `what` and the caller.
#[track_caller]
pub fn wait_until(
    what: impl fmt::Display,
    mut holds: impl FnMut() -> bool,
) -> impl Future<Output = ()> {
    guarded(what, async move {
        while !holds() {
            tokio::time::sleep(LOOK).await;
        }
    })
}

/// Waits until a live operation has shown `text`.
///
/// # Panics
///
/// When it settles before that, with all that it has shown.
pub async fn shown(operation: &dyn SendOperation, text: &str) {
    let mut follower = operation.subscribe();
    let mut all = String::new();
    while !all.contains(text) {
        let delta = follower.next().await;
        let delta = delta.unwrap_or_else(|| panic!("settled without {text:?}: {all:?}"));
        all.push_str(&delta.text);
    }
}
