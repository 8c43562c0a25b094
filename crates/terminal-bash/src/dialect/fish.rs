//! The hooks of fish, 3.2 or newer.

use super::{Nonce, PROMPT};

/// The line that installs the hooks.
///
/// - They are handlers of fish's own events, beside those of the user. The prompt's function is
///   defined again before every prompt.
/// - fish has no prompt for the rest of an unfinished command: its editor takes further lines. So
///   the prompts are numbered, and a line that leads to neither a command nor a new prompt is
///   unfinished.
/// - A line that cannot be parsed stays in fish's editor; it is cancelled, and marked as a command
///   that failed with fish's status for such a line.
/// - A key that no keyboard has inserts a tab, which by itself asks for completion.
/// - Suggestions are switched off: they look like typed text.
pub(super) fn install(nonce: &Nonce) -> String {
    let (nonce, insert) = (&nonce.0, "'commandline -i \\t'");
    format!(
        " set -g __dsh_nonce {nonce}; set -g __dsh_prompts 0; set -g fish_autosuggestion_enabled 0; \
         function __dsh_start --on-event fish_preexec; \
         printf '\\e]133;C;dsh=%s\\a' $__dsh_nonce >/dev/tty; end; \
         function __dsh_next --on-event fish_prompt; set -g __dsh_status $status; \
         set -g __dsh_prompts (math $__dsh_prompts + 1); \
         function fish_right_prompt; end; function fish_prompt; \
         printf '{PROMPT}\\e]133;B;%s;%s;dsh=%s\\a' $__dsh_status $__dsh_prompts $__dsh_nonce; end; end; \
         function __dsh_unparsed --on-event fish_posterror; __dsh_start; \
         set -g __dsh_prompts (math $__dsh_prompts + 1); set -g __dsh_status 127; \
         commandline -f cancel-commandline; end; function fish_title; end; \
         bind \\e\\[133~ {insert}; bind -M insert \\e\\[133~ {insert}; \
         builtin history clear-session 2>/dev/null"
    )
}
