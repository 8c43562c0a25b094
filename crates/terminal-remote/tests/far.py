"""Another machine, for tests: `serve SOCKET` runs what `connect [--stubborn] [--tty] SOCKET LINE` asks for.

The server forks for each connection and runs the line by `sh -c`, on a terminal of its own where one is
asked for, with an environment of its own. It hangs the terminal up when the connection ends. The client
exits with the status of the line, or with 255 when the connection ended before; a stubborn one does not
end, and ignores what it is told. `run PROGRAM ARGUMENTS` is a machine on which that program runs.
"""

import contextlib, ctypes, fcntl, json, os, pty, select, signal, socket, struct, sys, termios, tty


def serve(path):
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    adopt_orphans()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen(64)
    print("ready", flush=True)
    while True:
        connection, _ = server.accept()
        if os.fork() == 0:
            server.close()
            handle(connection)
        connection.close()


def adopt_orphans():
    """Orphans of this machine are not the test's: PR_SET_CHILD_SUBREAPER."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def start_clean():
    """What the test's own host ignores is nothing to a machine."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def be_machine_of(program, arguments):
    """A machine on which one program runs, such as a server of somebody else's."""
    adopt_orphans()
    child = os.fork()
    if child == 0:
        start_clean()
        os.execv(program, [program, *arguments])
    print(child, flush=True)
    while os.wait()[0] != child:
        pass
    # Whoever outlives it goes with its machine.
    with contextlib.suppress(ChildProcessError):
        while True:
            for orphan in open("/proc/thread-self/children").read().split():
                os.kill(int(orphan), signal.SIGKILL)
            os.wait()


def handle(connection):
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head = b""
    while not head.endswith(b"\n"):
        byte = connection.recv(1)
        if not byte:
            os._exit(1)
        head += byte
    asked = json.loads(head)
    env = {"PATH": os.environ["PATH"], "HOME": "/", "TERM": asked["term"]}
    if asked["tty"]:
        child, master = pty.fork()
    else:
        master, inner = os.pipe()
        child = os.fork()
    if child == 0:
        start_clean()
        if not asked["tty"]:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
            os.dup2(inner, 1)
            os.dup2(inner, 2)
        os.chdir("/")
        os.execvpe("sh", ["sh", "-c", asked["line"]], env)
    if asked["tty"]:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *asked["size"], 0, 0))
    else:
        os.close(inner)
    ended = None
    while True:
        if ended is None:
            pid, status = os.waitpid(child, os.WNOHANG)
            ended = os.waitstatus_to_exitcode(status) if pid else None
        ready = select.select([connection, master], [], [], 0.02)[0]
        if connection in ready:
            try:
                data = connection.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                os._exit(1)  # and with it the master: the terminal is hung up
            if asked["tty"]:
                os.write(master, data)
        if master in ready:
            try:
                data = os.read(master, 65536)
            except OSError:
                data = b""
            if data:
                connection.sendall(b"o" + struct.pack("!I", len(data)) + data)
                continue
            if ended is None:
                _, status = os.waitpid(child, 0)
                ended = os.waitstatus_to_exitcode(status)
        if ended is not None and connection not in ready:
            connection.sendall(b"x" + struct.pack("!I", ended if ended >= 0 else 128 - ended))
            os._exit(0)


def connect(path, on_tty, line):
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError as error:
        print(f"far: connect to {path}: {error.strerror}")
        return 255
    size = [24, 80]
    if on_tty:
        size = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))[:2]
    asked = {"tty": on_tty, "line": line, "term": os.environ["TERM"], "size": list(size)}
    connection.sendall(json.dumps(asked).encode() + b"\n")
    before = termios.tcgetattr(0) if on_tty else None
    if on_tty:
        tty.setraw(0)
    stubborn = "--stubborn" in sys.argv
    if stubborn:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        ended = relay(connection, on_tty)
        while stubborn:
            signal.pause()
        return ended
    finally:
        if on_tty:
            termios.tcsetattr(0, termios.TCSANOW, before)


def relay(connection, on_tty):
    inputs = [connection, 0] if on_tty else [connection]
    received = b""
    while True:
        ready = select.select(inputs, [], [])[0]
        if 0 in ready:
            data = os.read(0, 65536)
            if not data:
                return 0
            connection.sendall(data)
        if connection in ready:
            data = connection.recv(65536)
            if not data:
                os.write(1, b"far: connection closed\r\n")
                return 255
            received += data
            while len(received) >= 5:
                kind, number = received[:1], struct.unpack("!I", received[1:5])[0]
                if kind == b"x":
                    return number
                if len(received) < 5 + number:
                    break
                shown = received[5 : 5 + number]
                while shown:
                    shown = shown[os.write(1, shown) :]
                received = received[5 + number :]


if sys.argv[1] == "serve":
    serve(sys.argv[2])
elif sys.argv[1] == "run":
    be_machine_of(sys.argv[2], sys.argv[3:])
else:
    sys.exit(connect(sys.argv[-2], "--tty" in sys.argv, sys.argv[-1]))
