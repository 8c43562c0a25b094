//! The command line of this process as others see it.

use std::{
    fs, io,
    io::{Seek as _, SeekFrom, Write as _},
};

/// Makes `text` what the process table shows as the command line of this process, as far as there
/// was room in the one before.
///
/// Whoever kills by a pattern (`pkill -f`) then does not meet this process by what it was asked to
/// do. Read the arguments before: they are gone.
pub fn set_command_line(text: &str) -> io::Result<()> {
    overwrite(Place::Arguments, text)
}

/// Removes what the process table shows as the environment of this process, secrets included, and
/// what this process itself would find there.
pub(super) fn clear_environment() -> io::Result<()> {
    overwrite(Place::Environment, "")
}

/// Where the kernel looks; the number of the field in `/proc/P/stat` with its first address, which
/// that with its end follows.
#[derive(Clone, Copy, Debug)]
enum Place {
    Arguments = 48,
    Environment = 50,
}

fn overwrite(place: Place, text: &str) -> io::Result<()> {
    let own = fs::read_to_string("/proc/self/stat")?;
    // The fields behind the command, which may contain anything; the first of them is the third.
    let fields: Vec<&str> = own.rsplit(')').next().unwrap_or_default().split(' ').collect();
    let address = |number: usize| fields.get(number - 2).and_then(|it| it.trim().parse().ok());
    let first = place as usize;
    let (Some(start), Some(end)) = (address(first), address(first + 1)) else {
        return Err(io::Error::other("the place of the command line is not told"));
    };
    let (start, end): (u64, u64) = (start, end);
    let mut line = vec![0; usize::try_from(end.saturating_sub(start)).unwrap_or(0)];
    let length = text.len().min(line.len().saturating_sub(1));
    line[..length].copy_from_slice(&text.as_bytes()[..length]);
    let mut memory = fs::OpenOptions::new().write(true).open("/proc/self/mem")?;
    memory.seek(SeekFrom::Start(start))?;
    memory.write_all(&line)
}
