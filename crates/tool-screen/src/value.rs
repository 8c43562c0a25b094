//! The structured values of the tools. Rows and columns are counted from 1, as programs that draw on
//! a terminal count them; lines of the scrollback from 0.

use serde::{Deserialize, Serialize};
use terminal::{
    Highlight, LastCommand, MouseReports, ScreenSnapshot, SendState, SessionStatus, WaitReason,
};

/// What a screen shows, or what of it has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScreenValue {
    /// Tells this content from others.
    pub hash: String,
    /// Whether `rows` are only those that changed.
    pub changes_only: bool,
    /// The rows that have text; with `changes_only` those that changed, empty ones included.
    pub rows: Vec<ShownRow>,
    /// Size of the window.
    pub size: Size,
    /// Where the cursor is.
    pub cursor: Cursor,
    /// What the program calls its window.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// A full-screen program has the screen.
    pub alternate_screen: bool,
    /// What the program asked of keys and mouse.
    pub modes: Vec<String>,
    /// What is shown in reverse.
    pub highlights: Vec<Highlighted>,
}

/// A row of the window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownRow {
    /// Its number.
    pub row: u16,
    /// Its text.
    pub text: String,
}

/// Size of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Size {
    pub rows: u16,
    pub columns: u16,
}

/// Where the cursor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// Row.
    pub row: u16,
    /// Column.
    pub column: u16,
    /// It can be seen.
    pub visible: bool,
}

/// Cells that are shown in reverse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Highlighted {
    /// Row.
    pub row: u16,
    /// Column of the first one.
    pub column: u16,
    /// What is written there.
    pub text: String,
}

impl From<Highlight> for Highlighted {
    fn from(Highlight { row, column, text }: Highlight) -> Self {
        Self { row: row + 1, column: column + 1, text }
    }
}

impl ScreenValue {
    /// The whole screen; or, of a screen whose rows had the hashes `before`, what has changed.
    pub(crate) fn new(shown: ScreenSnapshot, before: Option<&[u64]>) -> Self {
        let hash = format!("{:016x}", shown.hash());
        let now = shown.row_hashes();
        let before = before.filter(|it| it.len() == now.len());
        let changed = |index: usize| before.is_none_or(|it| it.get(index) != now.get(index));
        let modes = modes(&shown);
        let highlights = shown.highlights.into_iter().filter(|it| changed(usize::from(it.row)));
        let size = Size { rows: count(shown.rows.len()), columns: shown.columns };
        let rows = shown.rows.into_iter().enumerate();
        let rows =
            rows.filter(|(index, text)| changed(*index) && (before.is_some() || !text.is_empty()));
        Self {
            hash,
            changes_only: before.is_some(),
            rows: rows.map(|(index, text)| ShownRow { row: count(index) + 1, text }).collect(),
            size,
            cursor: Cursor {
                row: shown.cursor.row + 1,
                column: shown.cursor.column + 1,
                visible: shown.cursor.visible,
            },
            title: shown.title,
            alternate_screen: shown.alternate,
            modes,
            highlights: highlights.map(Highlighted::from).collect(),
        }
    }
}

fn modes(shown: &ScreenSnapshot) -> Vec<String> {
    let modes = shown.modes;
    let all = [
        (modes.cursor_keys, "cursor keys"),
        (modes.keypad, "keypad"),
        (modes.bracketed_paste, "paste"),
        (modes.mouse != MouseReports::Off, "mouse"),
    ];
    all.into_iter().filter(|it| it.0).map(|it| it.1.to_owned()).collect()
}

fn count(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// `terminal_keys`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KeysValue {
    /// What changed on the screen of a full-screen program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<ScreenValue>,
    /// What was shown since the first key, where no full-screen program has the screen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What of the visible output is shown in reverse and was not before, where a program has it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub highlights: Vec<Highlighted>,
    /// Why the wait ended.
    pub wait_reason: WaitReason,
    /// Whether the top-level process runs.
    pub session_status: SessionStatus,
    /// Something of the output is missing.
    pub truncated: bool,
    /// Keys at the end that were not pressed.
    pub unpressed: u64,
    /// The shell command that ended meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_command: Option<LastCommand>,
    /// What the session is doing now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<SendState>,
    /// The limit at which the session was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// What of the terminal's state was put right.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repaired: Vec<String>,
}

/// `terminal_wait`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitValue {
    /// What ended the wait.
    pub ended: WaitEnded,
    /// The line or row that matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matched: Option<String>,
    /// The new output.
    pub output: String,
    /// Something of it is missing.
    pub truncated: bool,
    /// Whether the top-level process runs.
    pub session_status: SessionStatus,
    /// The shell command that ended with the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_command: Option<LastCommand>,
    /// What the session is doing now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<SendState>,
    /// The limit at which the session was ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "named after the conditions")]
pub enum WaitEnded {
    Output,
    Screen,
    Prompt,
    Input,
    Silence,
    Exit,
    Timeout,
}

/// `terminal_search`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SearchValue {
    /// The lines that match, oldest first, with the lines around them.
    pub lines: Vec<FoundLine>,
    /// How many of them match.
    pub matches: u64,
    /// A search before this line goes on where this one stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// Lines that can be read.
    pub total_lines: u64,
    /// Older lines could not be looked at: they are gone.
    pub truncated: bool,
}

/// A line that was found, or is near one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundLine {
    /// Its number since the session began.
    pub line: u64,
    /// Its text.
    pub text: String,
    /// It matches.
    pub matches: bool,
}

/// `terminal_lines`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinesValue {
    /// The lines, joined by newlines.
    pub text: String,
    /// Number of the first one since the session began.
    pub first_line: u64,
    /// How many there are.
    pub count: u64,
    /// Lines that can be read.
    pub total_lines: u64,
    /// Something of this page is missing.
    pub truncated: bool,
}
