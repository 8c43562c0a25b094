//! The host, and one more plugin: everything that `dsh` does, this does.

// Only what is mentioned is linked.
use backend_echo as _;

fn main() -> std::process::ExitCode {
    dsh::main()
}
