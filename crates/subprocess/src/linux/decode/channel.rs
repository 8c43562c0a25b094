//! What a wait channel tells alone: the function of the kernel that a thread sleeps in.
//!
//! It says neither on which descriptor nor for how long, so nobody is ever found waiting for the
//! terminal by it: only those are told who wait for something else.

use crate::evidence::{Descriptor, Wait};

/// The wait in such a function; [`Wait::Opaque`] where it may be one for the terminal.
pub(super) fn wait_of(channel: &str) -> Wait {
    let on = |what| Wait::OtherInput { on: vec![what], timeout_ms: None };
    match channel {
        it if it.contains("nanosleep") => Wait::Sleeping,
        "do_wait" | "do_wait4" => Wait::Child,
        it if it.contains("futex") => Wait::Other("futex"),
        it if it.starts_with("locks_lock") || it.contains("flock") => Wait::Lock,
        it if is_fifo(it) || it.ends_with("pipe_read") || it.starts_with("pipe_wait") => {
            on(Descriptor::Pipe)
        }
        it if it.ends_with("pipe_write") => Wait::Writing(Descriptor::Pipe),
        it if it.starts_with("unix_stream_")
            || it.contains("_accept")
            || it.starts_with("__skb_wait") =>
        {
            on(Descriptor::Socket)
        }
        "sigsuspend" | "do_pause" => Wait::Signal,
        // Perhaps for a while.
        "do_sigtimedwait" => Wait::Other("signals"),
        _ => Wait::Opaque,
    }
}

/// Whether the function belongs to `poll` and its kin.
pub(super) fn is_poll(channel: &str) -> bool {
    channel.starts_with("poll_") || channel.contains("sys_poll") || channel == "do_poll"
}

/// Whether it waits for the other end of a FIFO that is being opened.
pub(super) fn is_fifo(channel: &str) -> bool {
    matches!(channel, "wait_for_partner" | "fifo_open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_the_terminal_is_told() {
        let on = |what| Wait::OtherInput { on: vec![what], timeout_ms: None };
        for (channel, wait) in [
            ("hrtimer_nanosleep", Wait::Sleeping),
            ("do_wait", Wait::Child),
            ("futex_do_wait", Wait::Other("futex")),
            ("futex_wait_queue", Wait::Other("futex")),
            ("locks_lock_inode_wait", Wait::Lock),
            ("wait_for_partner", on(Descriptor::Pipe)),
            ("anon_pipe_read", on(Descriptor::Pipe)),
            ("pipe_read", on(Descriptor::Pipe)),
            ("anon_pipe_write", Wait::Writing(Descriptor::Pipe)),
            ("unix_stream_read_generic", on(Descriptor::Socket)),
            ("inet_csk_accept", on(Descriptor::Socket)),
            ("sigsuspend", Wait::Signal),
            ("do_sigtimedwait", Wait::Other("signals")),
            // A terminal's reader, and one of a socket.
            ("wait_woken", Wait::Opaque),
            ("n_tty_read", Wait::Opaque),
            // Whatever is in the set.
            ("poll_schedule_timeout", Wait::Opaque),
            ("do_sys_poll", Wait::Opaque),
            ("do_epoll_wait", Wait::Opaque),
            ("ep_poll", Wait::Opaque),
            ("io_cqring_wait", Wait::Opaque),
            ("something_new", Wait::Opaque),
        ] {
            assert_eq!(wait_of(channel), wait, "{channel}");
        }
        assert!(is_poll("poll_schedule_timeout.constprop.0") && !is_poll("do_epoll_wait"));
    }
}
