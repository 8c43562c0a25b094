//! What the owner of a session is told of a person's doings.
//!
//! Guarantees: while a notice was not read, a later one takes its place and tells all, so there is at
//! most one of a session; what was typed unseen is told by its length alone, and is not kept; a notice
//! has a bounded length and says what it leaves out.

use agents::{Agent, Notice, Told};

use crate::backend::{SessionId, Signal};

/// Most bytes of text that one notice tells.
const MOST_TEXT: usize = 2_048;
/// Most things that one notice tells apart.
const MOST_DEEDS: usize = 32;

/// One thing that a person did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// Typed where the terminal shows it.
    Shown(String),
    /// So many bytes were typed where it does not.
    Hidden(usize),
    /// A signal was sent.
    Signal(Signal),
}

/// What a notice tells that may not have been read.
#[derive(Default)]
pub(crate) struct Telling {
    deeds: Vec<Deed>,
    /// Bytes that are not told one by one.
    more: usize,
    told: Told,
}

impl Telling {
    /// Tells the owner of one thing more.
    pub(crate) fn tell(&mut self, owner: &Agent, id: &SessionId, deed: Deed) {
        if !self.told.supersede() {
            *self = Self::default();
        }
        self.add(deed);
        self.told = Told::default();
        owner.inbox().push(Notice::new(self.text(id)).unless(self.told.clone()));
    }

    fn add(&mut self, deed: Deed) {
        let told: usize = self.deeds.iter().map(Deed::text_bytes).sum();
        if self.more > 0 || told + deed.text_bytes() > MOST_TEXT || self.deeds.len() == MOST_DEEDS {
            self.more += deed.bytes();
            return;
        }
        match (self.deeds.last_mut(), deed) {
            (Some(Deed::Shown(before)), Deed::Shown(text)) => before.push_str(&text),
            (Some(Deed::Hidden(before)), Deed::Hidden(bytes)) => *before += bytes,
            (_, deed) => self.deeds.push(deed),
        }
    }

    fn text(&self, id: &SessionId) -> String {
        match (self.deeds.as_slice(), self.more) {
            ([Deed::Hidden(bytes)], 0) => {
                return format!(
                    "[a person typed {} in {id} that the terminal does not show]",
                    of(*bytes)
                );
            }
            ([Deed::Signal(signal)], 0) => return format!("[a person sent {signal} to {id}]"),
            _ => {}
        }
        let mut parts: Vec<String> = self
            .deeds
            .iter()
            .map(|deed| match deed {
                // What a person's keyboard sends for Enter is a line end.
                Deed::Shown(text) => format!("{:?}", text.replace('\r', "\n")),
                Deed::Hidden(bytes) => format!("({} that the terminal does not show)", of(*bytes)),
                Deed::Signal(signal) => format!("({signal})"),
            })
            .collect();
        if self.more > 0 {
            parts.push(format!("(and {} more)", of(self.more)));
        }
        format!("[a person typed in {id}: {}]", parts.join(", "))
    }
}

impl Deed {
    fn bytes(&self) -> usize {
        match self {
            Self::Shown(text) => text.len(),
            Self::Hidden(bytes) => *bytes,
            // As the key for it.
            Self::Signal(_) => 1,
        }
    }

    fn text_bytes(&self) -> usize {
        match self {
            Self::Shown(text) => text.len(),
            Self::Hidden(_) | Self::Signal(_) => 0,
        }
    }
}

/// A number of bytes, in words.
fn of(bytes: usize) -> String {
    format!("{bytes} byte{}", if bytes == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(deeds: &[Deed]) -> String {
        let mut telling = Telling::default();
        for deed in deeds {
            telling.add(deed.clone());
        }
        telling.text(&SessionId("pty-1".to_owned()))
    }

    #[test]
    fn every_deed_is_told_in_order_and_what_is_hidden_by_its_length() {
        let shown = |text: &str| Deed::Shown(text.to_owned());
        for (deeds, text) in [
            (&[shown("yes\r")][..], r#"[a person typed in pty-1: "yes\n"]"#),
            (&[shown("y"), shown("es"), shown("\r")], r#"[a person typed in pty-1: "yes\n"]"#),
            (
                &[Deed::Hidden(8)],
                "[a person typed 8 bytes in pty-1 that the terminal does not show]",
            ),
            (
                &[Deed::Hidden(7), Deed::Hidden(1)],
                "[a person typed 8 bytes in pty-1 that the terminal does not show]",
            ),
            (
                &[
                    shown("su\r"),
                    Deed::Hidden(1),
                    Deed::Signal(Signal::Interrupt),
                    shown("\u{1b}[A"),
                ],
                r#"[a person typed in pty-1: "su\n", (1 byte that the terminal does not show), (SIGINT), "\u{1b}[A"]"#,
            ),
            (&[Deed::Signal(Signal::Kill)], "[a person sent SIGKILL to pty-1]"),
        ] {
            assert_eq!(told(deeds), text);
        }
    }

    #[test]
    fn a_notice_is_bounded_and_says_what_it_leaves_out() {
        let text = told(&vec![Deed::Shown("a".repeat(1_000)); 10]);
        assert!(text.ends_with("\", (and 8000 bytes more)]"), "{text}");
        let mut many = Vec::new();
        for _ in 0..100 {
            many.extend([Deed::Hidden(2), Deed::Shown("a".to_owned())]);
        }
        assert!(told(&many).len() < 2_000);
        assert!(told(&many).contains("more)"));
    }
}
