//! What of a session is recorded.

use asciicast::{EventKind, Header};
use terminal::{SessionStatus, TerminalError, WindowSize};

use super::Task;
use crate::recorder::Recorder;

impl Task {
    /// Begins the recording, if there shall be one.
    pub(super) fn begin_recording(&mut self) -> Result<(), TerminalError> {
        let config = &self.config;
        if !config.record {
            return Ok(());
        }
        let folder = match (&config.record_folder, &config.home) {
            (Some(folder), _) => folder.clone(),
            (None, Some(home)) => home.join("recordings"),
            (None, None) => {
                return Err(TerminalError::ShellStartFailed(
                    "no folder for recordings: set DSH_HOME or HOME, or `recordFolder` in the \
                     config of `terminal-bash`"
                        .to_owned(),
                ));
            }
        };
        let header = Header {
            columns: config.cols.get(),
            rows: config.rows.get(),
            term: config.term.clone(),
            timestamp: 0,
            title: format!("{} {}", config.backend_type, self.id),
        };
        let max_bytes = config.record_max_bytes;
        let (recorder, path) = Recorder::create(&folder, &self.name, header, max_bytes, self.now())
            .map_err(|error| {
                TerminalError::ShellStartFailed(format!(
                    "the session cannot be recorded in {}: {error}",
                    folder.display()
                ))
            })?;
        tracing::info!("session {} is recorded in {}", self.id, path.display());
        self.recorder = Some(recorder);
        Ok(())
    }

    /// Records the output that is about to be shown.
    pub(super) fn record_output(&mut self) {
        let now = self.now();
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !self.unseen) {
            recorder.output(now, &self.output);
        }
    }

    /// Records what is shown in place of output.
    pub(super) fn record_shown(&mut self, bytes: &[u8]) {
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.output(now, bytes);
        }
    }

    /// Records what is about to be typed, if it will be shown for certain.
    pub(super) fn record_input(&mut self, bytes: &str) {
        let now = self.now();
        let at_prompt = self.marks.prompt().is_some();
        if let Some(recorder) = self.recorder.as_mut().filter(|_| !self.unseen)
            && (at_prompt || self.process.modes().is_some_and(|it| it.echo))
        {
            recorder.event(now, &EventKind::Input(bytes.to_owned()));
        }
    }

    pub(super) fn record_size(&mut self, size: WindowSize) {
        let now = self.now();
        let WindowSize { rows, columns } = size;
        if let Some(recorder) = &mut self.recorder {
            recorder.event(now, &EventKind::Resize { columns, rows });
        }
    }

    /// Ends the recording; resolves when it is written.
    pub(super) async fn end_recording(&mut self) {
        let now = self.now();
        let Some(mut recorder) = self.recorder.take() else { return };
        if let Some(SessionStatus::Exited { exit_code: Some(code), .. }) = &self.exit {
            recorder.event(now, &EventKind::Exit(code.to_string()));
        }
        recorder.close().await;
    }
}
