//! Development tasks, run as `cargo xtask …`.

mod bare;
mod bench;

use clap::{Parser, Subcommand};

/// Development tasks.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measures sessions beside a bare bash on a bare pseudo-terminal, in one run.
    Bench {
        /// How often each quick operation is measured.
        #[arg(long, default_value_t = 100)]
        runs: usize,
        /// How often each slow operation is measured.
        #[arg(long, default_value_t = 5)]
        slow_runs: usize,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Bench { runs, slow_runs } => bench::run(runs, slow_runs),
    }
}
