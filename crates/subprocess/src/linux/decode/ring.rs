//! Reads that a program has handed to an `io_uring` and waits for.
//!
//! The kernel tells what kind of operation waits for its file (`fdinfo`), and the ring's submission
//! entries, in memory that the program shares with it, on which descriptor. An entry may be stale, so
//! such a wait is never the only ground for a proof.

use super::{Interest, View, multiplexed};
use crate::{
    evidence::{Multiplexer, Wait},
    linux::sys::read_memory,
};

/// Where in the ring's file its submission entries are mapped from.
const ENTRIES: &[u8] = b"10000000";
/// Bytes of an entry.
const ENTRY: usize = 64;
/// Larger rings are looked at only so far.
const MOST_ENTRIES: usize = 1024;
/// `READV`, `READ_FIXED`, `POLL_ADD`, `RECVMSG`, `RECV`, `READ`: operations that wait for input.
const INPUT_OPERATIONS: [u8; 6] = [1, 4, 6, 10, 27, 22];

/// What the ring `fd` is waited for.
pub(super) fn wait_of(view: &View<'_>, fd: i32, name: &'static str) -> Wait {
    let (pid, tid) = (view.pid, view.tid);
    let Ok(about) = view.proc.read_all(format_args!("{pid}/task/{tid}/fdinfo/{fd}")) else {
        return Wait::Opaque;
    };
    let Ok(maps) = view.proc.read_all(format_args!("{pid}/task/{tid}/maps")) else {
        return Wait::Opaque;
    };
    let waiting = waiting_operations(&about);
    let mut interests: Vec<Interest> = Vec::new();
    for (address, length) in maps.split(|&b| b == b'\n').filter_map(entries_of) {
        let mut memory = vec![0; length.min(MOST_ENTRIES * ENTRY)];
        let Ok(read) = read_memory(tid, address, &mut memory) else { return Wait::Opaque };
        for (operation, fd) in memory[..read].as_chunks::<ENTRY>().0.iter().map(entry) {
            let new = !interests.iter().any(|it| it.fd == fd);
            if new && waiting.contains(&operation) && INPUT_OPERATIONS.contains(&operation) {
                interests.push(Interest { fd, events: super::INPUT, file: None });
            }
        }
    }
    multiplexed(view, name, Multiplexer::IoUring, &interests, None)
}

/// Operation and descriptor of a submission entry.
fn entry(entry: &[u8; ENTRY]) -> (u8, i32) {
    let [operation, _, _, _, a, b, c, d, ..] = *entry;
    (operation, i32::from_ne_bytes([a, b, c, d]))
}

/// Codes of the operations that wait for their files: `  op=22, task_works=0` under `PollList:`.
fn waiting_operations(fdinfo: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(fdinfo);
    let listed = text.lines().skip_while(|line| !line.starts_with("PollList:")).skip(1);
    listed
        .map_while(|line| line.trim().strip_prefix("op=")?.split(',').next()?.trim().parse().ok())
        .collect()
}

/// Address and length of a mapping of submission entries:
/// `7f00-7f10 rw-s 10000000 00:10 1057 anon_inode:[io_uring]`.
fn entries_of(mapping: &[u8]) -> Option<(u64, usize)> {
    let mut fields = mapping.split(|&b| b == b' ').filter(|it| !it.is_empty());
    let range = std::str::from_utf8(fields.next()?).ok()?;
    let offset = fields.nth(1)?;
    let ours = offset == ENTRIES && mapping.ends_with(b"anon_inode:[io_uring]");
    let (begin, end) = range.split_once('-').filter(|_| ours)?;
    let (begin, end) = (u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
    Some((begin, usize::try_from(end.checked_sub(begin)?).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_kernel_tells_of_a_ring() {
        let about = b"SqMask:\t0x7\nUserFiles:\t0\nPollList:\n  op=22, task_works=0\n  op=6, task_works=0\nCqOverflowList:\n";
        assert_eq!(waiting_operations(about), [22, 6]);
        assert_eq!(waiting_operations(b"PollList:\nCqOverflowList:\n"), Vec::<u8>::new());
        assert_eq!(waiting_operations(b"op=22\n"), Vec::<u8>::new());
        let mapping = b"7f5000-7f5200 rw-s 10000000 00:10 1057     anon_inode:[io_uring]";
        assert_eq!(entries_of(mapping), Some((0x7f_5000, 0x200)));
        for other in [
            &b"7f5000-7f5200 rw-s 00000000 00:10 1057     anon_inode:[io_uring]"[..],
            b"7f5000-7f5200 rw-s 10000000 00:10 1057     /tmp/file",
            b"",
        ] {
            assert_eq!(entries_of(other), None);
        }
        let mut bytes = [0; ENTRY];
        bytes[0] = 22;
        bytes[4..8].copy_from_slice(&7i32.to_ne_bytes());
        assert_eq!(entry(&bytes), (22, 7));
    }
}
