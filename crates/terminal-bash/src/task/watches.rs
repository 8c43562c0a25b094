//! Waits that type nothing: what ends each of them, and when to look for that.
//!
//! - A pattern is looked for in all output, as it comes.
//! - The prompt and other readers are found by looks like those of a send. While a send runs, its own
//!   looks are taken, and its settlement counts; else an exchange is begun that nobody sent.
//! - The end of the session ends every wait.

use regex::Regex;
use terminal::{
    LastCommand, SendState, SessionStatus, StateKind, TerminalError, WaitCondition, WaitEnd,
    WaitOutcome, WaitReason, WaitRequest,
};
use tokio::sync::oneshot;

use super::{Task, send::Live};
use crate::{
    readiness::{Moment, Settlement},
    screen::Position,
    watching::{Matcher, compile},
};

/// A wait as it is asked for, its patterns compiled.
pub(crate) struct Wanted {
    until: Vec<Until>,
    timeout: std::time::Duration,
}

impl Wanted {
    /// Refuses a pattern that is none.
    pub(crate) fn new(request: WaitRequest) -> Result<Self, TerminalError> {
        let until = request.until.into_iter().map(|condition| {
            Ok(match condition {
                WaitCondition::Output(pattern) => Until::Output(Matcher::new(compile(&pattern)?)),
                WaitCondition::Screen(pattern) => Until::Screen(compile(&pattern)?),
                WaitCondition::Prompt => Until::Prompt,
                WaitCondition::Input => Until::Input,
                WaitCondition::Silence(silence) => Until::Silence(silence),
                WaitCondition::Exit => Until::Exit,
            })
        });
        Ok(Self { until: until.collect::<Result<_, _>>()?, timeout: request.timeout })
    }
}

enum Until {
    Output(Matcher),
    Screen(Regex),
    Prompt,
    Input,
    Silence(Moment),
    Exit,
}

/// A wait that goes on.
struct Watch {
    until: Vec<Until>,
    began: Moment,
    deadline: Moment,
    /// Where the new output begins.
    start: Position,
    /// Up to here it was looked at.
    seen: Position,
    reply: oneshot::Sender<WaitOutcome>,
}

/// The waits of a session.
#[derive(Default)]
pub(super) struct Watches {
    all: Vec<Watch>,
    /// Somebody may have become ready since the last look.
    may_be_ready: bool,
    /// When something was shown last.
    last_output: Moment,
}

impl Watches {
    /// Something was shown.
    pub(super) fn shown(&mut self, now: Moment) {
        self.last_output = now;
        self.may_be_ready = true;
    }

    /// A program read input, or something else made a look worth while.
    pub(super) fn stirred(&mut self) {
        self.may_be_ready = true;
    }

    /// A text was typed that the terminal or a line editor shows.
    pub(super) fn typed(&mut self, text: &str) {
        for until in self.all.iter_mut().flat_map(|watch| &mut watch.until) {
            if let Until::Output(matcher) = until {
                matcher.typed(text);
            }
        }
    }

    /// When the next of them ends by time.
    pub(super) fn next(&self) -> Option<Moment> {
        self.all.iter().map(|watch| watch.next(self.last_output)).min()
    }

    fn want_readiness(&self) -> bool {
        let wants = |it: &Until| matches!(it, Until::Prompt | Until::Input);
        self.all.iter().any(|watch| watch.until.iter().any(wants))
    }
}

impl Watch {
    /// When its time is over, or the silence that it waits for.
    fn next(&self, last_output: Moment) -> Moment {
        let silences = self.until.iter().filter_map(|it| match it {
            Until::Silence(silence) => Some(self.began.max(last_output) + *silence),
            _ => None,
        });
        silences.min().map_or(self.deadline, |it| it.min(self.deadline))
    }
}

impl Task {
    pub(super) fn watch(&mut self, wanted: Wanted, reply: oneshot::Sender<WaitOutcome>) {
        let now = self.now();
        let sending = self.live.as_ref().filter(|live| live.settler.is_some());
        let start = sending.map_or(&self.delivered, |live| &live.start).clone();
        let Wanted { mut until, timeout } = wanted;
        if let Some(live) = sending.filter(|live| live.may_be_echoed()) {
            for it in &mut until {
                if let Until::Output(matcher) = it {
                    matcher.typed(live.typed_text());
                }
            }
        }
        let (began, deadline, seen) = (now, now + timeout, start.clone());
        self.watches.all.push(Watch { until, began, deadline, start, seen, reply });
        self.watches.may_be_ready = true;
        self.check_watches();
    }

    /// Ends the waits whose pattern was shown, or whose time is over.
    pub(super) fn check_watches(&mut self) {
        if self.unseen {
            return;
        }
        let (now, max) = (self.now(), self.max_read());
        let last_output = self.watches.last_output;
        let mut index = 0;
        let mut rows = None;
        self.watches.all.retain(|watch| !watch.reply.is_closed());
        while let Some(watch) = self.watches.all.get_mut(index) {
            let text = self.screen.delta(&mut watch.seen, max).text;
            let mut end = None;
            for (condition, until) in watch.until.iter_mut().enumerate() {
                let matched = match until {
                    Until::Output(matcher) if !text.is_empty() => matcher.feed(&text),
                    Until::Screen(regex) => {
                        let rows = rows.get_or_insert_with(|| self.screen.shown().rows);
                        rows.iter().find(|row| regex.is_match(row)).cloned()
                    }
                    _ => None,
                };
                if matched.is_some() {
                    end = Some((WaitEnd::Met(condition), matched));
                    break;
                }
            }
            let silent = |it: &Until| matches!(it, Until::Silence(silence) if now >= watch.began.max(last_output) + *silence);
            let end = end
                .or_else(|| Some((WaitEnd::Met(watch.until.iter().position(silent)?), None)))
                .or_else(|| (now >= watch.deadline).then_some((WaitEnd::Timeout, None)));
            match end {
                Some((end, matched)) => {
                    let watch = self.watches.all.swap_remove(index);
                    self.answer_watch(watch, end, matched, None, None);
                }
                None => index += 1,
            }
        }
    }

    /// Begins to look for a reader, if one is waited for and no send looks for it.
    pub(super) fn look_for_watches(&mut self) {
        let wanted = self.watches.want_readiness();
        match &self.live {
            Some(live) if live.watching && !wanted => self.live = None,
            None if wanted && self.watches.may_be_ready && self.exit.is_none() => {
                self.watches.may_be_ready = false;
                self.begin_exchange(None, None);
                if let Some(live) = &mut self.live {
                    live.watching = true;
                    live.exchange.in_background();
                }
            }
            _ => {}
        }
    }

    /// The exchange has settled that was begun for the waits.
    pub(super) fn watched(&mut self, settled: &Settlement) {
        let at_prompt = settled.kind == StateKind::Prompt;
        let last = match settled.reason {
            WaitReason::StdinRead if at_prompt => {
                let finished = self.marks.finished(true);
                finished.map(|it| self.last_command_of(it))
            }
            // Nobody was seen to be ready: the next look may show more.
            WaitReason::InferredIdle => {
                self.watches.may_be_ready = true;
                None
            }
            _ => None,
        };
        self.live = None;
        self.settled_at = self.now();
        self.settle_watches(settled, last.as_ref());
    }

    /// An exchange has settled, a send's or one of the waits' own.
    pub(super) fn settle_watches(&mut self, settled: &Settlement, last: Option<&LastCommand>) {
        self.check_watches();
        if settled.reason == WaitReason::SessionExit {
            return self.end_watches();
        }
        if settled.reason != WaitReason::StdinRead || self.watches.all.is_empty() {
            return;
        }
        let at_prompt = settled.kind == StateKind::Prompt;
        let met = |until: &Until| match until {
            Until::Prompt => at_prompt,
            Until::Input => true,
            _ => false,
        };
        let state = self.state(settled, self.process.modes());
        let all = std::mem::take(&mut self.watches.all);
        for watch in all {
            match watch.until.iter().position(met) {
                Some(condition) => {
                    let end = WaitEnd::Met(condition);
                    self.answer_watch(watch, end, None, Some(state.clone()), last.cloned());
                }
                None => self.watches.all.push(watch),
            }
        }
    }

    /// The session has ended.
    pub(super) fn end_watches(&mut self) {
        self.check_watches();
        for watch in std::mem::take(&mut self.watches.all) {
            let exit = watch.until.iter().position(|it| matches!(it, Until::Exit));
            let end = exit.map_or(WaitEnd::SessionExit, WaitEnd::Met);
            self.answer_watch(watch, end, None, None, None);
        }
    }

    fn answer_watch(
        &self,
        watch: Watch,
        end: WaitEnd,
        matched: Option<String>,
        state: Option<SendState>,
        last_command: Option<LastCommand>,
    ) {
        let new = self.screen.since(&watch.start, self.max_read());
        // Whoever gave up meanwhile needs no answer.
        watch
            .reply
            .send(WaitOutcome {
                end,
                matched,
                output: new.text,
                truncated: new.truncated,
                state,
                last_command,
                limit: self.limits.reached(),
                session_status: self.exit.clone().unwrap_or(SessionStatus::Running),
            })
            .ok();
    }
}

impl Live {
    /// The part of the text that was typed so far.
    fn typed_text(&self) -> &str {
        &self.text[..self.text.floor_char_boundary(self.typed)]
    }
}
