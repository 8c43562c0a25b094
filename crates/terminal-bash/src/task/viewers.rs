//! What whoever watches the session is shown of it.

use std::time::Duration;

use terminal::WindowSize;
use tokio::sync::mpsc;

use super::Task;
use crate::{
    readiness::Moment,
    request::Request,
    stream::Filter,
    viewers::{Stage, Viewer, Viewers},
};

/// Older lines in a picture, and most bytes of them.
const OLDER_LINES: u64 = 200;
const OLDER_BYTES: u64 = 64 << 10;
/// Nothing tells that a program has switched the echo: while somebody watches it is looked at whenever
/// something happens, and after that in gaps that double from the first to the last of these.
const ECHO_GAPS: [Duration; 2] = [Duration::from_millis(16), Duration::from_secs(1)];

impl Task {
    /// Somebody watches from now on.
    pub(super) fn view(&mut self, mailbox: mpsc::UnboundedSender<Request>) -> Viewer {
        if let Some(viewer) = self.stage.as_ref().and_then(|it| it.viewers.join(mailbox.clone())) {
            return viewer;
        }
        let (viewers, viewer) = Viewers::first(self.size(), self.echoes(), mailbox);
        // It begins where the screen stands, be that in the middle of a sequence.
        let mut filter = Filter::default();
        filter.feed(&self.screen.unfinished(), &mut |_| {});
        let look = (self.now(), ECHO_GAPS[0]);
        self.stage = Some(Stage { viewers, filter, look });
        if self.exit.is_some() && self.output_ended {
            self.end_viewing();
        }
        viewer
    }

    /// Whoever needs a picture can have one now.
    pub(super) fn paint_for_viewers(&mut self) {
        if let Some(stage) = &self.stage {
            stage.viewers.picture(|| self.screen.picture(OLDER_LINES, OLDER_BYTES));
        }
    }

    /// Shows the output that is about to go to the screen.
    pub(super) fn show_output(&mut self) {
        if self.unseen {
            return;
        }
        let now = self.now();
        let Some(stage) = &mut self.stage else { return };
        if !stage.viewers.are_there() {
            self.stage = None;
            return;
        }
        let Stage { viewers, filter, look } = stage;
        viewers.output(|out| filter.feed(&self.output, &mut |bytes| out(bytes)));
        *look = (now, ECHO_GAPS[0]);
    }

    /// The screen has changed otherwise than by output.
    pub(super) fn redrawn(&self) {
        if let Some(stage) = &self.stage {
            stage.viewers.redrawn(self.size());
        }
    }

    /// Something happened that may have switched the echo, or will.
    pub(super) fn expect_echo(&mut self) {
        let now = self.now();
        if let Some(stage) = &mut self.stage {
            stage.look = (now, ECHO_GAPS[0]);
        }
    }

    /// When to look at the echo next.
    pub(super) fn next_echo(&self) -> Option<Moment> {
        self.stage.as_ref().filter(|_| self.exit.is_none()).map(|it| it.look.0)
    }

    /// Looks at the echo if that is due.
    pub(super) fn look_at_echo(&mut self) {
        let now = self.now();
        if self.stage.as_ref().is_none_or(|it| now < it.look.0) {
            return;
        }
        let echo = self.echoes();
        let Some(stage) = &mut self.stage else { return };
        let (_, gap) = stage.look;
        if !stage.viewers.are_there() {
            self.stage = None;
            return;
        }
        stage.viewers.echoes(echo);
        stage.look = (now + gap, ECHO_GAPS[1].min(gap * 2));
    }

    /// Nothing will be shown any more.
    pub(super) fn end_viewing(&mut self) {
        if let Some(stage) = &self.stage {
            stage.viewers.end(|| self.screen.picture(OLDER_LINES, OLDER_BYTES));
        }
    }

    /// False while a program asks for what shall not be seen. Who edits a line by himself decides
    /// himself what he shows.
    fn echoes(&self) -> bool {
        self.process.modes().is_none_or(|it| it.echo || !it.canonical)
    }

    fn size(&self) -> WindowSize {
        let (rows, columns) = self.screen.size();
        WindowSize { rows, columns }
    }
}
