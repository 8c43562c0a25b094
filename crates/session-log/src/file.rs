//! One log file: header, frames, sequence numbers.
//!
//! Guarantee: the file is a run of complete frames after every call, also after a failed one. If
//! that cannot be restored, nothing more is written behind the damage.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use agents::Agent;
use serde_json::{Value, json};

use crate::{LogError, event::Event, path::file_name};

/// Version of the line format.
const VERSION: u32 = 1;
/// Files tried for one agent id.
const MAX_FILES: u32 = 10_000;

/// An open log.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    /// Length of the intact part.
    length: u64,
    seq: u64,
    damaged: bool,
}

impl LogFile {
    /// Creates the next free file of the agent in `folder` and writes its header. Returns the
    /// header line too.
    pub(crate) fn create(folder: &Path, agent: &Agent) -> Result<(Self, String), LogError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(|source| LogError { path: folder.to_owned(), source })?;
        let (path, file) = create_next(folder)?;
        let mut log = Self { path, file, length: 0, seq: 0, damaged: false };
        let header = json!({
            "type": "session",
            "version": VERSION,
            "id": agent.id(),
            "createdAt": now(),
            "cwd": agent.workspace_root().to_string_lossy(),
        });
        let line = header.to_string();
        match log.write(&line) {
            Ok(()) => Ok((log, line)),
            Err(error) => {
                // It holds nothing, and the next attempt should find its name free.
                std::fs::remove_file(&log.path).ok();
                Err(error)
            }
        }
    }

    /// Appends an event and returns its line.
    pub(crate) fn append(&mut self, event: &Event) -> Result<String, LogError> {
        let seq = self.seq + 1;
        let line = json!({ "seq": seq, "time": now(), "type": event.kind, "data": event.data });
        let line = line.to_string();
        self.write(&line)?;
        self.seq = seq;
        Ok(line)
    }

    fn write(&mut self, line: &str) -> Result<(), LogError> {
        self.write_frame(line).map_err(|source| LogError { path: self.path.clone(), source })
    }

    fn write_frame(&mut self, line: &str) -> io::Result<()> {
        if self.damaged {
            return Err(io::Error::other("an earlier event was cut and could not be removed"));
        }
        let frame = frame(line)?;
        // One write(2) unless the kernel takes less than all.
        let written = self.file.write_all(&frame);
        if written.is_err() {
            self.damaged = self.file.set_len(self.length).is_err();
        } else {
            self.length += frame.len() as u64;
        }
        written
    }
}

fn create_next(folder: &Path) -> Result<(PathBuf, File), LogError> {
    let mut path = folder.to_owned();
    for number in 1..=MAX_FILES {
        path = folder.join(file_name(number));
        let mut options = OpenOptions::new();
        match options.append(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(LogError { path, source }),
        }
    }
    Err(LogError { path, source: io::ErrorKind::AlreadyExists.into() })
}

/// One complete frame with a checksum.
fn frame(line: &str) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::with_capacity(256), zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(line.len() as u64 + 1))?;
    encoder.write_all(line.as_bytes())?;
    encoder.write_all(b"\n")?;
    encoder.finish()
}

/// Milliseconds since the epoch.
fn now() -> Value {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX).into()
}
