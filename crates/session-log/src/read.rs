//! Reading a log back.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde_json::Value;

use crate::LogError;

/// The lines of a log, header first.
///
/// A last event that was cut by a crash of the host is left out. Damage that does not look like the
/// end of the file, such as a wrong checksum, is an error.
pub fn read_log(path: &Path) -> Result<Vec<Value>, LogError> {
    read_lines(path).map_err(|source| LogError { path: path.to_owned(), source })
}

fn read_lines(path: &Path) -> io::Result<Vec<Value>> {
    let mut text = Vec::new();
    // What was decoded before the cut stays in `text`.
    match zstd::Decoder::new(File::open(path)?)?.read_to_end(&mut text) {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        _ => {}
    }
    let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    text.truncate(complete);
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).map_err(io::Error::from))
        .collect()
}
