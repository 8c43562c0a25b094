//! terminal-bash
