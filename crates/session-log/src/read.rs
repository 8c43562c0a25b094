//! Reading a log back.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader},
    path::Path,
};

use serde_json::Value;

use crate::LogError;

/// The lines of a log, header first.
///
/// A last event that was cut by a crash of the host is left out. Damage that does not look like the
/// end of the file, such as a wrong checksum, is an error.
pub fn read_log(path: &Path) -> Result<Vec<Value>, LogError> {
    let mut lines = Vec::new();
    visit_log(path, |line| lines.push(line))?;
    Ok(lines)
}

/// The same, one line at a time: a log may be larger than the memory that its reader wants to spend.
pub fn visit_log(path: &Path, mut visit: impl FnMut(Value)) -> Result<(), LogError> {
    let read = visit_text(path, |line| {
        visit(serde_json::from_slice(line)?);
        Ok(())
    });
    read.map_err(|source| LogError { path: path.to_owned(), source })
}

/// Hands out every complete line that is not empty, without its newline.
pub(crate) fn visit_text(
    path: &Path,
    mut visit: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut text = BufReader::new(zstd::Decoder::new(File::open(path)?)?);
    let mut line = Vec::new();
    loop {
        line.clear();
        match text.read_until(b'\n', &mut line) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        };
        match line.strip_suffix(b"\n") {
            None => return Ok(()),
            Some([]) => {}
            Some(line) => visit(line)?,
        }
    }
}
