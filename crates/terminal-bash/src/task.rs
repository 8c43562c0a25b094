//! The one owner of a session: process, screen, marks, and the exchange that runs.
//!
//! The task handles one thing at a time, so there is no lock and no order to get wrong: what a
//! request sees is what all events before it left.

mod by_hand;
mod context;
mod far;
mod handover;
mod interrupt;
mod keys;
mod mend;
mod read;
mod record;
mod send;
mod start;
mod typing;
mod viewers;
mod watches;

use std::{
    collections::VecDeque,
    num::NonZeroU16,
    ops::ControlFlow,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use dsh_core::Cancel;
use subprocess::{Depth, Event, Evidence, ExitStatus, SignalError, TerminalProcess, TerminalSize};
use terminal::{
    Changes, Foreground, SessionId, SessionStatus, Signal, SignalReceipt, TerminalError,
    WaitReason, WindowSize,
};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use self::watches::Wanted;
use self::{
    handover::{Handover, Outcome},
    interrupt::Interrupt,
    mend::Left,
    send::Live,
    typing::{InnerLine, Waiting},
    watches::Watches,
};
use crate::{
    answers::{self, Answers},
    config::Config,
    dialect::Nonce,
    far::FarSide,
    limits::{Meter, PlaceTaken, Reached},
    readiness::{Judge, Moment, Settlement, ShellMarks, Step},
    recorder::Recorder,
    request::Request,
    screen::{Position, Screen, ScreenConfig, ScreenEvent},
    session::Shell,
    transcript::Transcript,
    viewers::Stage,
};

/// The one owner of a session.
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one session")]
pub(crate) struct Task {
    id: SessionId,
    /// Tells the session from all others of this user.
    name: String,
    process: Box<dyn TerminalProcess>,
    screen: Screen,
    /// The text that the screen dropped.
    transcript: Option<Transcript>,
    marks: ShellMarks,
    answers: Answers,
    nonce: Nonce,
    /// The shell is on the far side of the process here.
    far: Option<FarSide>,
    judge: Judge,
    config: Arc<Config>,
    status: watch::Sender<SessionStatus>,
    /// To be set when all has ended.
    closed: Arc<AtomicBool>,
    /// From when moments are counted.
    epoch: Instant,
    limits: Meter,
    /// Kept for as long as the session is not closed.
    _place: PlaceTaken,
    /// When the last exchange settled.
    settled_at: Moment,
    /// Where the text ends that was delivered last.
    delivered: Position,
    live: Option<Live>,
    /// The shell has ended and its output has not.
    exit: Option<SessionStatus>,
    output_ended: bool,
    /// How often bracketed paste was switched.
    editor_switches: u64,
    /// The last foreground group that was not the shell's own.
    in_front: Option<i32>,
    /// The foreground was told to stop.
    handover: Option<Handover>,
    /// The shell was last seen in its line editor without having marked a prompt.
    unmarked_prompt: bool,
    /// Lines of earlier sends that nobody has waited for yet.
    left: VecDeque<String>,
    /// They are for a full-screen program.
    left_full_screen: bool,
    /// Bytes of an unfinished line that the terminal, in line mode, keeps from its reader.
    open_line: usize,
    /// The terminal in line mode behind a relay that gets what is typed.
    inner_line: Option<InnerLine>,
    /// Bytes of the longest stroke since all input was seen to be read.
    longest_unread: usize,
    /// Who was seen to wait for the terminal last.
    waiting: Option<Waiting>,
    /// Process and command that were last asked for their line editor, and whether it has one.
    line_editor: Option<((i32, String), bool)>,
    /// The last settlement rested on what a relay showed.
    relayed: bool,
    /// The terminal's modes under the program in front of the shell, at the last two looks.
    left_behind: [Left; 2],
    /// The shell's own line editor takes pastes.
    shell_pastes: bool,
    /// Output that is kept from the text, while the hooks are installed.
    hidden: Option<Vec<u8>>,
    /// What comes and goes is nobody's: the screen is not the session's own.
    unseen: bool,
    /// Who waits for something without having sent anything.
    watches: Watches,
    /// For those who watch; none while nobody does.
    stage: Option<Stage>,
    /// What a person typed that is still to be typed.
    by_hand: Vec<by_hand::Waits>,
    /// To be told when the shell ends.
    changes: Changes,
    recorder: Option<Recorder>,
    output: Vec<u8>,
    events: Vec<ScreenEvent>,
}

impl Task {
    pub(crate) fn new(
        id: SessionId,
        name: String,
        Shell { process, nonce, far }: Shell,
        config: Arc<Config>,
        (status, closed, changes): (watch::Sender<SessionStatus>, Arc<AtomicBool>, Changes),
        (reached, place): (Reached, PlaceTaken),
    ) -> Self {
        let mut screen = new_screen(&config);
        let transcript = read::transcript(&config, &mut screen);
        let now = epoch().elapsed();
        let limits = Meter::new(config.limits.clone(), process.held(), reached, now);
        Self {
            id,
            name,
            judge: Judge::new(process.pid()),
            process,
            delivered: screen.end(),
            screen,
            transcript,
            marks: ShellMarks::new(config.shell_dialect),
            answers: Answers::default(),
            nonce,
            limits,
            _place: place,
            far,
            config,
            status,
            closed,
            epoch: epoch(),
            settled_at: Moment::ZERO,
            live: None,
            exit: None,
            output_ended: false,
            editor_switches: 0,
            in_front: None,
            handover: None,
            unmarked_prompt: false,
            left: VecDeque::new(),
            left_full_screen: false,
            open_line: 0,
            inner_line: None,
            longest_unread: 0,
            waiting: None,
            line_editor: None,
            relayed: false,
            left_behind: Default::default(),
            shell_pastes: false,
            hidden: None,
            unseen: false,
            watches: Watches::default(),
            stage: None,
            by_hand: Vec::new(),
            changes,
            recorder: None,
            output: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Starts the shell, then serves until the session is closed or nobody can close it any more.
    pub(crate) async fn run(
        mut self,
        requests: mpsc::UnboundedReceiver<Request>,
        cancel: Cancel,
        ready: oneshot::Sender<Result<String, TerminalError>>,
    ) {
        match self.start(cancel).await {
            // A caller that has gone meanwhile holds no mailbox either, so serving ends at once.
            Ok(motd) => {
                ready.send(Ok(motd)).ok();
                self.serve(requests).await;
            }
            Err(error) => {
                ready.send(Err(self.undo(error).await)).ok();
            }
        }
        if let Some(transcript) = &mut self.transcript {
            transcript.close().await;
        }
        self.end_recording().await;
    }

    /// Handles events and requests until the session is closed, or nobody holds the mailbox.
    async fn serve(&mut self, mut requests: mpsc::UnboundedReceiver<Request>) {
        loop {
            // A program that never pauses must not keep the others of this thread waiting.
            tokio::task::consume_budget().await;
            if self.limits.takes_end() {
                self.end_at_limit().await;
            }
            let cancel = self.cancel_signal();
            let limits = self.limits.due().map(|it| self.epoch + it);
            tokio::select! {
                request = requests.recv() => {
                    let Some(request) = request else {
                        if let Err(error) = self.end(None).await {
                            tracing::error!("abandoned session {}: {error}", self.id);
                        }
                        return;
                    };
                    if self.handle(request).await.is_break() {
                        return;
                    }
                }
                () = cancelled(cancel) => self.cancel_live().await,
                () = due(limits) => self.look_at_limits().await,
                settled = self.advance() => if let Some(settled) = settled {
                    if self.is_at_limit(&settled).await {
                        // It settles by the end of the shell.
                    } else if self.live.as_ref().is_some_and(|live| live.watching) {
                        self.watched(&settled);
                    } else if !self.goes_on(&settled) {
                        self.settled_at = self.now();
                        self.conclude(&settled).await;
                        // Whoever waited for it goes first.
                        tokio::task::yield_now().await;
                    }
                },
            }
        }
    }

    async fn handle(&mut self, request: Request) -> ControlFlow<()> {
        // Whatever arrived while the mailbox was served first.
        self.take_output();
        if !request.only_watches() {
            self.limits.used(self.now());
        }
        match request {
            Request::Send { request, settler } => {
                self.recheck().await;
                self.send(&request, settler).await;
            }
            Request::Keys { request, settler } => {
                self.recheck().await;
                self.press(request, settler).await;
            }
            Request::Wait { wanted, reply } => {
                self.drain();
                self.watch(wanted, reply);
            }
            Request::View { mailbox, reply } => {
                reply.send(self.view(mailbox)).ok();
            }
            Request::Picture { reply } => {
                self.paint_for_viewers();
                reply.send(()).ok();
            }
            Request::ByHand { input, reply } => self.type_by_hand(input, reply),
            Request::Screen { reply } => {
                self.drain();
                reply.send(self.screen.shown()).ok();
            }
            Request::Resize { size, reply } => {
                reply.send(self.resize(size)).ok();
            }
            Request::Delta { exchange, follower, reply } => {
                reply.send(self.delta(exchange, follower)).ok();
            }
            Request::Foreground { exchange, reply } => {
                reply.send(self.foreground(exchange).await).ok();
            }
            Request::Read { request, reply } => {
                self.drain();
                reply.send(self.read(request)).ok();
            }
            Request::Text { reply } => {
                self.drain();
                reply.send(self.text()).ok();
            }
            Request::Signal { signal, reply } => {
                reply.send(self.signal(signal)).ok();
            }
            Request::Close { grace, reply } => {
                let closed = self.close(grace).await;
                let flow =
                    if closed.is_ok() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
                reply.send(closed).ok();
                return flow;
            }
        }
        ControlFlow::Continue(())
    }

    /// Waits for the next event and lets the exchange act on it. Cancel-safe: an event that was
    /// taken is handled before the next await.
    async fn advance(&mut self) -> Option<Settlement> {
        if let Some(settled) = self.ended() {
            return Some(settled);
        }
        if self.exit.is_some() && self.output_ended {
            self.end_watches();
            self.end_viewing();
        }
        self.type_waiting_by_hand();
        self.look_for_watches();
        let deadline = match &self.live {
            // Of a shell that has ended only the rest of its output is waited for.
            _ if self.exit.is_some() => None,
            None if self.answers.are_wanted(self.now()) => {
                let next = self.answers.next_try();
                if next <= self.now() {
                    let evidence = self.process.probe(Depth::Full).await;
                    self.answer(&evidence);
                    return None;
                }
                Some(self.epoch + next)
            }
            None => None,
            Some(live) if live.enter_due().is_some_and(|due| due <= self.now()) => {
                self.type_line();
                return None;
            }
            Some(live) if live.waits_for_enter_alone() => {
                live.enter_due().map(|it| self.epoch + it)
            }
            Some(live) => match live.exchange.step(self.now()) {
                Step::Wait(until) => {
                    let enter = live.enter_due().unwrap_or(until);
                    Some(self.epoch + until.min(enter))
                }
                Step::Settled(settled) => return Some(settled),
                Step::Look(depth) => {
                    if self.drain() || depth == Depth::Full && self.rests() {
                        return None;
                    }
                    return self.look(depth).await;
                }
                Step::LastLook => return self.look(Depth::Full).await,
            },
        };
        let watched = self.watches.next().map(|it| self.epoch + it);
        let echo = self.next_echo().map(|it| self.epoch + it);
        let deadline = [deadline, watched, echo].into_iter().flatten().min();
        if self.output_ended && deadline.is_none() {
            // Nothing will ever come; only the mailbox can end this.
            return std::future::pending().await;
        }
        let event = self.process.next(deadline, &mut self.output).await;
        self.take_output();
        let now = self.now();
        match event {
            Event::Output | Event::Deadline => {}
            Event::Activity => {
                self.watches.stirred();
                if let Some(live) = &mut self.live {
                    live.exchange.stirred(now);
                }
            }
            Event::Exited(status) => self.exited(status),
            Event::OutputEnd => {
                self.output_ended = true;
                // The far side's last word may be the last output.
                if self.far.is_some()
                    && let Some(status) = self.process.exit_status()
                {
                    self.exited(status);
                }
            }
        }
        self.check_watches();
        self.look_at_echo();
        self.ended()
    }

    /// The settlement of a live exchange whose shell has ended.
    fn ended(&self) -> Option<Settlement> {
        let ended = self.exit.is_some() && self.output_ended;
        self.live.as_ref().filter(|_| ended).map(|live| live.exchange.exited())
    }

    /// Whether nothing has happened since the last look that could make another one worth while.
    fn rests(&mut self) -> bool {
        let now = self.now();
        let other_looks = self.handover.is_some() || self.answers.are_wanted(now);
        let Some(live) = self.live.as_mut().filter(|it| it.interrupt.is_none()) else {
            return false;
        };
        let rests = !other_looks && live.exchange.may_rest() && self.process.rests();
        if rests {
            live.exchange.rested(now);
        }
        rests
    }

    async fn look(&mut self, depth: Depth) -> Option<Settlement> {
        let evidence = self.process.probe(depth).await;
        self.chase(&evidence);
        self.interrupt_again();
        self.note_input(&evidence);
        self.note_modes(&evidence);
        self.look_at_echo();
        if evidence.foreground != Some(self.process.pid()) {
            self.in_front = evidence.foreground;
        }
        if self.answer(&evidence) {
            // Whoever waited has input now, so this look says nothing any more.
            return None;
        }
        let now = self.now();
        if let Some(handover) = self.handover {
            match handover.outcome(&evidence, now) {
                Outcome::Pending if self.live.as_ref()?.exchange.step(now) != Step::LastLook => {
                    self.live.as_mut()?.exchange.hold(now);
                    return None;
                }
                Outcome::Pending => {}
                Outcome::Taken => self.handover = None,
                Outcome::Refused => {
                    self.handover = None;
                    self.type_line();
                    return None;
                }
            }
        }
        let context = self.context(&evidence);
        let live = self.live.as_mut()?;
        live.exchange.waits_among(live.member.count());
        match live.exchange.look(now, &evidence, &context, &mut self.judge) {
            Step::Settled(settled) => Some(settled),
            Step::Wait(_) | Step::Look(_) | Step::LastLook => {
                if live.exchange.may_type_ahead(now) && self.has_more() {
                    self.type_line();
                }
                None
            }
        }
    }

    /// A verdict that was no proof is held against what its process has done since.
    async fn recheck(&mut self) {
        if self.judge.may_be_refuted() && self.exit.is_none() {
            let evidence = self.process.probe(Depth::Full).await;
            self.judge.recheck(&evidence, self.now().saturating_sub(self.settled_at));
        }
    }

    /// Types the replies that somebody is seen to wait for; false where there is nothing to say.
    fn answer(&mut self, evidence: &Evidence) -> bool {
        let now = self.now();
        self.answers.looked(evidence);
        if !self.answers.are_wanted(now) {
            return false;
        }
        let facts = answers::Facts {
            at_prompt: self.marks.prompt().is_some(),
            bracketed_paste: self.screen.bracketed_paste(),
            alternate: self.screen.alternate(),
            printed: self.screen.printed(),
        };
        let replies = self.answers.replies(evidence, &facts);
        if replies.is_empty() {
            self.answers.tried(now);
            return false;
        }
        self.process.write(&replies);
        if let Some(live) = &mut self.live {
            live.exchange.asked(now);
        }
        true
    }

    /// The live exchange's cancellation, as long as it was not acted upon.
    fn cancel_signal(&self) -> Option<Cancel> {
        let live = self.live.as_ref().filter(|live| live.interrupt.is_none())?;
        live.settler.as_ref().map(|settler| settler.cancel.clone())
    }

    /// Interrupts the foreground for real. The exchange goes on until it settles by itself, so no
    /// later one can receive its bytes or its signal.
    async fn cancel_live(&mut self) {
        self.forget_input();
        let evidence = self.process.probe(Depth::Full).await;
        if let Some(live) = &mut self.live {
            live.interrupt = Some(Interrupt::new(&evidence));
            live.exchange.interrupted();
        }
        self.interrupt(false);
    }

    /// Interrupts again whoever came to the foreground by a start that was under way at the
    /// cancellation: between `fork` and `exec` the signal meets the shell's own code, which lets it go.
    fn chase(&mut self, evidence: &Evidence) {
        let Some(interrupt) = self.live.as_mut().and_then(|live| live.interrupt.as_mut()) else {
            return;
        };
        if self.far.is_none() && interrupt.missed(evidence) {
            // Never the shell: it comes to the foreground when all is over.
            self.interrupt(true);
        }
    }

    /// Forgets all input that no program has read, as the terminal does on an interrupt key.
    fn forget_input(&mut self) {
        let discarded = usize::try_from(self.process.flush_input()).unwrap_or(usize::MAX);
        self.answers.flushed();
        self.left.clear();
        self.open_line = 0;
        self.longest_unread = 0;
        if let Some(live) = &mut self.live {
            live.lines.clear();
            live.keys.clear();
            live.apart_enter = None;
            live.discarded = live.discarded.saturating_add(discarded);
        }
    }

    fn interrupt(&mut self, spare_shell: bool) {
        let now = self.now();
        if let Some(live) = &mut self.live {
            live.exchange.stirred(now);
        }
        if self.far.is_some() {
            return self.interrupt_far();
        }
        match self.process.signal_foreground(Signal::Interrupt.name(), spare_shell) {
            // Nobody is in front: then nobody has to be interrupted.
            Ok(_) | Err(SignalError::NoForegroundGroup | SignalError::Leader) => {}
            Err(error) => tracing::warn!("cancelling a send: {error}"),
        }
    }

    /// The leader of the foreground group, while this exchange lives.
    async fn foreground(&mut self, exchange: u64) -> Option<Foreground> {
        let settler = self.live.as_ref()?.settler.as_ref()?;
        if settler.number != exchange {
            return None;
        }
        let evidence = self.process.probe(Depth::Full).await;
        let group = evidence.foreground?;
        let leader = evidence.processes.iter().find(|it| it.pid == group);
        let process = leader.or(evidence.processes.first())?;
        Some(Foreground { pid: process.pid, command: process.command.clone() })
    }

    fn signal(&mut self, signal: Signal) -> Result<SignalReceipt, TerminalError> {
        if self.far.is_some() {
            // The foreground here is the launcher.
            return Err(TerminalError::NoForegroundGroup);
        }
        self.disturb_waiting();
        if signal == Signal::Interrupt {
            self.forget_input();
        }
        let spare_shell = signal == Signal::Kill;
        let target_pgid = self.process.signal_foreground(signal.name(), spare_shell).map_err(
            |error| match error {
                SignalError::Leader => TerminalError::ShellKillRefused,
                SignalError::NoForegroundGroup => TerminalError::NoForegroundGroup,
                failed @ SignalError::Failed { .. } => TerminalError::Backend(failed.to_string()),
            },
        )?;
        let now = self.now();
        match self.live.as_mut().filter(|live| !live.watching) {
            Some(live) => live.exchange.stirred(now),
            None if signal == Signal::Stop && target_pgid != self.process.pid() => {
                let grace = Duration::from_millis(self.config.handoff_grace_ms);
                self.handover = Some(Handover::new(target_pgid, now + grace));
            }
            None => {}
        }
        Ok(SignalReceipt { target_pgid })
    }

    /// Ends the session, and a live send with it, whose outcome then has the shell's end.
    async fn close(&mut self, grace: Option<Duration>) -> Result<(), TerminalError> {
        let ended = self.end(grace).await;
        if let Some(settled) = self.live.as_ref().map(|live| live.exchange.exited()) {
            self.conclude(&settled).await;
        }
        if ended.is_ok() {
            self.closed.store(true, Ordering::Release);
            self.end_watches();
            self.end_viewing();
        }
        ended.map_err(TerminalError::CloseIncomplete)
    }

    fn resize(&mut self, size: WindowSize) -> Result<(), TerminalError> {
        let sides = NonZeroU16::new(size.rows).zip(NonZeroU16::new(size.columns));
        let Some((rows, cols)) = sides else {
            let message = "a terminal has at least one row and one column".to_owned();
            return Err(TerminalError::InvalidArgs(message));
        };
        // What was written for the old size comes first.
        self.drain();
        self.process
            .resize(TerminalSize { rows, cols })
            .map_err(|error| TerminalError::Backend(format!("changing the size: {error}")))?;
        self.screen.resize(size.rows, size.columns);
        self.keep_dropped();
        self.redrawn();
        self.record_size(size);
        Ok(())
    }

    /// Ends every process of the session, within the configured grace or a shorter one.
    async fn end(&mut self, longest: Option<Duration>) -> Result<(), String> {
        let configured = Duration::from_millis(self.config.dispose_grace_ms);
        let grace = longest.map_or(configured, |longest| longest.min(configured));
        let gone = self.far.as_ref().map(FarSide::gone);
        let ended = tokio::select! {
            biased;
            () = known(gone) => None,
            ended = self.process.terminate(grace, &mut self.output) => Some(ended),
        };
        let ended = match ended {
            Some(ended) => ended,
            // Nobody is served by a launcher whose far side has ended.
            None => self.process.terminate(Duration::ZERO, &mut self.output).await,
        };
        self.take_output();
        if let Some(status) = self.process.exit_status() {
            self.exited(status);
        }
        ended.map_err(|error| error.to_string())
    }

    /// Whether a settled exchange has met a limit that the kernel keeps: of a program that it ended
    /// nothing else is to be told.
    async fn is_at_limit(&mut self, settled: &Settlement) -> bool {
        if settled.reason == WaitReason::SessionExit || self.process.met().is_none() {
            return false;
        }
        self.look_at_limits().await;
        let at_limit = self.limits.takes_end();
        if at_limit {
            self.end_at_limit().await;
        }
        at_limit && self.exit.is_some()
    }

    /// Looks whether the session is at a limit.
    async fn look_at_limits(&mut self) {
        // What a shell that ended by itself left has no idle time, but may still take too much.
        if self.live.is_some() || self.exit.is_some() {
            self.limits.used(self.now());
        }
        let measured = if self.limits.measures() { self.process.usage().await } else { None };
        self.limits.looked(self.now(), measured.unwrap_or_default(), self.process.met());
    }

    /// Ends the session, which is at a limit. A live send settles by the end of the shell.
    async fn end_at_limit(&mut self) {
        tracing::info!(session = %self.id, limit = self.limits.reached(), "ending a session");
        // What is at a limit of the machine gets no time to take more.
        let grace = self.limits.measures().then_some(Duration::ZERO);
        if let Err(error) = self.end(grace).await {
            tracing::warn!("session {} is at its limit and goes on: {error}", self.id);
        }
    }

    fn exited(&mut self, status: ExitStatus) {
        if self.far.is_some() {
            // Its last word comes before the end of the process that brings it.
            self.drain();
        }
        // Known before the end is: who reads of it asks why.
        self.limits.exited(self.process.met());
        let status = self.end_status(session_status(status));
        self.exit = Some(status.clone());
        self.status.send_replace(status);
        self.changes.tell();
    }

    /// Reads what is there now; false if there was nothing.
    fn drain(&mut self) -> bool {
        let any = self.process.drain(&mut self.output);
        self.take_output();
        any
    }

    /// Applies the bytes that were read.
    fn take_output(&mut self) {
        if self.output.is_empty() {
            return;
        }
        self.disturb_waiting();
        self.marks.disturbed();
        let now = self.now();
        if let Some(hidden) = &mut self.hidden {
            hidden.extend_from_slice(&self.output);
        }
        let bytes = self.output.len();
        let shown = self.shown();
        self.record_output();
        self.show_output();
        self.screen.feed(&self.output, &mut self.events);
        self.output.clear();
        self.keep_dropped();
        let (mut marked, mut opened, mut asked) = (false, false, false);
        for event in self.events.drain(..) {
            match event {
                ScreenEvent::Osc133 { payload, .. } => {
                    if let Some(far) = &mut self.far
                        && far.hear(&payload, &self.nonce)
                    {
                        continue;
                    }
                    if let Some(mark) = self.nonce.read_mark(&payload) {
                        self.marks.mark(mark, now);
                        marked = true;
                        if self.marks.prompt().is_some() {
                            self.answers.prompted();
                        }
                        // bash gives its prompt back with a status of its own when a job stops.
                        let stopped = self.far.is_some()
                            || self.in_front.is_some_and(|group| self.process.is_stopped(group));
                        if self.marks.may_be_stopped() && stopped {
                            self.marks.stopped();
                        }
                    }
                }
                ScreenEvent::BracketedPaste { on, .. } => {
                    self.editor_switches += 1;
                    if on {
                        self.marks.editor_opened();
                        opened = true;
                    } else {
                        self.marks.editor_closed();
                    }
                }
                ScreenEvent::Query { query, printed } => {
                    if self.marks.prompt().is_none() || self.config.shell_dialect.asks() {
                        let raw = self.process.modes().is_some_and(|it| !it.canonical);
                        self.answers.ask(query, printed, raw, now);
                        asked = true;
                    }
                }
                ScreenEvent::AlternateScreen { .. } => {}
            }
        }
        if marked {
            self.chase_far(now);
        }
        if opened {
            self.far_editor_opened(now);
        }
        self.note_shown();
        let visible = self.shown() != shown;
        if visible && !self.unseen {
            self.watches.shown(now);
        }
        let shape = self.shape();
        if let Some(live) = &mut self.live {
            if visible {
                live.exchange.output(now, bytes, shape);
            } else {
                live.exchange.invisible_output(now);
            }
            if marked && self.marks.prompt().is_none() {
                live.exchange.command_started(now);
            }
            if asked {
                live.exchange.asked(now);
            }
            if let Some(settler) = &live.settler {
                settler.announce_output();
            }
        } else if visible {
            self.judge.disturbed();
        }
    }

    /// Changes with whatever can be seen, and with the modes that tell of a program's state.
    fn shown(&self) -> impl PartialEq + use<> {
        let screen = &self.screen;
        let text = (screen.printed(), screen.line_feeds(), screen.cursor_position());
        (text, self.editor_switches, screen.alternate())
    }

    fn now(&self) -> Moment {
        self.epoch.elapsed()
    }

    fn max_read(&self) -> usize {
        usize::try_from(self.config.max_read_bytes).unwrap_or(usize::MAX)
    }
}

fn new_screen(config: &Config) -> Screen {
    Screen::new(ScreenConfig {
        rows: config.rows.get(),
        cols: config.cols.get(),
        max_lines: usize::try_from(config.scrollback_lines).unwrap_or(usize::MAX),
        max_bytes: usize::try_from(config.scrollback_max_bytes).unwrap_or(usize::MAX),
    })
}

/// All sessions count from the same moment, so that looks of several can be due together.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

async fn due(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// Resolves with `event`; never where there is none.
async fn known(event: Option<impl Future<Output = ()>>) {
    match event {
        Some(event) => event.await,
        None => std::future::pending().await,
    }
}

async fn cancelled(cancel: Option<Cancel>) {
    match cancel {
        Some(cancel) => cancel.cancelled().await,
        None => std::future::pending().await,
    }
}

fn session_status(status: ExitStatus) -> SessionStatus {
    match status {
        ExitStatus::Code(code) => SessionStatus::Exited { exit_code: Some(code), signal: None },
        ExitStatus::Signal(name) => SessionStatus::Exited { exit_code: None, signal: Some(name) },
        ExitStatus::Unknown => SessionStatus::Exited { exit_code: None, signal: None },
    }
}
