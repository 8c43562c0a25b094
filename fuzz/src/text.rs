//! Old text and searches: `terminal_bash::fuzzing::text` says what holds. CONTRIBUTING.md says how
//! to run it.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| terminal_bash::fuzzing::text(input));
