//! Notices for an agent: what happened elsewhere and belongs into its next step.
//!
//! Guarantees:
//! - order of arrival; each notice is drained once; a waiter never misses one;
//! - a notice whose [`Told`] is set is gone: it is neither drained nor counted nor does it wake;
//! - between two messages of the user an idle agent is woken at most as often as the notices allow.
//!
//! Whoever runs the turns of an agent drains the inbox in each step, calls
//! [`Inbox::user_spoke`] with each message of the user, and awaits [`Inbox::wake`] beside the next
//! message while the agent is idle:
//!
//! ```
//! # async fn run(agent: &agents::Agent, mut next_message: impl AsyncFnMut() -> String) {
//! loop {
//!     tokio::select! {
//!         message = next_message() => agent.inbox().user_spoke(),
//!         () = agent.inbox().wake() => {} // a turn of its own, about the notices
//!     }
//!     // In every step of the turn, before the model is asked:
//!     for notice in agent.inbox().drain() {
//!         if notice.deliver() { /* … notice.text … */ }
//!     }
//! }
//! # }
//! ```

use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicU8, Ordering},
};

use dsh_core::lock;
use tokio::sync::watch;

/// Whether the model has been told of something already. Clones share it; it is set once.
#[derive(Clone, Debug, Default)]
pub struct Told(Arc<AtomicU8>);

impl Told {
    const SET: u8 = 1;
    const BY_NOTICE: u8 = 2;

    /// The model knows.
    pub fn set(&self) {
        self.0.store(Self::SET, Ordering::SeqCst);
    }

    /// Whether it knows, by other means than a notice.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst) == Self::SET
    }

    /// Sets it, for a notice whose place a later one takes that tells the same; false where the model
    /// has read that one, so that the later one tells only what is new.
    pub fn supersede(&self) -> bool {
        self.0.compare_exchange(0, Self::SET, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl PartialEq for Told {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Told {}

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice {
    /// What the model reads.
    pub text: String,
    /// An idle agent may be woken for it while it was woken less often than this since the last
    /// message of its user; 0 for never.
    pub wakes: u32,
    /// Set when the model learns of the same by other means; the notice is obsolete then.
    pub told: Option<Told>,
}

impl Notice {
    /// A notice with this text, for the agent's next step.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), wakes: 0, told: None }
    }

    /// The same, worth waking an idle agent that was woken less often than `most` times since the
    /// last message of its user.
    #[must_use]
    pub fn waking(self, most: u32) -> Self {
        Self { wakes: most, ..self }
    }

    /// The same, obsolete once `told` is set.
    #[must_use]
    pub fn unless(self, told: Told) -> Self {
        Self { told: Some(told), ..self }
    }

    /// The model reads it now; false where it is obsolete, and must not be read. Whoever hands a notice
    /// to a model asks for this last.
    pub fn deliver(&self) -> bool {
        let Some(Told(state)) = &self.told else { return true };
        let told = state.compare_exchange(0, Told::BY_NOTICE, Ordering::SeqCst, Ordering::SeqCst);
        told != Err(Told::SET)
    }

    /// Whether the model has learned of it by other means.
    pub fn is_obsolete(&self) -> bool {
        self.told.as_ref().is_some_and(Told::is_set)
    }
}

/// The notices an agent has not read yet.
pub struct Inbox {
    state: Mutex<State>,
    count: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    notices: Vec<Notice>,
    /// How often the agent was woken since the last message of its user.
    woken: u32,
    /// Of the notices that are expected, how often the agent may be woken for one.
    expected: u32,
}

impl State {
    /// Whether a notice wakes the agent, which is counted.
    fn may_wake(&mut self) -> bool {
        let may = self.notices.iter().any(|it| self.woken < it.wakes);
        self.woken += u32::from(may);
        may
    }
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), count: watch::Sender::new(0) }
    }

    /// Appends a notice and wakes whoever waits.
    pub fn push(&self, notice: Notice) {
        self.change(|state| state.notices.push(notice));
    }

    /// Says that notices are to come for which an idle agent may be woken while it was woken less
    /// often than `wakes` times. The greatest number that was said stands.
    pub fn expect(&self, wakes: u32) {
        self.change(|state| state.expected = state.expected.max(wakes));
    }

    /// Whether a notice, one that waits or one that is expected, could wake the agent. While the
    /// user does not speak, no becomes yes only by [`Self::expect`] or a notice that nobody expected.
    pub fn could_wake(&self) -> bool {
        let state = self.current();
        let waiting = state.notices.iter().map(|it| it.wakes).max().unwrap_or(0);
        state.woken < state.expected.max(waiting)
    }

    /// Takes all notices, oldest first.
    pub fn drain(&self) -> Vec<Notice> {
        self.change(|state| std::mem::take(&mut state.notices))
    }

    /// Resolves when there is at least one notice. It does not take it: another waiter may.
    pub async fn arrived(&self) {
        let mut count = self.count.subscribe();
        while self.current().notices.is_empty() {
            // The sender lives in `self`, so waiting cannot fail.
            count.changed().await.ok();
        }
    }

    /// Resolves when a waiting notice may wake the agent, and counts it as woken. It takes no
    /// notice. A call that is dropped before it resolves counts nothing.
    pub async fn wake(&self) {
        let mut count = self.count.subscribe();
        while !self.current().may_wake() {
            count.changed().await.ok();
        }
    }

    /// The user has written: the agent may be woken again as often as its notices allow.
    pub fn user_spoke(&self) {
        self.change(|state| state.woken = 0);
    }

    /// The number of waiting notices, and its changes. Notices that became obsolete meanwhile may
    /// still be counted.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.count.subscribe()
    }

    /// Changes the state and tells everybody who waits.
    fn change<T>(&self, edit: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.current();
        let out = edit(&mut state);
        // Published under the lock, so that the count never lags behind a later change.
        self.count.send_replace(state.notices.len());
        out
    }

    /// The state without what is obsolete.
    fn current(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.notices.retain(|it| !it.is_obsolete());
        state
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn notices_keep_their_order_and_wake_a_waiter() {
        let inbox = Arc::new(Inbox::new());
        let waiter = tokio::spawn({
            let inbox = Arc::clone(&inbox);
            async move {
                inbox.arrived().await;
                inbox.drain()
            }
        });
        inbox.push(Notice::new("one"));
        assert_eq!(waiter.await.unwrap(), [Notice::new("one")]);
        inbox.push(Notice::new("two"));
        inbox.push(Notice::new("three"));
        assert_eq!(*inbox.watch().borrow(), 2);
        assert_eq!(inbox.drain(), [Notice::new("two"), Notice::new("three")]);
        assert_eq!(inbox.drain(), []);
    }

    #[test]
    fn what_the_model_was_told_meanwhile_is_obsolete() {
        let inbox = Inbox::new();
        let told = Told::default();
        inbox.push(Notice::new("one").waking(3).unless(told.clone()));
        inbox.push(Notice::new("two"));
        told.set();
        assert_eq!(inbox.wake().now_or_never(), None);
        assert_eq!(inbox.drain(), [Notice::new("two")]);
        inbox.push(Notice::new("three").unless(told));
        assert_eq!(inbox.arrived().now_or_never(), None);
        assert_eq!(inbox.drain(), []);
    }

    #[test]
    fn a_notice_takes_the_place_of_one_that_was_not_read() {
        let inbox = Inbox::new();
        let (first, second) = (Told::default(), Told::default());
        inbox.push(Notice::new("one").unless(first.clone()));
        let drained = inbox.drain();
        assert!(first.supersede(), "drained is not read");
        assert!(!drained[0].deliver());
        inbox.push(Notice::new("one, two").unless(second.clone()));
        assert!(inbox.drain()[0].deliver());
        assert!(!second.supersede());
        assert!(!second.is_set());
    }

    #[test]
    fn an_idle_agent_is_woken_only_so_often() {
        let inbox = Inbox::new();
        let wakes = || inbox.wake().now_or_never().is_some();
        inbox.push(Notice::new("quiet"));
        assert!(!wakes());
        for _ in 0..2 {
            for expected in [true, true, true, false] {
                inbox.push(Notice::new("done").waking(3));
                assert_eq!(wakes(), expected);
                inbox.drain();
            }
            inbox.user_spoke();
        }
    }

    #[test]
    fn what_could_wake_is_known_beforehand() {
        let inbox = Inbox::new();
        assert!(!inbox.could_wake());
        inbox.expect(1);
        inbox.expect(0);
        assert!(inbox.could_wake());
        inbox.push(Notice::new("one").waking(1));
        assert_eq!(inbox.wake().now_or_never(), Some(()));
        assert!(!inbox.could_wake());
        inbox.push(Notice::new("two").waking(2));
        assert!(inbox.could_wake());
        inbox.drain();
        assert!(!inbox.could_wake());
        inbox.user_spoke();
        assert!(inbox.could_wake());
    }

    #[tokio::test]
    async fn a_message_of_the_user_lets_waiting_notices_wake_again() {
        let inbox = Arc::new(Inbox::new());
        inbox.push(Notice::new("one").waking(1));
        inbox.wake().await;
        inbox.drain();
        inbox.push(Notice::new("two").waking(1));
        assert_eq!(inbox.wake().now_or_never(), None, "it was woken once already");
        inbox.user_spoke();
        assert_eq!(inbox.wake().now_or_never(), Some(()));
    }
}
