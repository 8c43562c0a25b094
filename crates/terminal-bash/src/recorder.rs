//! The recording of a session: a bounded file of its own, in the format asciicast v3.
//!
//! Guarantees:
//! - nobody but the user can read the file;
//! - what is typed is recorded only while the terminal echoes, or at the shell's own prompt, which
//!   does; the private marks of the shell are in no recording;
//! - a slow disk delays no session, and neither the file nor what waits for it exceeds its bound: a
//!   recording that reaches it ends with a marker that says so;
//! - the file is whole lines at every moment but that of a crash.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use asciicast::{Encoder, EventKind, Header};
use tokio::{sync::mpsc, task::JoinHandle};

/// Files that are tried for one name.
const MAX_FILES: u32 = 10_000;
/// Room for the lines that end a recording.
const LAST_LINES: u64 = 512;
/// The beginning of the shell's marks.
const MARK: &[u8] = b"\x1b]133;";
/// Longest mark.
const MARK_BYTES: usize = 2048;

/// A recording that goes on.
pub(crate) struct Recorder {
    encoder: Encoder,
    filter: MarkFilter,
    /// None when nothing is written any more.
    lines: Option<mpsc::UnboundedSender<String>>,
    writer: JoinHandle<()>,
    /// When it began.
    began: Duration,
    /// Bytes that may still be written.
    room: u64,
}

impl Recorder {
    /// Creates the next free file `name` in `folder`; moments are counted as `now` is.
    pub(crate) fn create(
        folder: &Path,
        name: &str,
        header: Header,
        max_bytes: u64,
        now: Duration,
    ) -> io::Result<(Self, PathBuf)> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let (path, file) = create_next(folder, name)?;
        let (lines, queue) = mpsc::unbounded_channel();
        let writer = tokio::spawn(write(file, path.clone(), queue));
        let mut recorder = Self {
            encoder: Encoder::default(),
            filter: MarkFilter::default(),
            lines: Some(lines),
            writer,
            began: now,
            room: max_bytes,
        };
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        recorder.line(now, Encoder::header(&Header { timestamp: since_1970.as_secs(), ..header }));
        Ok((recorder, path))
    }

    /// The program wrote this.
    pub(crate) fn output(&mut self, now: Duration, bytes: &[u8]) {
        let shown = self.filter.pass(bytes);
        if let Some(line) = self.encoder.output(now.saturating_sub(self.began), &shown) {
            self.line(now, line);
        }
    }

    /// Something else happened.
    pub(crate) fn event(&mut self, now: Duration, kind: &EventKind) {
        let line = self.encoder.event(now.saturating_sub(self.began), kind);
        self.line(now, line);
    }

    fn line(&mut self, now: Duration, line: String) {
        let Some(lines) = &self.lines else { return };
        let bytes = line.len() as u64;
        if bytes + LAST_LINES <= self.room {
            self.room -= bytes;
            lines.send(line).ok();
            return;
        }
        let end = EventKind::Marker("the recording reached its bound".to_owned());
        lines.send(self.encoder.event(now.saturating_sub(self.began), &end)).ok();
        self.lines = None;
    }

    /// Ends it; resolves when all is written.
    pub(crate) async fn close(mut self) {
        self.lines = None;
        self.writer.await.ok();
    }
}

/// Writes lines until nobody sends any more, or until one cannot be written; of what it was part of
/// nothing stays.
async fn write(file: File, path: PathBuf, mut queue: mpsc::UnboundedReceiver<String>) {
    const AT_ONCE: usize = 256;
    let mut file = Some(file);
    let mut whole = 0;
    let mut lines = Vec::new();
    while queue.recv_many(&mut lines, AT_ONCE).await > 0 {
        let text = std::mem::take(&mut lines).concat();
        let Some(mut open) = file.take() else { return };
        let begin = whole;
        whole += text.len() as u64;
        let written = tokio::task::spawn_blocking(move || {
            let written = open.write_all(text.as_bytes());
            if written.is_err() {
                open.set_len(begin)?;
            }
            written.map(|()| open)
        });
        match written.await.map_err(io::Error::other).flatten() {
            Ok(open) => file = Some(open),
            Err(error) => {
                tracing::warn!("the recording {} ends: {error}", path.display());
                return;
            }
        }
    }
}

/// The first free name: `name.cast`, `name-2.cast`, …
fn create_next(folder: &Path, name: &str) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    for number in 1..=MAX_FILES {
        let suffix = if number == 1 { String::new() } else { format!("-{number}") };
        let path = folder.join(format!("{name}{suffix}.cast"));
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            opened => return opened.map(|file| (path, file)),
        }
    }
    Err(io::Error::other(format!("{MAX_FILES} recordings `{name}` are there already")))
}

/// Takes the shell's marks out of a stream.
#[derive(Debug, Default)]
struct MarkFilter {
    /// What may be a mark.
    held: Vec<u8>,
}

impl MarkFilter {
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut passed = Vec::with_capacity(self.held.len());
        let mut rest = self.held.as_slice();
        while let Some(at) = memchr::memchr(MARK[0], rest) {
            passed.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if rest.len() < MARK.len() && MARK.starts_with(rest) {
                break;
            }
            if !rest.starts_with(MARK) {
                passed.push(rest[0]);
                rest = &rest[1..];
                continue;
            }
            let payload = &rest[MARK.len()..];
            match payload.iter().position(|byte| matches!(byte, 0x07 | 0x1b)) {
                Some(end) if payload[end] == 0x07 => rest = &payload[end + 1..],
                Some(end) if payload.get(end + 1) == Some(&b'\\') => rest = &payload[end + 2..],
                // Its end is cut.
                Some(end) if end + 1 == payload.len() => break,
                None if payload.len() < MARK_BYTES => break,
                // No mark: what it is, a player shall see.
                _ => {
                    passed.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        if memchr::memchr(MARK[0], rest).is_none() {
            passed.extend_from_slice(rest);
            rest = &[];
        }
        self.held = rest.to_vec();
        passed
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use asciicast::{Event, Recording};
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header { columns: 80, rows: 24, ..Header::default() }
    }

    #[tokio::test]
    async fn a_recording_is_private_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("casts");
        let at = Duration::from_secs;
        let create = |max| Recorder::create(&folder, "main-pty-1", header(), max, at(5)).unwrap();
        let (mut recorder, path) = create(2_000);
        recorder.output(at(6), b"dsh> ");
        recorder.event(at(7), &EventKind::Input("ls\r".to_owned()));
        for _ in 0..1_000 {
            recorder.output(at(8), b"more");
        }
        recorder.close().await;
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&folder)), (0o600, 0o700));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.len() <= 2_000, "{}", text.len());
        let events = Recording::parse(&text).unwrap().events;
        let event = |seconds, kind| Event { at: at(seconds), kind };
        assert_eq!(
            events[..2],
            [
                event(1, EventKind::Output("dsh> ".to_owned())),
                event(2, EventKind::Input("ls\r".to_owned())),
            ]
        );
        assert!(matches!(&events.last().unwrap().kind, EventKind::Marker(_)), "{events:?}");
        let (recorder, second) = create(2_000);
        recorder.close().await;
        assert_eq!(second, folder.join("main-pty-1-2.cast"));
    }

    #[test]
    fn marks_are_taken_out() {
        for (stream, expected) in [
            ("\x1b]133;B;0;dsh=secret\x07dsh> ", "dsh> "),
            ("a\x1b]133;C;dsh=secret\x1b\\b", "ab"),
            ("\x1b]0;title\x07\x1b[1mx", "\x1b]0;title\x07\x1b[1mx"),
            ("\x1b]133;no end\x1b[1m", "\x1b]133;no end\x1b[1m"),
        ] {
            let passed = MarkFilter::default().pass(stream.as_bytes());
            assert_eq!(String::from_utf8_lossy(&passed), expected, "{stream:?}");
        }
    }

    proptest! {
        /// However the stream is cut.
        #[test]
        fn cuts_do_not_matter(
            pieces in proptest::collection::vec(
                prop_oneof![
                    Just("\x1b]133;B;0;dsh=secret\x07".to_owned()),
                    Just("\x1b]133;C;dsh=secret\x1b\\".to_owned()),
                    Just("\x1b]0;t\x07".to_owned()),
                    "[a-c\x1b\\]]{0,4}",
                ],
                0..8,
            ),
            cut in 0_usize..200,
        ) {
            let stream = pieces.concat() + "end";
            let whole = MarkFilter::default().pass(stream.as_bytes());
            let (one, two) = stream.as_bytes().split_at(cut % stream.len());
            let mut filter = MarkFilter::default();
            prop_assert_eq!([filter.pass(one), filter.pass(two)].concat(), whole);
        }
    }
}
