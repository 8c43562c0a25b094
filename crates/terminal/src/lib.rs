//! `ctx.terminals`: backends and the persistent terminal sessions of each agent.
//!
//! A *backend* knows how to open one type of session; the *registry* owns who may use which
//! session. Everything a backend needs to know of the caller crosses as plain data.
//!
//! Reading order: [`backend`] and [`outcome`], [`screen`], [`keys`] and [`waiting`] (the seam), then [`registry`] (the rules), which
//! keeps its members in `table`, opens in `opening`, closes in `closing`, and holds the send slot
//! in `session`. A person is served by [`watching`] and [`lease`].

pub mod backend;
mod by_hand;
pub mod changes;
pub mod closing;
pub mod error;
pub mod keys;
pub mod lease;
mod opening;
pub mod outcome;
mod plugin;
pub mod registry;
pub mod screen;
mod session;
mod table;
pub mod waiting;
pub mod watching;

pub use backend::{
    CloseRequest, DISPOSAL_GRACE, KeysRequest, Lines, OpenRequest, OutputDelta, OutputSubscription,
    ReadRequest, SearchRequest, SendOperation, SendRequest, SessionId, Shown, Signal,
    SignalReceipt, TerminalBackend, TerminalSession, WindowSize,
};
pub use changes::Changes;
pub use closing::{CloseFailure, DisposalFailed};
pub use error::TerminalError;
pub use keys::{Key, KeyPress, Modifiers, MouseAction, NamedKey};
pub use lease::Lease;
pub use outcome::{
    Busy, Evidence, Foreground, InputReceipt, LastCommand, Missing, ReadPage, SearchMatch,
    SearchPage, SendOutcome, SendState, SessionStatus, StateKind, WaitReason,
};
pub use plugin::TerminalPlugin;
pub use registry::{
    Activity, SessionSnapshot, SpawnRequest, Spawned, TERMINAL_BACKEND, TerminalRegistry,
};
pub use screen::{Highlight, MouseReports, ScreenCursor, ScreenModes, ScreenSnapshot};
pub use waiting::{WaitCondition, WaitEnd, WaitOutcome, WaitRequest};
pub use watching::{ByHand, Seen, TypedByHand, Watcher};

use dsh_core::Service;

/// Service key of the session service.
pub struct Terminals;

impl Service for Terminals {
    type Api = TerminalRegistry;
    const NAME: &'static str = "terminals";
}
