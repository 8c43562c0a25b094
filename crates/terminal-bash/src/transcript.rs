//! The text of a session that memory no longer holds: a bounded file, read by nobody else.
//!
//! Text arrives in the chunks that the scrollback drops, and is written by threads that may block, one
//! after the other, so that a slow disk delays no session. The file is a ring: each byte's place is
//! its offset in the session's text, modulo the bound.
//!
//! Guarantees:
//! - the file has no name: nobody can open it, and the kernel removes it with its last descriptor,
//!   however the host ends;
//! - what can be read ends where memory begins, without a gap: text that could not be written takes
//!   all older text with it, and the reason is kept;
//! - neither the file nor what waits to be written exceeds its bound;
//! - no file and no folder before the first text that needs one.

use std::{
    collections::VecDeque,
    fs::{DirBuilder, File, Permissions},
    io,
    os::unix::fs::{DirBuilderExt as _, FileExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use dsh_core::lock;
use tokio::task::JoinHandle;

use crate::screen::Chunk;

/// Whose turn it is to write. Each session has a thread while it has something to write; were all of
/// them to run, they would take the processor from whoever reads the terminals.
static TURN: Mutex<()> = Mutex::new(());

/// Bytes that may wait for the disk; beyond them the disk is too slow, and older text is given up.
const MAX_WAITING: usize = 4 << 20;

/// The session task's end of a transcript.
pub(crate) struct Transcript {
    archive: Arc<Archive>,
    writer: Option<JoinHandle<()>>,
}

/// What the session's task, its readers and the writing thread share.
#[derive(Debug)]
pub(crate) struct Archive {
    /// Folder of the file; why there is none.
    folder: Result<PathBuf, String>,
    /// Most bytes of the file.
    limit: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<Arc<File>>,
    /// What can be read, oldest first.
    blocks: VecDeque<Block>,
    /// The newest of them, which are not written yet.
    waiting: VecDeque<Arc<Chunk>>,
    writing: bool,
    /// Why text is missing that the bound would allow.
    lost: Option<String>,
    /// Nothing is written any more.
    closed: bool,
}

/// A run of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Offset of its first byte in the session's text.
    pub(crate) start: u64,
    /// Number of the line which that byte belongs to.
    pub(crate) line: u64,
    /// It has the beginning of that line.
    pub(crate) whole: bool,
    pub(crate) bytes: usize,
}

impl Block {
    fn end(&self) -> u64 {
        self.start + self.bytes as u64
    }
}

impl Transcript {
    /// An empty one below `home`, with at most `limit` bytes.
    pub(crate) fn new(home: &Result<PathBuf, String>, limit: u64) -> Self {
        let folder = home.as_ref().map(|home| home.join("transcripts")).map_err(Clone::clone);
        let archive = Archive { folder, limit, state: Mutex::default() };
        Self { archive: Arc::new(archive), writer: None }
    }

    /// For readers.
    pub(crate) fn archive(&self) -> Arc<Archive> {
        Arc::clone(&self.archive)
    }

    /// Takes text that follows all text so far. Never blocks.
    pub(crate) fn push(&mut self, chunk: Chunk) {
        let archive = &self.archive;
        let mut state = lock(&archive.state);
        if state.closed {
            return;
        }
        let waiting: usize = state.waiting.iter().map(|it| it.bytes.len()).sum();
        if waiting > MAX_WAITING {
            state.give_up("the disk is too slow for what the session prints".to_owned());
        }
        if state.blocks.back().is_some_and(|last| last.end() != chunk.start) {
            state.blocks.clear();
            state.waiting.clear();
        }
        let Chunk { start, line, whole, .. } = chunk;
        let block = Block { start, line, whole, bytes: chunk.bytes.len() };
        state.blocks.push_back(block);
        state.waiting.push_back(Arc::new(chunk));
        while let Some(first) = state.blocks.front()
            && block.end() - first.start > archive.limit
        {
            state.blocks.pop_front();
        }
        if !state.writing {
            state.writing = true;
            let archive = Arc::clone(archive);
            self.writer = Some(tokio::task::spawn_blocking(move || archive.write_waiting()));
        }
    }

    /// Waits until nothing waits for the disk.
    #[cfg(test)]
    pub(crate) async fn settle(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.await.ok();
        }
    }

    /// Ends the file; resolves when nothing uses it any more but a read that runs.
    pub(crate) async fn close(&mut self) {
        lock(&self.archive.state).close();
        if let Some(writer) = self.writer.take() {
            writer.await.ok();
        }
    }
}

impl Drop for Transcript {
    fn drop(&mut self) {
        // The writer, if there is one, ends after the block that it writes.
        lock(&self.archive.state).close();
    }
}

impl State {
    fn give_up(&mut self, why: String) {
        if self.lost.is_none() {
            tracing::warn!("older output can no longer be read: {why}");
        }
        self.lost = Some(why);
        self.blocks.clear();
        self.waiting.clear();
    }

    fn close(&mut self) {
        self.closed = true;
        self.blocks.clear();
        self.waiting.clear();
        self.file = None;
    }
}

impl Archive {
    /// What can be read, oldest first, and why there is not more.
    pub(crate) fn blocks(&self) -> (VecDeque<Block>, Option<String>) {
        let state = lock(&self.state);
        (state.blocks.clone(), state.lost.clone())
    }

    /// What memory hides and has not handed on yet can be read, too: it follows what is here, or is
    /// all there is.
    pub(crate) fn goes_on_in_memory(&self) -> bool {
        let state = lock(&self.state);
        state.lost.is_none() || !state.blocks.is_empty()
    }

    /// The oldest text that can be read.
    pub(crate) fn first(&self) -> Option<Block> {
        lock(&self.state).blocks.front().copied()
    }

    /// Why text is missing that the bound would allow.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.state).lost.clone()
    }

    /// The text of a block. Fails when it was dropped meanwhile, and when the disk does.
    pub(crate) fn read(&self, block: &Block) -> io::Result<Vec<u8>> {
        let gone = || io::Error::new(io::ErrorKind::NotFound, "it was dropped");
        let file = {
            let state = lock(&self.state);
            if let Some(chunk) = state.waiting.iter().find(|it| it.start == block.start) {
                return Ok(chunk.bytes.clone());
            }
            state.file.clone().ok_or_else(gone)?
        };
        let mut bytes = vec![0; block.bytes];
        let (head, tail) = bytes.split_at_mut(self.before_wrap(block));
        file.read_exact_at(head, block.start % self.limit)?;
        file.read_exact_at(tail, 0)?;
        let state = lock(&self.state);
        // Else it may have been written over while it was read.
        if state.blocks.front().is_some_and(|first| first.start <= block.start) {
            Ok(bytes)
        } else {
            Err(gone())
        }
    }

    /// Bytes of the block up to the end of the ring.
    fn before_wrap(&self, block: &Block) -> usize {
        let room = self.limit - block.start % self.limit;
        block.bytes.min(usize::try_from(room).unwrap_or(usize::MAX))
    }

    #[cfg(test)]
    pub(crate) fn metadata(&self) -> Option<std::fs::Metadata> {
        lock(&self.state).file.as_ref()?.metadata().ok()
    }

    /// Keeps every transcript of this process from writing, as a disk that hangs would.
    #[cfg(test)]
    pub(crate) fn hold() -> std::sync::MutexGuard<'static, ()> {
        lock(&TURN)
    }

    fn write_waiting(&self) {
        loop {
            let (chunk, file) = {
                let mut state = lock(&self.state);
                let Some(chunk) = state.waiting.front().cloned() else {
                    state.writing = false;
                    return;
                };
                (chunk, state.file.clone())
            };
            let written = self.write(&chunk, file);
            let mut state = lock(&self.state);
            match written {
                Ok(file) if !state.closed => state.file = Some(file),
                Ok(_) => {}
                Err(error) => {
                    state.give_up(error);
                    state.file = None;
                }
            }
            if state.waiting.front().is_some_and(|it| it.start == chunk.start) {
                state.waiting.pop_front();
            }
        }
    }

    fn write(&self, chunk: &Chunk, file: Option<Arc<File>>) -> Result<Arc<File>, String> {
        let folder = self.folder.as_ref().map_err(Clone::clone)?;
        let _turn = lock(&TURN);
        let failed = |error: io::Error| {
            format!("the transcript in {:?} failed: {error}", folder.display().to_string())
        };
        let file = match file {
            Some(file) => file,
            None => Arc::new(create(folder).map_err(failed)?),
        };
        let Chunk { start, line, whole, .. } = *chunk;
        let block = Block { start, line, whole, bytes: chunk.bytes.len() };
        if block.bytes as u64 <= self.limit {
            let (head, tail) = chunk.bytes.split_at(self.before_wrap(&block));
            file.write_all_at(head, start % self.limit).map_err(failed)?;
            file.write_all_at(tail, 0).map_err(failed)?;
        }
        Ok(file)
    }
}

/// A file without a name, for its owner alone.
fn create(folder: &Path) -> io::Result<File> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let file = tempfile::tempfile_in(folder)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
