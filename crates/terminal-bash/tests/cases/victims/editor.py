"""A line editor of the kind that edits blocks: bracketed paste, a pulse, and indentation of its own.

Enter runs the buffer when it is one line that is complete, or ends with a blank line; else it goes
on in a new line that is indented like the last one. What is pasted is taken as it is. Every paste,
and every key between pastes, is recorded in the file that is named as the first argument.
"""
import ast, os, select, sys, termios, tty

record = open(sys.argv[1], "w")
saved = termios.tcgetattr(0)


def write(text):
    os.write(1, text.encode())


def complete(buffer):
    if buffer.endswith("\n") and not buffer.splitlines()[-1].strip():
        return True
    try:
        tree = ast.parse(buffer)
    except SyntaxError:
        return False
    return "\n" not in buffer and not any(hasattr(it, "body") for it in tree.body)


def edit():
    tty.setraw(0)
    write("\x1b[?2004h>>> ")
    buffer, taken = "", b""
    while True:
        while not select.select([0], [], [], 0.1)[0]:
            pass
        taken += os.read(0, 4096)
        while taken:
            if taken.startswith(b"\x1b[200~"):
                if b"\x1b[201~" not in taken:
                    break
                paste, _, taken = taken[6:].partition(b"\x1b[201~")
                print("paste", repr(paste.decode()), file=record, flush=True)
                buffer += paste.decode()
                write(paste.decode().replace("\n", "\r\n... "))
                continue
            if b"\x1b[200~".startswith(taken):
                break
            key, taken = taken[:1], taken[1:]
            print("key", repr(key.decode("latin-1")), file=record, flush=True)
            if key == b"\x04":
                write("\r\n")
                return None
            if key in b"\r\n":
                if complete(buffer + "\n" if "\n" in buffer else buffer):
                    write("\r\n\x1b[?2004l")
                    return buffer
                last = buffer.rsplit("\n", 1)[-1]
                indent = last[: len(last) - len(last.lstrip())]
                indent += "    " if last.rstrip().endswith(":") else ""
                buffer += "\n" + indent
                write("\r\n... " + indent)
            else:
                buffer += key.decode("latin-1")
                write(key.decode("latin-1"))


names = {}
while (source := edit()) is not None:
    termios.tcsetattr(0, termios.TCSADRAIN, saved)
    try:
        exec(compile(source, "<input>", "exec"), names)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
write("\x1b[?2004l")
termios.tcsetattr(0, termios.TCSADRAIN, saved)
