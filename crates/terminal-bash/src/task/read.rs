//! Reading what was shown: from the screen at once, or from a copy of it and the transcript.

use terminal::{Lines, Missing, ReadPage, ReadRequest};

use super::Task;
use crate::{
    config::Config,
    request::Read,
    retained::Retained,
    screen::{Screen, Slice},
    transcript::Transcript,
};

/// The transcript of a session, which takes what `screen` drops.
pub(super) fn transcript(config: &Config, screen: &mut Screen) -> Option<Transcript> {
    let limit = config.transcript_max_bytes;
    (limit > 0).then(|| {
        screen.keep_dropped();
        let home = config.home.clone().ok_or_else(|| {
            "no folder for transcripts: set DSH_HOME or HOME, or `home` in the config of \
             `terminal-bash`"
                .to_owned()
        });
        Transcript::new(&home, limit)
    })
}

impl Task {
    /// Hands what the screen dropped to the transcript.
    pub(super) fn keep_dropped(&mut self) {
        if let Some(transcript) = &mut self.transcript {
            for chunk in self.screen.take_dropped() {
                transcript.push(chunk);
            }
        }
    }

    pub(super) fn read(&self, request: ReadRequest) -> Read {
        let Lines::Newest(offset) = request.lines else { return Read::From(self.text()) };
        let page = self.screen.page(offset, request.count, self.max_read());
        let archive = self.transcript.as_ref().map(Transcript::archive);
        let lines_end = page.first_line + page.line_end;
        let shown_from = lines_end.saturating_sub(page.total_lines);
        let goes_on = |oldest: &u64| *oldest < shown_from || page.truncated;
        let total_lines = match self.oldest_line().filter(goes_on) {
            // It goes on where memory ends.
            Some(_) if page.line_end >= page.total_lines => return Read::From(self.text()),
            Some(oldest) => lines_end - oldest,
            None => page.total_lines,
        };
        Read::Page(ReadPage {
            text: page.text,
            total_lines,
            line_begin: page.line_begin,
            line_end: page.line_end,
            truncated: page.truncated,
            first_line: Some(page.first_line),
            lost: archive.filter(|_| page.truncated).and_then(|it| it.lost()),
        })
    }

    /// What is missing from the front of a viewport.
    pub(super) fn missing(&self, viewport: &Slice) -> Missing {
        let readable = if viewport.cut_lines == 0 {
            0
        } else {
            let oldest = self.oldest_whole_line(viewport.lines_end);
            viewport.first_line.saturating_sub(oldest).min(viewport.cut_lines)
        };
        Missing {
            lines: viewport.cut_lines,
            bytes: viewport.cut_bytes,
            readable,
            offset: viewport.lines_end.saturating_sub(viewport.first_line),
        }
    }

    /// Number of the oldest line that can be read from its beginning on.
    fn oldest_whole_line(&self, lines_end: u64) -> u64 {
        if let Some(oldest) = self.transcript.as_ref().and_then(|it| it.archive().first()) {
            return oldest.line + u64::from(!oldest.whole);
        }
        self.oldest_line().unwrap_or_else(|| {
            let shown = self.screen.page(0, 1, 0).total_lines;
            let is_cut = self.screen.page(shown.saturating_sub(1), 1, usize::MAX).truncated;
            lines_end.saturating_sub(shown) + u64::from(is_cut)
        })
    }

    /// Number of the oldest line that can be read beyond what the screen shows.
    fn oldest_line(&self) -> Option<u64> {
        let archive = self.transcript.as_ref()?.archive();
        match archive.first() {
            Some(oldest) => Some(oldest.line),
            None => archive.goes_on_in_memory().then(|| self.screen.oldest_line()),
        }
    }

    /// Everything that can still be read.
    pub(super) fn text(&self) -> Retained {
        let archive = self.transcript.as_ref().map(Transcript::archive);
        let behind = archive.as_ref().is_some_and(|it| it.goes_on_in_memory());
        Retained::new(archive, self.screen.snapshot(behind), self.max_read())
    }
}
