//! Logs to stderr, as far as `DSH_LOG` asks for them.
//!
//! Guarantee: what is typed into a terminal or said by a model is logged only on explicit demand. The
//! libraries of the protocols log whole requests and parts of replies, and those may hold a secret;
//! so what may repeat them is not logged unless the filter names the library.

use std::io::IsTerminal as _;

use tracing::{Metadata, level_filters::LevelFilter};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{FilterExt as _, filter_fn},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

use crate::failure::Failure;

const VARIABLE: &str = "DSH_LOG";

/// The libraries that log what goes through them, and the level up to which none of it is in there.
const TALKATIVE: [(&str, LevelFilter); 4] = [
    ("rmcp", LevelFilter::WARN),
    ("async_openai", LevelFilter::OFF),
    ("tungstenite", LevelFilter::WARN),
    ("tokio_tungstenite", LevelFilter::WARN),
];

/// Starts logging.
pub(crate) fn init() -> Result<(), Failure> {
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let wanted = if wanted.is_empty() { "warn" } else { &wanted };
    let filter = EnvFilter::try_new(wanted).map_err(|error| {
        Failure::user(
            format!("{VARIABLE}={wanted} is no log filter: {error}"),
            "write a level (error, warn, info, debug, trace), or crate=level pairs with commas",
        )
    })?;
    let demanded = TALKATIVE.map(|(library, _)| names(wanted, library));
    let filter = filter.and(filter_fn(move |it| is_harmless(it, demanded)));
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !crate::no_color())
        .with_filter(filter);
    tracing_subscriber::registry().with(layer).init();
    Ok(())
}

fn is_harmless(it: &Metadata<'_>, demanded: [bool; TALKATIVE.len()]) -> bool {
    TALKATIVE.iter().zip(demanded).all(|((library, harmless), demanded)| {
        demanded || !is_of(it.target(), library) || it.level() <= harmless
    })
}

/// Whether a directive of the filter is about `library`.
fn names(filter: &str, library: &str) -> bool {
    filter.split(',').any(|directive| {
        let target = directive.trim().split(['=', '[']).next().unwrap_or_default();
        is_of(target, library)
    })
}

fn is_of(target: &str, library: &str) -> bool {
    target.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_names_the_library() {
        for (filter, demanded) in [
            ("debug", false),
            ("trace,dsh=info", false),
            ("rmcp_macros=debug", false),
            ("mcp=trace", false),
            ("rmcp=debug", true),
            ("warn, rmcp::service=trace", true),
            ("rmcp[serve_inner]=trace", true),
        ] {
            assert_eq!(names(filter, "rmcp"), demanded, "{filter}");
        }
    }
}
