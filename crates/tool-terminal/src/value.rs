//! The structured values of the tools. Property names and types are the wire's; optional ones are
//! left out, never null, except where the wire says null.

use serde::{Deserialize, Serialize};
use terminal::{
    Foreground, InputReceipt, LastCommand, Missing, SendOutcome, SendState, SessionSnapshot,
    SessionStatus, Spawned, WaitReason,
};

use crate::text;

/// `terminal_open`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenValue {
    /// The session as [`terminal_list`](ListedSession) shows it.
    #[serde(flatten)]
    pub session: ListedSession,
    /// What was shown until it was ready.
    pub motd: String,
}

impl OpenValue {
    /// Keeps at most `cap` bytes of the startup output, the newest ones.
    pub(crate) fn new(spawned: Spawned, cap: usize) -> Self {
        let motd = text::tail(&spawned.motd, cap).to_owned();
        Self { session: spawned.session.into(), motd }
    }
}

/// One element of `terminal_list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedSession {
    /// Opaque id.
    pub session_id: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Backend type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Process id of the top-level process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Whether it runs.
    pub status: SessionStatus,
}

impl From<SessionSnapshot> for ListedSession {
    fn from(session: SessionSnapshot) -> Self {
        Self {
            session_id: session.session_id.as_str().to_owned(),
            name: session.name,
            kind: session.kind,
            pid: session.pid,
            status: session.status,
        }
    }
}

/// `terminal_send`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "a call has one")]
pub enum SendValue {
    /// The exchange is over.
    Foreground {
        /// Everything shown from the write on.
        viewport: String,
        /// Why it ended.
        wait_reason: WaitReason,
        /// Whether the top-level process runs.
        session_status: SessionStatus,
        /// Something of the viewport is missing.
        truncated: bool,
        /// The shell command that ended during this exchange.
        #[serde(skip_serializing_if = "Option::is_none")]
        last_command: Option<LastCommand>,
        /// What the session is doing now.
        #[serde(skip_serializing_if = "Option::is_none")]
        state: Option<SendState>,
        /// What became of the input.
        #[serde(skip_serializing_if = "Option::is_none")]
        input: Option<InputReceipt>,
        /// The limit at which the session was ended.
        #[serde(skip_serializing_if = "Option::is_none")]
        limit: Option<String>,
        /// What of the terminal's state was put right.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        repaired: Vec<String>,
        /// What the session has started and its end has left.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left: Vec<Foreground>,
    },
    /// The exchange goes on as a job.
    Background {
        /// Its id.
        job_id: String,
    },
}

impl SendValue {
    /// Keeps at most `cap` bytes of the viewport, the newest ones. Without `report_state` it has
    /// the compatible properties alone; with it a viewport that lost something begins with a line
    /// that says how much, and where that can be read.
    pub(crate) fn foreground(outcome: SendOutcome, report_state: bool, cap: usize) -> Self {
        let last_command = outcome.last_command.map(|mut command| {
            // A path that is not UTF-8 has no JSON form.
            command.cwd = command.cwd.map(|cwd| cwd.to_string_lossy().into_owned().into());
            command
        });
        let whole = Self::Foreground {
            viewport: outcome.viewport,
            wait_reason: outcome.wait_reason,
            session_status: outcome.session_status,
            truncated: outcome.truncated,
            last_command: last_command.filter(|_| report_state),
            state: outcome.state.filter(|_| report_state),
            input: outcome.input.filter(|_| report_state),
            limit: outcome.limit.filter(|_| report_state),
            repaired: if report_state { outcome.repaired } else { Vec::new() },
            left: if report_state { outcome.left } else { Vec::new() },
        };
        match outcome.missing.filter(|_| report_state) {
            Some(missing) => whole.telling(missing, cap),
            None => whole.kept(cap),
        }
    }

    /// The newest `cap` bytes of the viewport.
    fn kept(mut self, cap: usize) -> Self {
        if let Self::Foreground { viewport, truncated, .. } = &mut self {
            let kept = text::tail(viewport, cap).to_owned();
            *truncated |= kept.len() < viewport.len();
            *viewport = kept;
        }
        self
    }

    /// As much of the viewport as the whole text has room for, behind a line that tells what is
    /// missing, where there is room for one.
    fn telling(mut self, missing: Missing, cap: usize) -> Self {
        let size = text::send(&self, usize::MAX).len();
        let Self::Foreground { viewport, truncated, .. } = &mut self else { return self };
        if !*truncated && size <= cap {
            return self;
        }
        *truncated = true;
        let body = std::mem::take(viewport);
        let around = text::send(&self, usize::MAX).len();
        let Self::Foreground { viewport, .. } = &mut self else { return self };
        let room = cap.saturating_sub(around + NOTE_BYTES);
        if room < NOTE_BYTES {
            *viewport = body;
            return self.kept(cap);
        }
        let mut kept = text::tail(&body, room);
        // The first line is there in part, for all that is known.
        if let Some((_, lines)) = kept.split_once('\n')
            && !lines.is_empty()
        {
            kept = lines;
        }
        let cut = &body[..body.len() - kept.len()];
        let lines = cut.matches('\n').count() as u64;
        let note = text::missing(Missing {
            lines: missing.lines + lines,
            bytes: missing.bytes + cut.len() as u64,
            readable: missing.readable + lines,
            offset: missing.offset.saturating_sub(lines),
        });
        *viewport = format!("{note}\n{kept}");
        self
    }
}

/// Room for the line that tells what is missing.
const NOTE_BYTES: usize = 256;
