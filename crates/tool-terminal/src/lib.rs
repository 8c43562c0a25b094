//! tool-terminal
