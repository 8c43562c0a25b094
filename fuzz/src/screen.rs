//! The screen: `terminal_bash::fuzzing::screen` says what holds. CONTRIBUTING.md says how to run it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| terminal_bash::fuzzing::screen(input));
