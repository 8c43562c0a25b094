//! The line that moves while something is awaited.

use std::time::Duration;

use unicode_width::UnicodeWidthChar as _;

use super::visible;

const FRAMES: [char; 8] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧'];
/// How long a frame stands.
pub(crate) const FRAME: Duration = Duration::from_millis(120);

/// The line after `elapsed`, no wider than `width` columns.
pub(super) fn line(elapsed: Duration, what: &str, width: usize) -> String {
    let frame = elapsed.as_millis() / FRAME.as_millis() % FRAMES.len() as u128;
    let frame = usize::try_from(frame).unwrap_or(0);
    let text = format!("{} {} · {what}", FRAMES[frame], time(elapsed.as_secs()));
    // The last column stays free: a terminal may wrap behind it.
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    text.chars().map(|it| if it == '\t' { ' ' } else { visible(it) }).take_while(fits).collect()
}

fn time(seconds: u64) -> String {
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, seconds) => format!("{minutes} min {seconds:02} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shows_the_time_and_fits() {
        for (millis, what, width, shown) in [
            (0, "make", 80, "⠋ 0 s · make"),
            (1200, "make", 80, "⠹ 1 s · make"),
            (754_000, "make", 80, "⠸ 12 min 34 s · make"),
            (0, "a long line of output", 20, "⠋ 0 s · a long line"),
            (0, "一二三四", 14, "⠋ 0 s · 一二"),
            (0, "a\tb\u{1b}[2J", 80, "⠋ 0 s · a b\u{fffd}[2J"),
            (0, "x", 0, ""),
        ] {
            assert_eq!(line(Duration::from_millis(millis), what, width), shown);
        }
    }
}
