//! The hooks of bash, 4.4 or newer.

use super::{Nonce, PROMPT};

/// The line that installs the hooks.
///
/// - It runs as a command, not from the environment: a `PROMPT_COMMAND` that runs before any
///   command leaves bash without `PIPESTATUS` for good.
/// - The status is expanded by the prompt itself, where bash has restored `$?`: whatever else runs
///   before the prompt cannot change it.
/// - Nothing of it is exported, not even under `set -a`, or by a virtual environment that exports
///   `PS1`. A `PS0` of the user's own is shown behind the mark.
/// - Both streams are closed around the hook: tracing (`set -x`) and what a `DEBUG` trap says of it
///   go nowhere. Neither `set -eu` nor a prompt that was made read-only can end the shell in it.
/// - bash writes its prompts to standard error. While that is not the terminal, the prompts carry
///   no marks, and the hook itself says on the terminal that there was one, without a status.
pub(super) fn install(nonce: &Nonce, far: bool) -> String {
    let mark = |body: &str| format!("\\e]133;{body};dsh={}\\a", nonce.0);
    let prompt = |text: &str, body: &str| format!("{text}\\[{}\\]", mark(body));
    let directory = if far { format!("\\[{}\\]", mark("P;${PWD@Q}")) } else { String::new() };
    let (start, primary) = (mark("C"), directory + &prompt(PROMPT, "B;$?;\\!"));
    let (continuation, unseen) = (prompt("> ", "B;k=s"), mark("B"));
    format!(
        " {{ __dsh_marks=('{start}' '{primary}' '{continuation}' '{unseen}'); \
         __dsh_prompt() {{ local -; set +aeu; export -n PROMPT_COMMAND PS0 PS1 PS2; \
         PS0=${{PS0#\"${{__dsh_marks[0]}}\"}}; if [[ -t 9 ]]; then \
         PS0=${{__dsh_marks[0]}}$PS0 PS1=${{__dsh_marks[1]}} PS2=${{__dsh_marks[2]}}; \
         else PS1='{PROMPT}' PS2='> '; printf \"${{__dsh_marks[3]}}\" >/dev/tty; fi; }}; \
         set +o histexpand; \
         __dsh_hook='{{ __dsh_prompt; }} 9>&2 >&- 2>&-'; \
         : \"${{PROMPT_COMMAND=}}\"; \
         if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] > 500)) && \
         [[ ${{PROMPT_COMMAND@a}} == *a* ]]; then PROMPT_COMMAND+=(\"$__dsh_hook\"); \
         else PROMPT_COMMAND=\"${{PROMPT_COMMAND:+$PROMPT_COMMAND; }}$__dsh_hook\"; fi; \
         unset __dsh_hook; HISTFILE=; history -c; }} 2>/dev/null"
    )
}
