//! Programs that draw a screen: seen as they draw, driven by keys.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use dsh_core::Cancel;
use terminal::{
    Highlight, Key, KeyPress, KeysRequest, Modifiers, MouseAction, MouseReports, NamedKey,
    ScreenSnapshot, SendOutcome, StateKind, TerminalError, WaitReason, WindowSize,
};

use crate::{
    shell::{Shell, assert_prompt, assert_waits, bench, shell},
    typing::until_prompt,
};

/// Shows its size and the keys that it got, until one is `q`.
const PANEL: &str = r"
import os, signal, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'\x1b[?1049h\x1b[?1h\x1b[?1000h\x1b[?1006h\x1b]0;panel\x07\x1b[2J')
keys = b''
def draw(*_):
    size = os.get_terminal_size()
    os.write(1, b'\x1b[H\x1b[7mtop\x1b[0m row\x1b[2;1H%dx%d ' % (size.lines, size.columns))
    os.write(1, b'\x1b[3;1H%s\x1b[K' % repr(keys).encode())
signal.signal(signal.SIGWINCH, draw)
draw()
while not keys.endswith(b'q'):
    keys += os.read(0, 1000)
    draw()
os.write(1, b'\x1b[?1000l\x1b[?1006l\x1b[?1l\x1b[?1049l')
termios.tcsetattr(0, termios.TCSANOW, before)
";

impl Shell<'_> {
    async fn press(&self, keys: Vec<KeyPress>) -> Result<SendOutcome, TerminalError> {
        let request = KeysRequest { keys, cancel: Cancel::new() };
        self.terminals().start_keys(&self.bench.agent, &self.id, request)?.done().await
    }

    async fn screen(&self) -> ScreenSnapshot {
        self.terminals().screen(&self.bench.agent, &self.id).await.unwrap()
    }

    async fn resize(&self, rows: u16, columns: u16) -> Result<(), TerminalError> {
        let size = WindowSize { rows, columns };
        self.terminals().resize(&self.bench.agent, &self.id, size).await
    }
}

fn key(named: NamedKey) -> KeyPress {
    named.into()
}

fn click(row: u16, column: u16) -> KeyPress {
    let action = MouseAction::LeftClick;
    KeyPress { key: Key::Mouse { action, row, column }, modifiers: Modifiers::default() }
}

#[test]
fn a_full_screen_program_is_seen_and_driven() {
    shell(async |shell| {
        std::fs::write(shell.path("panel.py"), PANEL).unwrap();
        let outcome = shell.send("python3 panel.py").await;
        assert_waits(&outcome, StateKind::Tui);
        assert_eq!(outcome.viewport, "top row\n40x160\nb''", "its screen, not what it wrote");
        let shown = shell.screen().await;
        assert!(shown.alternate && shown.title == "panel", "{shown:#?}");
        assert_eq!((shown.rows.len(), shown.columns), (40, 160));
        let top = Highlight { row: 0, column: 0, text: "top".to_owned() };
        assert_eq!(shown.highlights, [top]);
        assert!(shown.modes.cursor_keys && shown.modes.mouse == MouseReports::Buttons);
        assert_eq!(shown.hash(), shell.screen().await.hash());

        let pressed = shell.press(vec![key(NamedKey::Up), key(NamedKey::Function(5))]).await;
        assert_waits(&pressed.unwrap(), StateKind::Tui);
        shell.press(vec![click(1, 2)]).await.unwrap();
        let shown = shell.screen().await;
        let sent = r"b'\x1bOA\x1b[15~\x1b[<0;3;2M\x1b[<0;3;2m'";
        assert_eq!(shown.rows[2], sent, "as the program's modes ask");

        shell.resize(10, 50).await.unwrap();
        let drawn = shell.press(vec![KeyPress::character('x')]).await.unwrap();
        assert!(drawn.viewport.contains("\n10x50"), "{drawn:#?}");
        assert_eq!(shell.screen().await.rows.len(), 10);

        let left = shell.press(vec![KeyPress::character('q')]).await.unwrap();
        assert_prompt(&left, Some(0));
        let shown = shell.screen().await;
        assert!(!shown.alternate && shown.highlights.is_empty(), "{shown:#?}");
        let row = usize::from(shown.cursor.row);
        assert_eq!((shown.rows[row].as_str(), shown.cursor.column), ("dsh>", 5), "{shown:#?}");
        assert_eq!(shell.run("stty size", 0).await, "10 50\n");
    });
}

/// A17: a later line that is for whoever was there before would be keys to the program, now or later.
#[test]
fn lines_are_not_typed_blindly_into_what_takes_the_screen() {
    let untyped = |outcome: &SendOutcome| outcome.input.unwrap().untyped;
    shell(async |shell| {
        std::fs::write(shell.path("panel.py"), PANEL).unwrap();
        let opened = shell.send("python3 panel.py\n\ntouch ran\necho no").await;
        assert_waits(&opened, StateKind::Tui);
        assert_eq!(untyped(&opened), 2, "{opened:#?}");
        assert_eq!(opened.input.unwrap().accepted, "python3 panel.py\n".len() as u64);
        assert_eq!(shell.screen().await.rows[2], "b''");
        // It was there when this began.
        let keys = shell.type_only("a\nb").await;
        assert_eq!(untyped(&keys), 0);
        assert_eq!(shell.screen().await.rows[2], r"b'a\nb'");
        assert_prompt(&shell.press(vec![KeyPress::character('q')]).await.unwrap(), Some(0));
        assert!(!shell.path("ran").exists());
    });
    // Nobody waited for the line in time, and then it is too late.
    bench("{ idleSilenceMs: 300, timeoutMs: 400 }", async |bench| {
        let shell = &bench.open().await;
        let shows = async |row: &str| {
            loop {
                let shown = shell.screen().await;
                if shown.alternate && shown.rows.get(2).is_some_and(|it| it == row) {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        std::fs::write(shell.path("panel.py"), PANEL).unwrap();
        let gate = shell.gate();
        let waiting = shell.send("cat gate; python3 panel.py\necho no").await;
        assert_eq!((waiting.wait_reason, untyped(&waiting)), (WaitReason::Timeout, 0));
        gate.open().await;
        shows("b''").await;
        shell.press(vec![KeyPress::character('x')]).await.unwrap();
        shows("b'x'").await;
        assert_eq!(untyped(&shell.type_only("").await), 1);
        assert_eq!(untyped(&shell.type_only("y").await), 0);
        shows("b'xy'").await;
        shell.press(vec![KeyPress::character('q')]).await.unwrap();
        until_prompt(shell).await;
        assert_eq!(shell.run("echo usable", 0).await, "usable\n");
    });
}

/// A menu that leaves the output above it where it is.
const MENU: &str = include_str!("victims/menu.py");

#[test]
fn a_menu_among_the_output_tells_what_is_selected() {
    shell(async |shell| {
        std::fs::write(shell.path("menu.py"), MENU).unwrap();
        let selected = async || {
            let shown = shell.screen().await;
            assert!(!shown.alternate);
            let [Highlight { row, column: 0, text }] = shown.highlights.as_slice() else {
                panic!("{shown:#?}");
            };
            assert_eq!(shown.rows[usize::from(*row)], *text);
            text.clone()
        };
        assert_waits(&shell.send("python3 menu.py").await, StateKind::Raw);
        assert_eq!(selected().await, "> apple");
        for (named, expected) in
            [(NamedKey::Down, "> banana"), (NamedKey::Down, "> cherry"), (NamedKey::Up, "> banana")]
        {
            assert_waits(&shell.press(vec![key(named)]).await.unwrap(), StateKind::Raw);
            assert_eq!(selected().await, expected);
        }
        shell.resize(20, 60).await.unwrap();
        assert_eq!(selected().await, "> banana");
        let picked = shell.press(vec![key(NamedKey::Enter)]).await.unwrap();
        assert_prompt(&picked, Some(0));
        assert!(picked.viewport.contains("picked banana"), "{picked:#?}");
    });
}

#[test]
fn what_ends_a_line_is_acted_upon_before_the_next_key() {
    shell(async |shell| {
        let mut keys = Vec::new();
        for line in ["read x", "echo not a command", "echo got $x"] {
            keys.extend([KeyPress::text(line), key(NamedKey::Enter)]);
        }
        let outcome = shell.press(keys).await.unwrap();
        assert_prompt(&outcome, Some(0));
        assert!(outcome.viewport.contains("\ngot echo not a command\n"), "{outcome:#?}");
        assert!(outcome.echoed && outcome.unpressed == 0);
    });
}

/// A program that tells Escape from the beginning of a sequence by the time behind it.
#[test]
fn escape_is_a_key_of_its_own() {
    const EDITOR: &str = r"
import os, select, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b'\x1b[?1049h\x1b[H')
while True:
    key = os.read(0, 1)
    if key == b'\x1b':
        more = select.select([0], [], [], .1)[0]
        os.write(1, b'meta ' if more else b'escape ')
    elif key == b'q':
        break
    else:
        os.write(1, key + b' ')
os.write(1, b'\x1b[?1049l')
termios.tcsetattr(0, termios.TCSANOW, before)
";
    shell(async |shell| {
        std::fs::write(shell.path("editor.py"), EDITOR).unwrap();
        shell.send("python3 editor.py").await;
        let alt = Modifiers { alt: true, ..Modifiers::default() };
        shell
            .press(vec![
                KeyPress::character('a'),
                key(NamedKey::Escape),
                KeyPress::character('O'),
                KeyPress { key: Key::Character('x'), modifiers: alt },
            ])
            .await
            .unwrap();
        assert_eq!(shell.screen().await.rows[0], "a escape O meta x");
        assert_prompt(&shell.press(vec![KeyPress::character('q')]).await.unwrap(), Some(0));
    });
}

#[test]
fn what_cannot_be_pressed_is_refused_with_the_reason() {
    shell(async |shell| {
        let error = shell.press(vec![KeyPress::character('x'), click(0, 0)]).await.unwrap_err();
        assert_eq!(error.code(), "INVALID_ARGS");
        let message = error.to_string();
        assert!(message.starts_with("LeftClick@1,1: the program has not asked"), "{message}");
        assert!(message.ends_with("; no key was pressed"), "{message}");
        assert_eq!(shell.press(Vec::new()).await.unwrap_err().code(), "INVALID_ARGS");
        for (rows, columns, what) in [(0, 80, "0 rows"), (24, 10_000, "10000 columns")] {
            let error = shell.resize(rows, columns).await.unwrap_err();
            assert_eq!(error.code(), "INVALID_ARGS");
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(shell.run("echo usable", 0).await, "usable\n");
        shell.send("exit 3").await;
        let error = shell.press(vec![key(NamedKey::Enter)]).await.unwrap_err();
        assert_eq!(error.code(), "SESSION_EXITED");
        assert_eq!(shell.resize(24, 80).await.unwrap_err().code(), "SESSION_EXITED");
        assert!(shell.screen().await.text().contains("usable"), "what was shown last is there");
    });
}

#[test]
fn keys_that_nothing_shows_may_be_a_secret() {
    shell(async |shell| {
        let asked = shell.send("read -s -p 'Password: ' x").await;
        assert_eq!(asked.state.unwrap().kind, StateKind::Password);
        let secret = vec![KeyPress::text("hunter2"), key(NamedKey::Enter)];
        let typed = shell.press(secret).await.unwrap();
        assert!(!typed.echoed && !typed.viewport.contains("hunter2"), "{typed:#?}");
        assert_eq!(shell.run("echo $x", 0).await, "hunter2\n");
    });
}
