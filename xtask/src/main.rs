//! Development tasks, run as `cargo xtask …`.

mod bare;
mod bench;
mod full_screen;
mod generate;
mod kill;
mod matrix;
mod output;
mod packages;
mod soak;
mod stress;
mod waiting;
mod watched;

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
        /// What is measured; everything by default.
        #[arg(long, value_enum, value_delimiter = ',', default_values_t = [
            bench::Part::Quick, bench::Part::Crowd, bench::Part::Output, bench::Part::Screen, bench::Part::Costs,
            bench::Part::FullScreen, bench::Part::Watched,
        ])]
        parts: Vec<bench::Part>,
    },
    /// Writes the files that are generated from the registered plugins.
    Gen(generate::Options),
    /// Plays scenarios of real programs and says whether each wait was found, and not before.
    Matrix(matrix::Options),
    /// Plays the one scenario that standard input assigns.
    #[command(hide = true)]
    MatrixPlayer,
    /// Says what the packages lack for a publication, and which dependencies are not allowed.
    Packages,
    /// Plays many sessions that do anything at random, and checks every promise at each step.
    Soak(soak::Options),
    /// Plays programs that do anything at random and then wait, in every way there is.
    Stress(stress::Options),
    /// Measures how soon a waiting program is found, and what waiting costs.
    Waiting {
        /// How often each quick way to wait is measured.
        #[arg(long, default_value_t = 300)]
        runs: usize,
        /// How many sessions wait at once.
        #[arg(long, default_value_t = 100)]
        sessions: usize,
        /// For how long they do.
        #[arg(long, default_value_t = 30)]
        seconds: u64,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Bench { runs, slow_runs, parts } => bench::run(parts, runs, slow_runs),
        Task::Gen(options) => generate::run(&options),
        Task::Matrix(options) => matrix::run(&options),
        Task::MatrixPlayer => matrix::play(),
        Task::Packages => packages::run(),
        Task::Soak(options) => soak::run(&options),
        Task::Stress(options) => stress::run(&options),
        Task::Waiting { runs, sessions, seconds } => waiting::run(runs, sessions, seconds),
    }
}
