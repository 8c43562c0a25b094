//! Calls through `ctx.tools`, with a scripted tool and a real log.

mod common;
mod pipeline;
mod registry;
