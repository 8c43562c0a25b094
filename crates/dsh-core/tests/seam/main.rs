//! Every promise of the seam, kept by plugins of the tests' own.
#![expect(clippy::unwrap_used, reason = "test helpers outside #[test] functions")]

mod app;
mod broken;
mod compile;
mod composition;
mod layers;
mod plugins;
mod scope;
