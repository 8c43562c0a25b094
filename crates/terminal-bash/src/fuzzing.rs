//! All text of a session without the session: screen, transcript, pages and searches, put together
//! as the session's task does it. Only for the fuzzing target.

use std::path::Path;

use terminal::{ReadPage, ReadRequest, SearchPage, SearchRequest};

use crate::{
    retained::Retained,
    screen::{Screen, ScreenConfig},
    search,
    transcript::Transcript,
};

/// A screen with a transcript behind it.
pub struct Text {
    screen: Screen,
    transcript: Transcript,
    max: usize,
}

impl Text {
    /// An empty one, with at most `limit` bytes in a file below `home`, and `max` bytes in an answer.
    /// Needs a tokio runtime.
    pub fn new(config: ScreenConfig, home: &Path, limit: u64, max: usize) -> Self {
        let mut screen = Screen::new(config);
        screen.keep_dropped();
        Self { screen, transcript: Transcript::new(&Ok(home.to_owned()), limit), max }
    }

    /// Takes output.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.screen.feed(bytes, &mut Vec::new());
        for chunk in self.screen.take_dropped() {
            self.transcript.push(chunk);
        }
    }

    /// Changes the size of the window.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.screen.resize(rows, cols);
    }

    fn retained(&self) -> Retained {
        let archive = self.transcript.archive();
        let behind = archive.goes_on_in_memory();
        Retained::new(Some(archive), self.screen.snapshot(behind), self.max)
    }

    /// A page.
    pub fn page(&self, request: ReadRequest) -> ReadPage {
        self.retained().page(request)
    }

    /// A search; none where the pattern is no pattern.
    pub fn search(&self, request: &SearchRequest) -> Option<SearchPage> {
        let regex = search::compile(request).ok()?;
        Some(search::search(&mut self.retained(), &regex, request))
    }

    /// Removes the file.
    pub async fn close(mut self) {
        self.transcript.close().await;
    }
}
