"""Drives `dsh mcp` with the official Python MCP SDK, through one whole session.

usage: client.py DSH_BINARY [--structured] [--http]

Prints what each call answered; any surprise is an exception and a non-zero exit status.
"""

import asyncio
import contextlib
import os
import pathlib
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client import streamable_http
from mcp.client.stdio import stdio_client

TOOLS = [
    "job_kill",
    "job_list",
    "job_output",
    "terminal_close",
    "terminal_keys",
    "terminal_lines",
    "terminal_list",
    "terminal_open",
    "terminal_read",
    "terminal_resize",
    "terminal_screen",
    "terminal_search",
    "terminal_send",
    "terminal_signal",
    "terminal_wait",
]


def attribute(value, *names):
    """The SDK's property names changed from camel case to snake case between its versions."""
    for name in names:
        if hasattr(value, name):
            return getattr(value, name)
    raise AttributeError(f"{type(value).__name__} has none of {names}")


def processes_of(marker):
    """Ids of living processes whose environment has this entry."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if marker.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


class Terminal:
    def __init__(self, session, structured):
        self.session = session
        self.structured = structured

    async def call(self, tool, error=False, **arguments):
        return (await self.blocks(tool, error, **arguments))[0]

    async def blocks(self, tool, error=False, progress=None, **arguments):
        """The texts of a result: its own, and the notices that came with it."""
        result = await self.session.call_tool(tool, arguments, progress_callback=progress)
        texts = [block.text for block in result.content]
        text = "\n".join(texts)
        print(f"--- {tool} {arguments}\n{text}")
        assert attribute(result, "is_error", "isError") == error, text
        value = attribute(result, "structured_content", "structuredContent")
        assert (value is not None) == (self.structured and not error), value
        return texts

    async def send(self, text, *expected, **arguments):
        shown = await self.call("terminal_send", sessionId="pty-1", text=text, **arguments)
        for part in expected:
            assert part in shown, f"{part!r} is not in {shown!r}"
        return shown


async def until(holds, what):
    """The world says when: nothing announces it to a client."""
    for _ in range(2000):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError(f"hangs: {what}")


def runs(marker, command):
    return any(command_of(pid) == command for pid in processes_of(marker))


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return None


async def kill_deaf(terminal, marker):
    """A program that ignores the interrupt is not reported as killed while it runs."""
    deaf = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('deaf'); time.sleep(100)"
    started = await terminal.send(f'python3 -uc "{deaf}"', run_in_background=True)
    assert started == "started background job pty-send-3", started
    shown = ""
    while not re.search("^deaf$", shown, re.MULTILINE):
        shown += await terminal.call("job_output", job_id="pty-send-3", wait=True, timeout_ms=20)
        assert shown.endswith("[status: running]"), shown
        shown += "\n"
    [pid] = [pid for pid in processes_of(marker) if command_of(pid) == "python3"]
    killed = await terminal.call("job_kill", job_id="pty-send-3")
    assert killed == "requested cancellation of job pty-send-3", killed
    shown = await terminal.call("job_output", job_id="pty-send-3", wait=True, timeout_ms=500)
    stopping = f"[stopping: python3 (pid {pid}) still runs; terminal_signal SIGTERM or SIGKILL is stronger]"
    assert shown.endswith(f"{stopping}\n[status: stopping]"), shown
    assert command_of(pid) == "python3"
    await terminal.call("terminal_signal", sessionId="pty-1", signal="SIGKILL")
    shown = await terminal.call("job_output", job_id="pty-send-3", wait=True)
    assert shown.endswith("\n[exit: 137]\n[status: killed, wait: stdin_read]"), shown
    assert not runs(marker, "python3")


async def drive_jobs(terminal, marker):
    """Background sends: read as they go, ended, and told of."""
    assert await terminal.call("job_list") == "(no background jobs)"
    text = "echo one; sleep 2; echo two; (exit 4)"
    started = await terminal.send(text, run_in_background=True)
    assert started == "started background job pty-send-1", started
    await until(lambda: runs(marker, "sleep"), "the first command")
    shown = await terminal.call("job_output", job_id="pty-send-1")
    assert shown == f"{text}\none\n[status: running]", shown
    shown = await terminal.call("job_output", job_id="pty-send-1", wait=True)
    assert shown == "two\ndsh> \n[exit: 4]\n[status: completed, wait: stdin_read]", shown
    # Ended by a real interrupt, and the session goes on.
    await terminal.send("sleep 100", run_in_background=True)
    await until(lambda: runs(marker, "sleep"), "the second command")
    listed = await terminal.call("job_list")
    assert "pty-send-2 [pty-send] running — pty-1: sleep 100" in listed, listed
    killed = await terminal.call("job_kill", job_id="pty-send-2", reason="enough")
    assert killed == "requested cancellation of job pty-send-2", killed
    shown = await terminal.call("job_output", job_id="pty-send-2", wait=True)
    assert shown.endswith("\n[exit: 130]\n[status: killed, wait: stdin_read]"), shown
    assert not runs(marker, "sleep")
    killed = await terminal.call("job_kill", job_id="pty-send-2")
    assert killed == "job pty-send-2 had already finished [status: killed, wait: stdin_read]", killed
    await terminal.send("echo usable", "\nusable\n", "[exit: 0]")
    await kill_deaf(terminal, marker)
    # Nobody asks for the end of the last: it comes with the next result.
    quick = {"sessionId": "pty-1", "text": "true", "run_in_background": True}
    own, *notices = await terminal.blocks("terminal_send", **quick)
    assert own == "started background job pty-send-4", own
    while not notices:
        own, *notices = await terminal.blocks("terminal_list")
        assert own.startswith("pty-1 (main) [shell] running"), own
    [notice] = notices
    assert notice.startswith("background job pty-send-4 (pty-send: pty-1: true) finished "), notice
    assert notice.endswith("[status: completed, wait: stdin_read]. Read its output with job_output."), notice
    assert len(await terminal.blocks("job_output", job_id="pty-send-4")) == 1
    unknown = await terminal.call("job_output", error=True, job_id="pty-send-9")
    assert unknown.startswith("Error: unknown job pty-send-9"), unknown
    # New output of a send that waits.
    progress = []

    async def heard(_progress, _total, message):
        progress.append(message)

    waiting = "echo first; sleep 1; echo second; sleep 1"
    await terminal.blocks("terminal_send", progress=heard, sessionId="pty-1", text=waiting)
    told = "".join(progress)
    assert "first\n" in told and "\nsecond" in told and told.count("second\n") == 1, progress
    assert len(progress) >= 2, progress


async def drive(session, structured):
    initialized = await session.initialize()
    assert "terminal session" in initialized.instructions, initialized.instructions
    tools = (await session.list_tools()).tools
    assert [tool.name for tool in tools] == TOOLS, tools
    for tool in tools:
        assert attribute(tool, "input_schema", "inputSchema")["type"] == "object"
        schema = attribute(tool, "output_schema", "outputSchema")
        assert (schema is not None) == structured
        assert schema is None or schema["type"] == "object", schema

    terminal = Terminal(session, structured)
    opened = await terminal.call("terminal_open", type="shell", name="main")
    assert opened.startswith("started terminal session pty-1 (main) [type: shell]\ndsh> "), opened
    # What one call leaves, the next one finds.
    await terminal.send("cd /tmp; export GREETING=hello", "[exit: 0]", "[wait: stdin_read]")
    await terminal.send('echo "$PWD $GREETING"', "\n/tmp hello\n", "[exit: 0]")
    await terminal.send("(exit 3)", "[exit: 3]", "[session: running]")
    marker = re.search(r"DSH_SESSION_ID=\S+", await terminal.send("env | grep ^DSH_SESSION_ID")).group()
    await drive_jobs(terminal, marker)
    # A program that asks.
    await terminal.send("python3 -q", ">>> ", "[state: waiting for input (python3", "[wait: stdin_read]")
    await terminal.send("print(2+2)", "\n4\n>>> ", "[wait: stdin_read]")
    await terminal.send("exit()", "[exit: 0]")
    # A program that has to be stopped while its send waits.
    sleeping = asyncio.create_task(terminal.send("sleep 100", "[exit: 130]", "[wait: stdin_read]"))
    # The kernel says when it runs: the signal must not come before.
    while not any(
        pathlib.Path(f"/proc/{pid}/comm").read_text() == "sleep\n" for pid in processes_of(marker)
    ):
        await asyncio.sleep(0.01)
    await terminal.call("terminal_signal", sessionId="pty-1", signal="SIGINT")
    await sleeping
    # Pages of what was shown.
    await terminal.send("seq 1 50", "\n50\n")
    page = await terminal.call("terminal_read", sessionId="pty-1", offset=1, count=2)
    assert page.startswith("49\n50\n[lines: 1-3 of "), page
    # Mistakes are answers.
    unknown = await terminal.call("terminal_read", error=True, sessionId="pty-99")
    assert unknown == "Error: unknown terminal session pty-99", unknown
    await terminal.call("terminal_read", error=True, sessionId="pty-1", offset=-1)
    await terminal.call("terminal_open", error=True)
    await terminal.call("terminal_close", sessionId="pty-1")
    assert await terminal.call("terminal_list") == "(no terminal sessions)"
    # What the end of the connection has to end.
    await terminal.call("terminal_open", type="shell")
    await terminal.call("terminal_send", sessionId="pty-2", text="setsid sleep 987 & nohup sleep 986 &")
    # A process that is just being started has no environment to be found by.
    for _ in range(500):
        if len(processes_of(marker)) >= 3:
            break
        await asyncio.sleep(0.01)
    else:
        raise AssertionError(f"not everything runs: {processes_of(marker)}")
    return marker


def over_stdio(binary, flags):
    return stdio_client(StdioServerParameters(command=binary, args=["mcp", *flags], env=dict(os.environ)))


@contextlib.asynccontextmanager
async def over_http(binary, flags):
    arguments = ["mcp", "--listen", "127.0.0.1:0", *flags]
    server = await asyncio.create_subprocess_exec(binary, *arguments, stderr=asyncio.subprocess.PIPE)
    try:
        url = (await server.stderr.readline()).decode().strip()
        name, value = (await server.stderr.readline()).decode().strip().split(": ")
        if hasattr(streamable_http, "streamablehttp_client"):
            client = streamable_http.streamablehttp_client(url, headers={name: value})
        else:
            import httpx2

            http = httpx2.AsyncClient(headers={name: value}, timeout=httpx2.Timeout(30, read=300))
            client = streamable_http.streamable_http_client(url, http_client=http)
        async with client as (read, write, *_):
            yield read, write
    finally:
        server.terminate()
        await server.wait()


async def main():
    binary, structured = sys.argv[1], "--structured" in sys.argv
    connect = over_http if "--http" in sys.argv else over_stdio
    async with connect(binary, ["--structured"] * structured) as (read, write):
        async with ClientSession(read, write) as session:
            marker = await drive(session, structured)
    for _ in range(500):
        if not processes_of(marker):
            break
        await asyncio.sleep(0.01)
    assert processes_of(marker) == [], "the disconnect left processes"
    print("ok")


asyncio.run(main())
