//! The binary `dsh`.

fn main() -> std::process::ExitCode {
    dsh::main()
}
