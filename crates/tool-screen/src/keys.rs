//! Names of keys, as a model writes them.
//!
//! A key is a name (`Enter`, `F5`), a single character, or a text in quotes; `C-`, `M-` and `S-` in
//! front hold Control, Alt and Shift. The mouse is an action at a cell: `Click@3,10`, row and column
//! counted from 1.

use terminal::{Key, KeyPress, Modifiers, MouseAction, NamedKey};

/// How each named key may be written; the first name of each is the usual one. Case does not matter.
const NAMES: [(&str, NamedKey); 33] = [
    ("Enter", NamedKey::Enter),
    ("Return", NamedKey::Enter),
    ("CR", NamedKey::Enter),
    ("Escape", NamedKey::Escape),
    ("Esc", NamedKey::Escape),
    ("Tab", NamedKey::Tab),
    ("Backspace", NamedKey::Backspace),
    ("BS", NamedKey::Backspace),
    ("BSpace", NamedKey::Backspace),
    ("Space", NamedKey::Space),
    ("Up", NamedKey::Up),
    ("ArrowUp", NamedKey::Up),
    ("Down", NamedKey::Down),
    ("ArrowDown", NamedKey::Down),
    ("Left", NamedKey::Left),
    ("ArrowLeft", NamedKey::Left),
    ("Right", NamedKey::Right),
    ("ArrowRight", NamedKey::Right),
    ("Home", NamedKey::Home),
    ("End", NamedKey::End),
    ("PageUp", NamedKey::PageUp),
    ("PgUp", NamedKey::PageUp),
    ("PPage", NamedKey::PageUp),
    ("PageDown", NamedKey::PageDown),
    ("PgDn", NamedKey::PageDown),
    ("PgDown", NamedKey::PageDown),
    ("NPage", NamedKey::PageDown),
    ("Insert", NamedKey::Insert),
    ("Ins", NamedKey::Insert),
    ("IC", NamedKey::Insert),
    ("Delete", NamedKey::Delete),
    ("Del", NamedKey::Delete),
    ("DC", NamedKey::Delete),
];

/// What the mouse does, by name.
const MOUSE: [(&str, MouseAction); 6] = [
    ("Click", MouseAction::LeftClick),
    ("LeftClick", MouseAction::LeftClick),
    ("MiddleClick", MouseAction::MiddleClick),
    ("RightClick", MouseAction::RightClick),
    ("ScrollUp", MouseAction::ScrollUp),
    ("ScrollDown", MouseAction::ScrollDown),
];

type Hold = fn(&mut Modifiers);

/// Prefixes that hold a key.
const HELD: [(&str, Hold); 8] = [
    ("C-", |held| held.control = true),
    ("Ctrl-", |held| held.control = true),
    ("Ctrl+", |held| held.control = true),
    ("M-", |held| held.alt = true),
    ("Alt-", |held| held.alt = true),
    ("Alt+", |held| held.alt = true),
    ("S-", |held| held.shift = true),
    ("Shift-", |held| held.shift = true),
];

/// Similarity of two names from which on one may be meant by the other.
const ALIKE: f64 = 0.75;

/// The press that is written so; why it is none.
pub fn parse(written: &str) -> Result<KeyPress, String> {
    let mut modifiers = Modifiers::default();
    let mut name = written;
    while let Some((rest, hold)) = HELD.iter().find_map(|(prefix, hold)| {
        let rest = name.strip_prefix(prefix).filter(|rest| !rest.is_empty())?;
        Some((rest, hold))
    }) {
        hold(&mut modifiers);
        name = rest;
    }
    let key = base(name).map_err(|wrong| match wrong {
        Wrong::Empty => "a key is empty: give the name of one, or a text in quotes".to_owned(),
        Wrong::Mouse(why) => format!("{written:?}: {why}"),
        Wrong::Unknown => unknown(written, name),
    })?;
    if matches!(key, Key::Text(_)) && modifiers != Modifiers::default() {
        return Err(format!("{written:?}: a text is typed as it is; hold each key by itself"));
    }
    Ok(KeyPress { key, modifiers })
}

enum Wrong {
    Empty,
    Mouse(String),
    Unknown,
}

fn base(name: &str) -> Result<Key, Wrong> {
    let mut characters = name.chars();
    match (characters.next(), characters.next()) {
        (None, _) => return Err(Wrong::Empty),
        (Some('\r' | '\n'), None) => return Ok(Key::Named(NamedKey::Enter)),
        (Some('\t'), None) => return Ok(Key::Named(NamedKey::Tab)),
        (Some('\u{1b}'), None) => return Ok(Key::Named(NamedKey::Escape)),
        (Some(character), None) if !character.is_control() => {
            return Ok(Key::Character(character));
        }
        _ => {}
    }
    for quote in ['"', '\''] {
        if let Some(text) = name.strip_prefix(quote).and_then(|it| it.strip_suffix(quote)) {
            return if text.is_empty() {
                Err(Wrong::Empty)
            } else {
                Ok(Key::Text(text.to_owned()))
            };
        }
    }
    if let Some((action, cell)) = name.split_once('@')
        && let Some((_, action)) = MOUSE.iter().find(|(it, _)| it.eq_ignore_ascii_case(action))
    {
        return mouse(*action, cell).map_err(Wrong::Mouse);
    }
    let function = name.strip_prefix(['F', 'f']).and_then(|it| it.parse().ok());
    if let Some(number @ 1..=12) = function {
        return Ok(Key::Named(NamedKey::Function(number)));
    }
    let named = NAMES.iter().find(|(it, _)| it.eq_ignore_ascii_case(name));
    named.map(|(_, key)| Key::Named(*key)).ok_or(Wrong::Unknown)
}

fn mouse(action: MouseAction, cell: &str) -> Result<Key, String> {
    let number = |it: &str| it.trim().parse::<u16>().ok()?.checked_sub(1);
    let at = cell.split_once(',').and_then(|(row, column)| Some((number(row)?, number(column)?)));
    let (row, column) =
        at.ok_or_else(|| "row and column of the cell are numbers from 1: Click@3,10".to_owned())?;
    Ok(Key::Mouse { action, row, column })
}

/// What may be meant by an unknown name.
fn unknown(written: &str, name: &str) -> String {
    let held = &written[..written.len() - name.len()];
    let functions = (1..=12).map(|number| format!("F{number}"));
    let mouse = MOUSE.iter().map(|(it, _)| format!("{it}@1,1"));
    let names = NAMES.iter().map(|(it, _)| (*it).to_owned()).chain(functions).chain(mouse);
    let alike =
        |it: &String| strsim::jaro_winkler(&it.to_ascii_lowercase(), &name.to_ascii_lowercase());
    let nearest = names.max_by(|one, other| alike(one).total_cmp(&alike(other)));
    let meant = match nearest.filter(|it| alike(it) >= ALIKE) {
        Some(nearest) => format!(": do you mean {held}{nearest}?"),
        None => ":".to_owned(),
    };
    format!(
        "there is no key {written:?}{meant} A text is written in quotes, as in {:?}; keys are named \
         Enter, Escape, Tab, Backspace, Up, Down, Left, Right, Home, End, PageUp, PageDown, Insert, \
         Delete, F1 to F12, or by their character",
        format!("'{written}'")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_in_many_ways() {
        for (written, shown) in [
            ("Enter", "Enter"),
            ("return", "Enter"),
            ("\r", "Enter"),
            ("Esc", "Escape"),
            ("C-c", "C-c"),
            ("Ctrl+c", "C-c"),
            ("M-x", "M-x"),
            ("C-M-a", "C-M-a"),
            ("Alt-F4", "M-F4"),
            ("S-Tab", "S-Tab"),
            ("C--", "C--"),
            ("-", "-"),
            ("S", "S"),
            ("F12", "F12"),
            ("f", "f"),
            ("pgdn", "PageDown"),
            ("'", "'"),
            ("\"it's\"", "\"it's\""),
            ("'F5'", "\"F5\""),
            ("Click@3,10", "LeftClick@3,10"),
            ("C-scrollup@1, 1", "C-ScrollUp@1,1"),
        ] {
            assert_eq!(parse(written).map(|it| it.to_string()).as_deref(), Ok(shown), "{written}");
        }
    }

    #[test]
    fn what_is_no_key_is_told_with_what_is_meant() {
        for (written, expected) in [
            ("", "a key is empty"),
            ("''", "a key is empty"),
            ("Entr", "do you mean Enter?"),
            ("C-Pageup2", "do you mean C-PageUp?"),
            ("F13", "do you mean F1?"),
            (":wq", "A text is written in quotes, as in \"':wq'\""),
            ("Clik@2,2", "do you mean Click@1,1?"),
            ("Click@0,4", "numbers from 1"),
            ("Click@4", "numbers from 1"),
            ("C-'ab'", "hold each key by itself"),
            ("\u{7}", "there is no key \"\\u{7}\""),
        ] {
            let error = parse(written).unwrap_err();
            assert!(error.contains(expected), "{written:?}: {error}");
        }
    }
}
