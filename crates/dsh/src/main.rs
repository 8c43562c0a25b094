//! The host.
fn main() {}
