//! The hooks of zsh, 5.0 or newer.

use super::{Nonce, PROMPT};

/// The line that installs the hooks.
///
/// - `precmd` sets the prompts, `preexec` marks the start of a command, on the terminal itself:
///   standard output may be elsewhere. Functions of the user run beside them.
/// - The status is expanded by the prompt itself, where zsh has restored it.
/// - Within the hooks the user's options are put aside, so that none of them (`errexit`, `nounset`,
///   `allexport`, `ksharrays`) changes what they do; their streams are closed. Nothing is exported.
/// - The line editor's ornaments are switched off: a mark for output without a newline, prompts on
///   the right, history expansion.
pub(super) fn install(nonce: &Nonce) -> String {
    let mark = |body: &str| format!("\\e]133;{body};dsh={}\\a", nonce.0);
    let prompt = |text: &str, body: &str| format!("$'{text}%{{{}%}}'", mark(body));
    let (primary, continuation) = (prompt(PROMPT, "B;%?;%h"), prompt("> ", "B;k=s"));
    let start = mark("C");
    format!(
        " {{ __dsh_marks=($'{start}' {primary} {continuation}); \
         __dsh_prompt() {{ emulate -L zsh; typeset -g +x PS1=$__dsh_marks[2] \
         PS2=$__dsh_marks[3] RPS1= RPS2=; }} >&- 2>&-; \
         __dsh_start() {{ emulate -L zsh; print -n -- $__dsh_marks[1] >/dev/tty; }} >&- 2>&-; \
         setopt no_bang_hist no_prompt_cr no_prompt_sp prompt_percent; \
         precmd_functions+=(__dsh_prompt); preexec_functions+=(__dsh_start); \
         HISTFILE=; fc -p; export HISTFILE=; }} 2>/dev/null"
    )
}
