//! Whether the zero-byte read does on this kernel what it is used for.

use std::{sync::OnceLock, time::Duration};

use crate::linux::pty::Pty;

/// Whether the zero-byte read tells a blocked reader here, tried once on a scratch terminal.
///
/// Blocks for well under a millisecond where it works and for a tenth of a second where it does
/// not. Needs a tokio runtime.
pub(crate) fn reader_test_works() -> bool {
    static WORKS: OnceLock<bool> = OnceLock::new();
    *WORKS.get_or_init(|| {
        let works = try_reader_test().unwrap_or(false);
        if !works {
            tracing::warn!("a blocked reader of a terminal cannot be told here");
        }
        works
    })
}

fn try_reader_test() -> Option<bool> {
    let one = std::num::NonZeroU16::MIN;
    let pty = Pty::open(crate::host::TerminalSize { rows: one, cols: one }).ok()?;
    let slave = pty.slave_for_child().ok()?;
    if pty.blocked_reader() != Some(false) {
        return Some(false);
    }
    let reader = std::thread::Builder::new()
        .name("reader-test".to_owned())
        .spawn(move || rustix::io::read(&slave, &mut [0u8; 8]).is_ok())
        .ok()?;
    // No event says "that thread is blocked now".
    let seen = (0..100).any(|attempt| {
        std::thread::sleep(Duration::from_micros(if attempt < 10 { 20 } else { 1000 }));
        pty.blocked_reader() == Some(true)
    });
    rustix::io::write(pty.master().get_ref(), b"\n").ok()?;
    let ended = reader.join().unwrap_or(false);
    Some(seen && ended && pty.blocked_reader() == Some(false))
}
