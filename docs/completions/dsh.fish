# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_dsh_global_optspecs
    string join \n h/help V/version
end

function __fish_dsh_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_dsh_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_dsh_using_subcommand
    set -l cmd (__fish_dsh_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c dsh -n "__fish_dsh_needs_command" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_needs_command" -s V -l version -d 'Print version'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "run" -d 'Run an agent in this terminal'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "mcp" -d 'Serve the tools to an MCP client over stdin and stdout, or to many over HTTP'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "web" -d 'Watch agents in a browser, and step in; serve the tools to MCP clients over HTTP'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "check" -d 'Say all that is wrong with a composition, and start nothing'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "replay" -d 'Play the recording of a session in this terminal'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "screenshot" -d 'Draw what a recording shows at one moment, as SVG'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "doctor" -d 'Say what this machine allows, what is chosen, and what would help'
complete -c dsh -n "__fish_dsh_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c dsh -n "__fish_dsh_using_subcommand run" -l resume -d 'Show a run of the past from its log, and run nothing' -r
complete -c dsh -n "__fish_dsh_using_subcommand run" -l record -d 'Record every terminal session in this folder, for `dsh replay`' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand run" -l base-url -d 'Where the model is: any OpenAI-compatible endpoint' -r
complete -c dsh -n "__fish_dsh_using_subcommand run" -l model -d 'Which model' -r
complete -c dsh -n "__fish_dsh_using_subcommand run" -l composition -d 'YAML list of plugin rows [default: the built-in compositions/terminal.yml]' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand run" -l patch -d 'Changes of the composition, after those of `$DSH_HOME/patch.yml`; may be given several times' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand run" -l sandbox -d 'What sessions may do: danger-full-access confines nothing and is the default, workspace-write lets them write to the current folder and temporary ones, read-only to nothing' -r -f -a "danger-full-access\t''
workspace-write\t''
read-only\t''"
complete -c dsh -n "__fish_dsh_using_subcommand run" -l agent-terminal-demo -d 'Show one interactive terminal session: a scripted model, real tools, a real shell'
complete -c dsh -n "__fish_dsh_using_subcommand run" -l json -d 'Print the events of the session log, one JSON object a line'
complete -c dsh -n "__fish_dsh_using_subcommand run" -l no-home-patch -d 'Leave `$DSH_HOME/patch.yml` out'
complete -c dsh -n "__fish_dsh_using_subcommand run" -l dump-config -d 'Print the composed rows as YAML, with defaults filled in, and start nothing'
complete -c dsh -n "__fish_dsh_using_subcommand run" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l tls-key -d 'The private key of the certificate, in PEM' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l composition -d 'YAML list of plugin rows [default: the built-in compositions/terminal.yml]' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l patch -d 'Changes of the composition, after those of `$DSH_HOME/patch.yml`; may be given several times' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l sandbox -d 'What sessions may do: danger-full-access confines nothing and is the default, workspace-write lets them write to the current folder and temporary ones, read-only to nothing' -r -f -a "danger-full-access\t''
workspace-write\t''
read-only\t''"
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l listen -d 'Serve over HTTP here, at /mcp, and not on stdin and stdout; port 0 is a free one. Addresses that others can reach want TLS' -r
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l token-file -d 'A file with the token in one line [default: a new token, printed]' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l tls-cert -d 'Speak TLS, with this certificate in PEM' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l no-home-patch -d 'Leave `$DSH_HOME/patch.yml` out'
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l dump-config -d 'Print the composed rows as YAML, with defaults filled in, and start nothing'
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l structured -d 'Send outputSchema and structuredContent too (many clients then hide the text)'
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -l insecure-listen -d 'Listen where others can reach it, also without TLS: who listens in can read the token then'
complete -c dsh -n "__fish_dsh_using_subcommand mcp" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand web" -l listen -d 'Where to listen; port 0 is a free one. Addresses that others can reach want TLS' -r
complete -c dsh -n "__fish_dsh_using_subcommand web" -l token-file -d 'A file with the token in one line [default: a new token, printed]' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand web" -l tls-cert -d 'Speak TLS, with this certificate in PEM' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand web" -l tls-key -d 'The private key of the certificate, in PEM' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand web" -l composition -d 'YAML list of plugin rows [default: the built-in compositions/terminal.yml]' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand web" -l patch -d 'Changes of the composition, after those of `$DSH_HOME/patch.yml`; may be given several times' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand web" -l sandbox -d 'What sessions may do: danger-full-access confines nothing and is the default, workspace-write lets them write to the current folder and temporary ones, read-only to nothing' -r -f -a "danger-full-access\t''
workspace-write\t''
read-only\t''"
complete -c dsh -n "__fish_dsh_using_subcommand web" -l insecure-listen -d 'Listen where others can reach it, also without TLS: who listens in can read the token then'
complete -c dsh -n "__fish_dsh_using_subcommand web" -l no-home-patch -d 'Leave `$DSH_HOME/patch.yml` out'
complete -c dsh -n "__fish_dsh_using_subcommand web" -l dump-config -d 'Print the composed rows as YAML, with defaults filled in, and start nothing'
complete -c dsh -n "__fish_dsh_using_subcommand web" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand check" -l patch -d 'Changes of the composition, after those of `$DSH_HOME/patch.yml`; may be given several times' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand check" -l no-home-patch -d 'Leave `$DSH_HOME/patch.yml` out'
complete -c dsh -n "__fish_dsh_using_subcommand check" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand replay" -l speed -d 'How often as fast as it was' -r
complete -c dsh -n "__fish_dsh_using_subcommand replay" -l max-idle -d 'Longest pause' -r
complete -c dsh -n "__fish_dsh_using_subcommand replay" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand screenshot" -l at -d 'The moment, counted from the beginning [default: the end]' -r
complete -c dsh -n "__fish_dsh_using_subcommand screenshot" -l output -d 'Where to write the picture [default: standard output]' -r -F
complete -c dsh -n "__fish_dsh_using_subcommand screenshot" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand doctor" -l json -d 'Print one JSON object instead of lines'
complete -c dsh -n "__fish_dsh_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "run" -d 'Run an agent in this terminal'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "mcp" -d 'Serve the tools to an MCP client over stdin and stdout, or to many over HTTP'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "web" -d 'Watch agents in a browser, and step in; serve the tools to MCP clients over HTTP'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "check" -d 'Say all that is wrong with a composition, and start nothing'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "replay" -d 'Play the recording of a session in this terminal'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "screenshot" -d 'Draw what a recording shows at one moment, as SVG'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "doctor" -d 'Say what this machine allows, what is chosen, and what would help'
complete -c dsh -n "__fish_dsh_using_subcommand help; and not __fish_seen_subcommand_from run mcp web check replay screenshot doctor help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
