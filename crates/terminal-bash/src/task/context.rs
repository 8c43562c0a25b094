//! What the judge is told besides the kernel's evidence.

use subprocess::Evidence;

use super::Task;
use crate::{
    input,
    readiness::{ScreenFacts, judge::Context},
};

impl Task {
    pub(super) fn context(&self, evidence: &Evidence) -> Context {
        let Some(live) = &self.live else { return Context::default() };
        let before = &live.before;
        let canonical = evidence.modes.map(|it| it.canonical);
        let switched = self.editor_switches != before.editor_switches;
        let bracketed_paste = self.screen.bracketed_paste();
        Context {
            screen: ScreenFacts {
                alternate: self.screen.alternate(),
                bracketed_paste,
                editor_opened: bracketed_paste
                    && switched
                    && !input::is_echoed(&live.text, &self.screen.cursor_line()),
                text_before_cursor: self.screen.cursor_column() > 0,
                acted_upon: !before.must_act
                    || switched
                    || self.screen.line_feeds() != before.line_feeds
                    || self.screen.alternate() != before.alternate
                    || canonical != before.canonical,
            },
            prompt: self.marks.prompt(),
            unfinished: live.exchange.unfinished(),
        }
    }
}
