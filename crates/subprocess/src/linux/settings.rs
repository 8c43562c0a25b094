//! The settings of a terminal line that shells and their programs rely on, as they once were.

use std::os::fd::AsFd;

use rustix::{
    io::Result,
    termios::{InputModes, LocalModes, OutputModes, Termios, tcgetattr},
};

use crate::evidence::LineSetting;

/// The flags behind one setting.
struct Group {
    setting: LineSetting,
    input: InputModes,
    output: OutputModes,
    local: LocalModes,
}

const NONE: Group = Group {
    setting: LineSetting::Lines,
    input: InputModes::empty(),
    output: OutputModes::empty(),
    local: LocalModes::empty(),
};

const GROUPS: [Group; 5] = [
    Group { local: LocalModes::ICANON.union(LocalModes::IEXTEN), ..NONE },
    Group { setting: LineSetting::Echo, local: LocalModes::ECHO, ..NONE },
    Group { setting: LineSetting::Signals, local: LocalModes::ISIG, ..NONE },
    Group {
        setting: LineSetting::Enter,
        input: InputModes::ICRNL.union(InputModes::INLCR).union(InputModes::IGNCR),
        ..NONE
    },
    Group {
        setting: LineSetting::Output,
        output: OutputModes::OPOST.union(OutputModes::ONLCR),
        ..NONE
    },
];

/// What a line was set to.
pub(crate) struct Settings(Termios);

impl Settings {
    /// Those of a terminal now.
    pub(crate) fn of(terminal: impl AsFd) -> Result<Self> {
        tcgetattr(terminal).map(Self)
    }

    /// What is another in `termios`.
    pub(crate) fn changed(&self, termios: &Termios) -> Vec<LineSetting> {
        let changed = GROUPS.iter().filter(|it| it.of(termios) != it.of(&self.0));
        changed.map(|it| it.setting).collect()
    }

    /// Makes it the same in `termios` and leaves all else; what was another.
    pub(crate) fn restore(&self, termios: &mut Termios) -> Vec<LineSetting> {
        let changed = self.changed(termios);
        for group in GROUPS.iter().filter(|it| changed.contains(&it.setting)) {
            let (input, output, local) = group.of(&self.0);
            termios.input_modes = (termios.input_modes - group.input) | input;
            termios.output_modes = (termios.output_modes - group.output) | output;
            termios.local_modes = (termios.local_modes - group.local) | local;
        }
        changed
    }
}

impl Group {
    fn of(&self, termios: &Termios) -> (InputModes, OutputModes, LocalModes) {
        (
            termios.input_modes & self.input,
            termios.output_modes & self.output,
            termios.local_modes & self.local,
        )
    }
}
