//! Remote shells: behind a connection of our own (`far.py`), and behind a real sshd.

mod conformance;
mod ends;
mod recording;
mod sends;
mod ssh;
mod starts;
mod support;
