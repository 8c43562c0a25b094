//! How a send knows that the program is ready: evidence goes in, verdicts come out.
//!
//! - [`marks`]: what the shell itself tells;
//! - [`judge`]: one look at the terminal and its foreground → what it means, a pure function;
//! - [`exchange`]: one send over time → when to look again, and when and why it is settled.
//!
//! Nothing here calls the system or reads a clock: moments come in with each
//! event. Text and silence prove nothing; only the kernel's account of who
//! waits for what, taken between two fences (all input taken, all output read), and the shell's
//! private marks do.

pub mod exchange;
pub mod judge;
pub mod marks;

pub use exchange::{Exchange, InputFacts, Limits, Settlement, Shape, Step};
pub use judge::{FarFacts, Judge, Judgement, ScreenFacts, Verdict};
pub use marks::{Finished, Moment, Prompt, ShellMarks};
