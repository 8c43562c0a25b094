"""A menu that leaves the output above it where it is, its selected row in reverse."""
import os, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0)
names, at, key = [b'apple', b'banana', b'cherry'], 0, b''
while key != b'\r':
    rows = [(b'\x1b[7m> ' if n == at else b'  ') + names[n] + b'\x1b[m\x1b[K\r\n' for n in range(3)]
    os.write(1, (b'\x1b[3A' if key else b'') + b''.join(rows))
    key = os.read(0, 10)
    at += {b'\x1b[A': -1, b'\x1b[B': 1}.get(key, 0)
termios.tcsetattr(0, termios.TCSANOW, before)
print('picked', names[at].decode())
