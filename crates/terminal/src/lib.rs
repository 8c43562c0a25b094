//! `ctx.terminals`: backends and the persistent terminal sessions of each agent.
//!
//! A *backend* knows how to open one type of session; the *registry* owns who may use which
//! session. Everything a backend needs to know of the caller crosses as plain data.

pub mod backend;
pub mod error;
pub mod outcome;
pub mod registry;

pub use backend::{
    OpenRequest, OutputDelta, OutputSubscription, ReadRequest, SendOperation, SendRequest,
    SessionId, Signal, SignalReceipt, TerminalBackend, TerminalSession,
};
pub use error::TerminalError;
pub use outcome::{
    Busy, Evidence, Foreground, InputReceipt, LastCommand, ReadPage, SendOutcome, SendState,
    SessionStatus, StateKind, WaitReason,
};
pub use registry::{SessionSnapshot, SpawnRequest, Spawned, TerminalRegistry};

use dsh_core::Service;

/// Service key of the session service.
pub struct Terminals;

impl Service for Terminals {
    type Api = TerminalRegistry;
    const NAME: &'static str = "terminals";
}
