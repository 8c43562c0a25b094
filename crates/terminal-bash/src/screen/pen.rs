//! Colours and attributes that are set, as far as it matters whether there are any.

/// What `SGR` sequences have set and not taken back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pen {
    foreground: bool,
    background: bool,
    underline: bool,
    /// One bit for each of the attributes 1 to 9.
    effects: u16,
}

impl Pen {
    /// Foreground and background are exchanged.
    pub(super) fn reverse(self) -> bool {
        self.effects & (1 << 7) != 0
    }

    /// The sequence that sets the attributes, and no colour.
    pub(super) fn sequence(self) -> String {
        let set = (1..=9).filter(|code| self.effects & (1 << code) != 0);
        let codes: Vec<String> = std::iter::once(0).chain(set).map(|it| it.to_string()).collect();
        format!("\x1b[{}m", codes.join(";"))
    }

    /// Applies the parameters of a sequence, as they are written.
    pub(super) fn apply_text(&mut self, parameters: &[u8]) {
        // Nearly all that programs write.
        match parameters {
            [] | [b'0'] => *self = Self::default(),
            [effect @ b'1'..=b'9'] => self.effects |= 1 << (effect - b'0'),
            [b'3', b'0'..=b'7'] => self.foreground = true,
            [b'4', b'0'..=b'7'] => self.background = true,
            _ => self.apply(Written { rest: Some(parameters) }),
        }
    }

    /// Applies parameters: each with whether it has parts of its own.
    pub(super) fn apply(&mut self, parameters: impl IntoIterator<Item = (u16, bool)>) {
        let mut parameters = parameters.into_iter();
        while let Some((code, parts)) = parameters.next() {
            match code {
                0 => *self = Self::default(),
                1..=9 => self.effects |= 1 << code,
                21 => self.effects |= 1 << 4,
                22 => self.effects &= !(1 << 1 | 1 << 2),
                25 => self.effects &= !(1 << 5 | 1 << 6),
                23 | 24 | 27 | 28 | 29 => self.effects &= !(1 << (code - 20)),
                30..=38 | 90..=97 => self.foreground = true,
                39 => self.foreground = false,
                40..=48 | 100..=107 => self.background = true,
                49 => self.background = false,
                58 => self.underline = true,
                59 => self.underline = false,
                _ => {}
            }
            if matches!(code, 38 | 48 | 58) && !parts {
                // The colour is in the parameters behind it.
                let more = match parameters.next() {
                    Some((5, _)) => 1,
                    Some((2, _)) => 3,
                    _ => 0,
                };
                for _ in 0..more {
                    parameters.next();
                }
            }
        }
    }
}

/// The parameters of a text.
struct Written<'a> {
    rest: Option<&'a [u8]>,
}

impl Iterator for Written<'_> {
    type Item = (u16, bool);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.rest?;
        let (mut code, mut parts) = (0_u16, false);
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b';' => {
                    self.rest = Some(&text[at + 1..]);
                    return Some((code, parts));
                }
                b'0'..=b'9' if !parts => {
                    code = code.saturating_mul(10).saturating_add(u16::from(byte - b'0'));
                }
                _ => parts = true,
            }
        }
        self.rest = None;
        Some((code, parts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_back_is_not_set() {
        for (sequences, plain) in [
            (&["1"][..], false),
            (&["1", "22"], true),
            (&["7", "27"], true),
            (&["4:3", "24"], true),
            (&["31", "39"], true),
            (&["38;5;1"], false),
            // A colour's number is no attribute.
            (&["38;5;1", "39"], true),
            (&["48;2;1;4;7", "49"], true),
            (&["38:2::1:2:3", "39"], true),
            (&["1;31;7", ""], true),
            (&["1;31;7", "0"], true),
            (&["31;0;1", "22"], true),
            (&["58;5;9", "59"], true),
            (&["99999999"], true),
        ] {
            let mut pen = Pen::default();
            for sequence in sequences {
                pen.apply_text(sequence.as_bytes());
            }
            assert_eq!(pen == Pen::default(), plain, "{sequences:?}");
        }
    }
}
