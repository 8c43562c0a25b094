//! The demonstration: one interactive session, played through `ctx.tools` by an agent.
//!
//! `script` is the list of calls and of what each must give; `play` runs them; `print` shows them.
//! The script needs bash and python3.

mod play;
mod print;
mod script;

pub(crate) use play::Stage;
pub(crate) use print::Printer;
