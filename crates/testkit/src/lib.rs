//! What tests of several crates share: a host in this process, a terminal backend and a model's
//! server that do what the test says, waiting without sleeping, and a check that nothing was left
//! over.
//!
//! - [`host`]: boots a composition with a private home;
//! - [`scripted`]: the plugin `terminal-scripted` and its controller;
//! - [`conformance`]: what a terminal backend promises, checked on a backend;
//! - [`chat`]: a server of the chat completions API;
//! - [`again`]: a test of the running binary as another user;
//! - [`wait`]: [`guarded`] futures and [`wait_until`];
//! - [`leaks`]: processes, descriptors and pseudo-terminals before and after.
//!
//! Everything here panics on failure with a message for the reader of the test.

pub mod again;
pub mod chat;
pub mod conformance;
pub mod host;
pub mod leaks;
pub mod scripted;
pub mod wait;

pub use host::TestHost;
pub use leaks::{Snapshot, alone, assert_no_leaks};
pub use scripted::{Act, Gate, Script, ScriptedOperation, ScriptedSession, Step};
pub use wait::{guarded, wait_until};
