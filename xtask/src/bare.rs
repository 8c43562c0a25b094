//! The yardstick: a bare bash on a bare pseudo-terminal, driven by a loop that reads until the
//! output ends in a prompt. It knows nothing and proves nothing; nothing can be faster.

use std::{
    io::{Read, Write},
    time::{Duration, Instant},
};

use anyhow::Context as _;
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// One bare shell.
pub(crate) struct Bare {
    // Dropping the writer types an end of file, so it goes last.
    master: Box<dyn MasterPty + Send>,
    child: Box<dyn Child + Send + Sync>,
    reader: Box<dyn Read + Send>,
    writer: Box<dyn Write + Send>,
    buffer: Vec<u8>,
}

impl Bare {
    /// Starts a shell and waits for its prompt.
    pub(crate) fn open() -> anyhow::Result<Self> {
        let size = PtySize { rows: 40, cols: 160, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size)?;
        let mut command = CommandBuilder::new("/bin/bash");
        command.args(["--noprofile", "--norc", "-i"]);
        for (name, value) in
            [("PS1", "dsh> "), ("TERM", "xterm-256color"), ("HISTFILE", ""), ("PAGER", "cat")]
        {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command)?;
        drop(pair.slave);
        let mut bare = Self {
            reader: pair.master.try_clone_reader()?,
            writer: pair.master.take_writer()?,
            master: pair.master,
            child,
            buffer: vec![0; 1 << 16],
        };
        bare.until(b"dsh> ")?;
        Ok(bare)
    }

    /// Types a line and reads until the output ends in `prompt`.
    pub(crate) fn line(&mut self, line: &str, prompt: &str) -> anyhow::Result<Duration> {
        let start = Instant::now();
        self.writer.write_all(format!("{line}\r").as_bytes())?;
        self.until(prompt.as_bytes())?;
        Ok(start.elapsed())
    }

    fn until(&mut self, prompt: &[u8]) -> anyhow::Result<()> {
        let mut tail: Vec<u8> = Vec::new();
        loop {
            let count = self.reader.read(&mut self.buffer)?;
            anyhow::ensure!(count > 0, "the bare shell ended");
            let read =
                self.buffer.get(..count).context("a read is never longer than its buffer")?;
            tail.extend_from_slice(read);
            // What is still to be typed back ends in a line end, a prompt does not; bash puts
            // nothing behind its prompt.
            if tail.ends_with(prompt) {
                return Ok(());
            }
            let keep = tail.len().saturating_sub(prompt.len());
            tail.drain(..keep);
        }
    }

    /// Types a line, waits until this command is in the foreground, interrupts it, and reads until
    /// the output ends in `prompt`. The time begins with the interrupt.
    pub(crate) fn interrupt(
        &mut self,
        line: &str,
        command: &str,
        prompt: &str,
    ) -> anyhow::Result<Duration> {
        self.writer.write_all(format!("{line}\r").as_bytes())?;
        let group = loop {
            let group = self.master.process_group_leader().context("no foreground")?;
            let name = std::fs::read_to_string(format!("/proc/{group}/comm"));
            if name.is_ok_and(|name| name.trim_end() == command) {
                break Pid::from_raw(group).context("no foreground")?;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let start = Instant::now();
        kill_process_group(group, Signal::INT)?;
        self.until(prompt.as_bytes())?;
        Ok(start.elapsed())
    }

    /// Hangs up and waits for the end.
    pub(crate) fn close(self) -> anyhow::Result<Duration> {
        let Self { master, mut child, reader, writer, .. } = self;
        let pid = child.process_id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.context("the bare shell has no process id")?;
        let start = Instant::now();
        // Not by the library, which sleeps after its signal.
        kill_process(pid, Signal::HUP)?;
        // A shell that misses the signal reads the end of its terminal.
        drop((reader, writer, master));
        child.wait()?;
        Ok(start.elapsed())
    }
}
