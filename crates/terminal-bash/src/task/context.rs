//! What the judge is told besides the kernel's evidence.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use subprocess::Evidence;

use super::{Task, send::Before};
use crate::{
    input,
    readiness::{FarFacts, ScreenFacts, Shape, judge::Context},
};

/// Bytes of shown text that are compared with what was typed.
const LONGEST_ECHO: usize = 4_096;

/// How prompts end.
const PROMPT_ENDS: [char; 9] = ['>', '$', '#', '%', '?', ':', ')', ']', '❯'];

impl Task {
    pub(super) fn context(&self, evidence: &Evidence) -> Context {
        let Some(live) = &self.live else { return Context::default() };
        let before = &live.before;
        let canonical = evidence.modes.map(|it| it.canonical);
        let bracketed_paste = self.screen.bracketed_paste();
        let cursor_line = self.screen.cursor_line();
        Context {
            screen: ScreenFacts {
                alternate: self.screen.alternate(),
                bracketed_paste,
                // While its hooks are installed only a far shell's marks say that it is there.
                editor_opened: bracketed_paste
                    && self.editor_switches != before.editor_switches
                    && (self.far.is_none() || self.hidden.is_none())
                    && !input::is_echoed(&live.stroke.text, &cursor_line),
                text_before_cursor: self.screen.cursor_column() > 0,
                line_end: line_end(&cursor_line),
                printed: self.screen.printed(),
                // Until an Enter that goes apart is typed, what looks like a prompt is the one before.
                prompt_shaped: live.apart_enter.is_none() && ends_as_prompts_do(&cursor_line),
                line: hash(&cursor_line),
                acted_upon: !before.must_act
                    || self.has_gone_on(before)
                    || canonical != before.canonical
                    || self.answered(),
            },
            prompt: self.marks.prompt(),
            unfinished: live.exchange.unfinished(),
            far: self.far.as_ref().filter(|it| it.is_reached()).map(|far| {
                let facts = self.marks.far();
                // A program may show the shell's prompt, but not its editor.
                let edits = bracketed_paste || !far.pastes;
                // While the hooks are installed there is no other command.
                let answered = facts.answered || self.hidden.is_some();
                FarFacts { prompt: facts.prompt.filter(|_| edits), answered, ..facts }
            }),
        }
    }

    /// What the last output left on the line of the cursor.
    pub(super) fn shape(&self) -> Shape {
        let before = self.live.as_ref().map(|live| &live.before);
        let edited = before.filter(|before| before.must_act);
        if edited.is_some_and(|before| !self.has_gone_on(before)) {
            Shape::Echo
        } else if self.screen.cursor_column() > 0
            && (self.screen.alternate() || ends_as_prompts_do(&self.screen.cursor_line()))
        {
            Shape::Prompt
        } else if edited.is_some() {
            Shape::Answer
        } else {
            Shape::Line
        }
    }

    /// Whether there was a new line, or a change of the screen or of the editor, since the last line was
    /// typed.
    fn has_gone_on(&self, before: &Before) -> bool {
        self.editor_switches != before.editor_switches
            || self.screen.line_feeds() != before.line_feeds
            || self.screen.alternate() != before.alternate
    }

    /// Whether something else was shown since the last line was typed than the line itself, or a
    /// part of it.
    fn answered(&self) -> bool {
        let Some(live) = &self.live else { return false };
        let printed = self.screen.printed().saturating_sub(live.before.printed);
        if printed == 0 {
            return false;
        }
        let shown = self.screen.since(&live.before.at, LONGEST_ECHO);
        let (typed, shown_text) = (live.stroke.text.trim_end(), shown.text.trim_end());
        if shown.truncated || shown_text.is_empty() {
            // A line that was written over with the same text shows nothing new.
            return printed > typed.chars().count() as u64;
        }
        !typed.starts_with(shown_text)
    }
}

fn ends_as_prompts_do(line: &str) -> bool {
    line.trim_end().ends_with(PROMPT_ENDS)
}

fn hash(line: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    line.hash(&mut hasher);
    hasher.finish()
}

/// The last two characters of a line, blanks left out. Digits count for each other: prompts number
/// their lines.
fn line_end(line: &str) -> [char; 2] {
    let mut backwards = line.trim_end().chars().rev();
    let mut next = || match backwards.next() {
        Some(digit) if digit.is_ascii_digit() => '0',
        other => other.unwrap_or_default(),
    };
    let last = next();
    [next(), last]
}
