//! Calls through `ctx.tools`, with a scripted tool and a real log.

#![expect(clippy::unwrap_used, reason = "a fixture that cannot be built is a failed test")]

mod common;
mod logged;
mod pipeline;
mod registry;
