"""Drives full-screen programs through `dsh mcp` with the official Python MCP SDK.

usage: screen.py DSH_BINARY

Nothing here waits for a time: each call returns when the program has acted. Any surprise is an
exception and a non-zero exit status.
"""

import asyncio
import os
import pathlib
import re
import subprocess
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

FORM = """
import curses

def form(screen):
    fields, at = ["", ""], 0
    while True:
        for row, (name, text) in enumerate(zip(("name", "city"), fields)):
            screen.addstr(row, 0, f"{name}: {text} ", curses.A_REVERSE if row == at else 0)
        screen.move(at, 6 + len(fields[at]))
        key = screen.get_wch()
        if key == "\\n":
            return fields
        if key == curses.KEY_DOWN:
            at = 1
        elif key == curses.KEY_UP:
            at = 0
        elif key == curses.KEY_BACKSPACE:
            fields[at] = fields[at][:-1]
        elif isinstance(key, str):
            fields[at] += key

print(*curses.wrapper(form), file=open("form.txt", "w"))
"""


# One program for both: the backend's own tests drive it without a client.
MENU = pathlib.Path(__file__).parents[3] / "terminal-bash/tests/cases/victims/menu.py"


class Terminal:
    def __init__(self, session):
        self.session = session
        self.id = None

    async def call(self, tool, error=False, **arguments):
        if tool != "terminal_open":
            arguments = {"sessionId": self.id, **arguments}
        result = await self.session.call_tool(tool, arguments)
        text = "\n".join(block.text for block in result.content)
        print(f"--- {tool} {arguments}\n{text}")
        failed = result.is_error if hasattr(result, "is_error") else result.isError
        assert failed == error, text
        return text

    async def expect(self, tool, *expected, **arguments):
        text = await self.call(tool, **arguments)
        for part in expected:
            assert part in text, f"{part!r} is not in {text!r}"
        return text

    async def open(self):
        opened = await self.call("terminal_open", type="screen")
        self.id = re.match(r"started terminal session (\S+)", opened).group(1)

    async def send(self, text, *expected):
        return await self.expect("terminal_send", *expected, text=text)

    async def keys(self, *keys, expect=()):
        return await self.expect("terminal_keys", *expect, keys=list(keys))

    async def screen(self, *expected):
        return await self.expect("terminal_screen", *expected)

    async def seen(self, pattern):
        """Waits until the screen shows it."""
        until = {"screen": pattern}
        await self.expect("terminal_wait", "[waited: screen matched", until=until, timeoutMs=20000)


def text(name):
    return pathlib.Path(name).read_text()


async def vim(terminal):
    pathlib.Path("poem.txt").write_text("one\ntwo\nthree\n")
    shown = await terminal.send("vim -u NONE -i NONE poem.txt", "[state: full screen (vim)")
    assert shown.startswith("[full screen (vim): what follows is its screen"), shown
    assert "\none\ntwo\nthree\n~" in shown, shown
    changed = await terminal.keys("j", "c", "w", "'2nd line'", "Escape", expect=["2nd line"])
    assert "  1|one" not in changed, "only what changed"
    await terminal.keys("'dd'", "G", "o", "'last'", "Escape", expect=["last"])
    await terminal.keys("':wq'", "Enter", expect=["[exit: 0]"])
    assert text("poem.txt") == "one\nthree\nlast\n", text("poem.txt")


async def less(terminal):
    await terminal.send("seq 1000 | less", "[state: full screen (less)")
    await terminal.keys("'/777'", "Enter", expect=["  1|777"])
    shown = await terminal.screen("  1|777", "[reverse: row 1, column 1: 777]")
    hash = re.search(r"hash ([0-9a-f]{16})", shown).group(1)
    await terminal.expect("terminal_screen", "(no row has changed)", sinceHash=hash)
    await terminal.keys("Down")
    await terminal.expect("terminal_screen", "only changed rows", "  1|778", sinceHash=hash)
    await terminal.keys("q", expect=["dsh> ", "[exit: 0]"])


async def git(terminal):
    for command in ["init -q .", "config user.name me", "config user.email me@example.com"]:
        subprocess.run(["git", *command.split()], check=True)
    pathlib.Path("a.txt").write_text("1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    subprocess.run(["git", "add", "a.txt"], check=True)
    await terminal.send("GIT_EDITOR='vim -u NONE -i NONE' git commit", "[state: full screen (vim)")
    await terminal.keys("i", "'The first one'", "Escape", "':wq'", "Enter", expect=["[exit: 0]"])
    subject = subprocess.run(["git", "log", "--format=%s"], capture_output=True, text=True).stdout
    assert subject == "The first one\n", subject
    pathlib.Path("a.txt").write_text("1st\n2\n3\n4\n5\n6\n7\n8\n9th\n")
    await terminal.send("git add -p a.txt", "Stage this hunk")
    await terminal.keys("n", "Enter", expect=["+9th"])
    await terminal.keys("y", "Enter", expect=["[exit: 0]"])
    staged = subprocess.run(["git", "diff", "--cached"], capture_output=True, text=True).stdout
    assert "+9th" in staged and "+1st" not in staged, staged


async def top(terminal):
    await terminal.send("top -d 100", "load average")
    await terminal.keys("M")
    shown = await terminal.screen("%MEM")
    rows = re.findall(r"^ +\d+\|(.*)$", shown, re.MULTILINE)
    [head] = [at for at, row in enumerate(rows) if "%MEM" in row]
    column = rows[head].split().index("%MEM")
    shares = [float(row.split()[column]) for row in rows[head + 1 :] if row.strip()]
    assert len(shares) > 2 and shares == sorted(shares, reverse=True), shares
    await terminal.keys("q", expect=["[exit: 0]"])


async def htop(terminal):
    await terminal.send("htop -d 100", "[state: full screen (htop)")
    await terminal.keys("F1")
    await terminal.seen("press any key to return|Press any key to return")
    await terminal.keys("x")
    await terminal.keys("q", expect=["[exit: 0]"])


async def fzf(terminal):
    await terminal.send("printf '%s\\n' apple banana cherry | fzf > picked.txt", "[state: full screen (fzf)")
    await terminal.seen("3/3")
    await terminal.keys("Up", "Up")
    await terminal.seen("[>▌] cherry")
    await terminal.keys("Enter", expect=["[exit: 0]"])
    assert text("picked.txt") == "cherry\n", text("picked.txt")
    await terminal.send("printf '%s\\n' apple banana cherry | fzf --height=6 --color=bw > picked.txt")
    await terminal.seen("3/3")
    await terminal.keys("Up")
    await terminal.seen("> banana")
    await terminal.screen("[screen: main screen", ": banana]")
    await terminal.keys("Enter", expect=["[exit: 0]"])
    assert text("picked.txt") == "banana\n", text("picked.txt")


async def menu(terminal):
    pathlib.Path("menu.py").write_text(MENU.read_text())
    await terminal.send("python3 menu.py", "[state: waiting for input (python3)]")
    await terminal.screen("[screen: main screen", "column 1: > apple]")
    await terminal.keys("Down", expect=["> banana\n", "column 1: > banana]"])
    await terminal.keys("Enter", expect=["picked banana", "[exit: 0]"])


async def nano(terminal):
    await terminal.send("nano note.txt", "[state: full screen (nano)")
    await terminal.keys("'remember the milk'", expect=["remember the milk"])
    await terminal.keys("C-o", expect=["note.txt"])
    await terminal.keys("Enter", "C-x", expect=["[exit: 0]"])
    assert text("note.txt") == "remember the milk\n", text("note.txt")


async def tmux(terminal):
    await terminal.send("tmux -L dsh-test -f /dev/null new-session 'PS1=inner\\>\\  bash --norc'")
    await terminal.seen("inner>")
    await terminal.keys("'echo $((6 * 7)) > inside.txt; tmux wait-for -S written'", "Enter")
    subprocess.run(["tmux", "-L", "dsh-test", "wait-for", "written"], check=True)
    await terminal.keys("C-b", "%")
    await terminal.seen("│")
    # Whether tmux itself is done nobody can see: only the terminals in it can be looked at.
    await terminal.keys("C-b", "':'")
    await terminal.seen("^:$")
    await terminal.keys("'kill-server'", "Enter")
    await terminal.expect("terminal_wait", "[waited: the shell is at its prompt]", until={"prompt": True})
    assert text("inside.txt") == "42\n", text("inside.txt")


async def curses(terminal):
    pathlib.Path("form.py").write_text(FORM)
    await terminal.send("python3 form.py", "[state: full screen (python3")
    await terminal.keys("'Adaa'", "Backspace", "Down", "'London'")
    await terminal.screen("  1|name: Ada", "  2|city: London", "[reverse: row 2, column 1: city: London]")
    await terminal.keys("Enter", expect=["[exit: 0]"])
    assert text("form.txt") == "Ada London\n", text("form.txt")


async def python(terminal):
    # Since 3.13 Python has a line editor of its own.
    for program in ["python3", os.environ.get("PYTHON_3_13", "python3")]:
        await terminal.send(f"{program} -q", ">>> ")
        await terminal.keys("'6 * 7'", "Enter", expect=["\n42\n"])
        await terminal.keys("Up", "Enter", expect=["\n42\n"])
        await terminal.keys("C-d", expect=["[exit: 0]"])


async def sizes(terminal):
    await terminal.send("vim -u NONE -i NONE", "[state: full screen (vim)")
    await terminal.expect("terminal_resize", "12 rows, 60 columns", "\n 11|~\n", rows=12, cols=60)
    await terminal.keys("':q!'", "Enter", expect=["[exit: 0]"])
    await terminal.send("stty size", "\n12 60\n")
    for rows, cols in [(0, 80), (24, 10_000)]:
        refused = await terminal.call("terminal_resize", error=True, rows=rows, cols=cols)
        assert refused.startswith("Error: a terminal cannot have"), refused


async def waits(terminal):
    # One for each read: a second read could see the end that the first writer leaves.
    os.mkfifo("first")
    os.mkfifo("second")
    text = "read x < first; echo READY; read x < second"
    await terminal.expect("terminal_send", "started background job", text=text, run_in_background=True)
    waiting = asyncio.create_task(terminal.call("terminal_wait", until={"output": "READY"}))
    await asyncio.to_thread(pathlib.Path("first").write_text, "\n")
    assert "[waited: output matched: READY]" in await waiting
    # The exit is the background send's to tell, should it end before the wait begins.
    prompt = asyncio.create_task(terminal.call("terminal_wait", until={"prompt": True}))
    await asyncio.to_thread(pathlib.Path("second").write_text, "\n")
    assert "[waited: the shell is at its prompt]" in await prompt
    await terminal.send("seq 1 5000 | sed 's/$/ line/'")
    found = await terminal.expect("terminal_search", "|2500 line", pattern="^2500 ")
    number = int(re.search(r"(\d+)\|2500 line", found).group(1))
    await terminal.expect("terminal_lines", f"{number}|2500 line", f"{number + 1}|2501 line", fromLine=number, count=2)
    for arguments, expected in [
        ({"tool": "terminal_keys", "keys": ["Entr"]}, "do you mean Enter?"),
        ({"tool": "terminal_wait", "until": {"output": "("}}, "unclosed group"),
        ({"tool": "terminal_wait", "until": {}}, "names nothing to wait for"),
        ({"tool": "terminal_search", "pattern": "("}, "unclosed group"),
    ]:
        refused = await terminal.call(error=True, **arguments)
        assert expected in refused, refused
    ended = asyncio.create_task(terminal.call("terminal_wait", until={"output": "never"}))
    await terminal.send("exit 7", "[session: exited code=7")
    assert "[session: exited code=7" in await ended


async def main():
    os.environ["TERM"] = "xterm-256color"
    server = StdioServerParameters(command=sys.argv[1], args=["mcp"], env=dict(os.environ))
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            terminal = Terminal(session)
            await terminal.open()
            for part in [vim, less, git, top, htop, fzf, menu, nano, tmux, curses, python, sizes]:
                print(f"=== {part.__name__}")
                await part(terminal)
            await waits(terminal)
    print("ok")


asyncio.run(main())
