"""Computes, prints, sleeps, starts things at random, prompts, and waits for the terminal in one way.

Arguments: way, mode (`cooked` or `raw`), seed, file for the truth. Each line of that file is written
right before a wait: the number that was read last, all that was printed since, and the time.
"""

import ctypes
import json
import mmap
import os
import random
import select
import struct
import subprocess
import sys
import threading
import time
import tty

WAY, MODE, SEED, TRUTH = sys.argv[1:]
RANDOM = random.Random(int(SEED))
TRUTH = os.open(TRUTH, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
NEWLINE = "\r\n" if MODE == "raw" else "\n"
printed = []


def show(text):
    printed.append(text)
    data = text.encode()
    while data:
        data = data[os.write(1, data):]


class Ring:
    """The least that reads a descriptor through io_uring."""

    SETUP, ENTER, READ, GETEVENTS = 425, 426, 22, 1

    def __init__(self):
        self.call = ctypes.CDLL(None, use_errno=True).syscall
        parameters = ctypes.create_string_buffer(120)
        self.ring = self.call(self.SETUP, 4, parameters)
        if self.ring < 0:
            raise OSError(ctypes.get_errno(), "io_uring_setup")
        words = struct.unpack("30I", parameters.raw)
        entries, self.sq, self.cq = words[0], words[10:20], words[20:30]
        self.submissions = mmap.mmap(self.ring, self.sq[6] + 4 * entries, offset=0)
        self.completions = mmap.mmap(self.ring, self.cq[5] + 16 * words[1], offset=0x8000000)
        self.requests = mmap.mmap(self.ring, 64 * entries, offset=0x10000000)

    def read(self, descriptor, size):
        buffer = ctypes.create_string_buffer(size)
        request = struct.pack("<BBHiQQI", self.READ, 0, 0, descriptor, 2**64 - 1, ctypes.addressof(buffer), size)
        self.requests[0:64] = request.ljust(64, b"\0")
        self.submissions[self.sq[6]:self.sq[6] + 4] = struct.pack("I", 0)
        tail = struct.unpack_from("I", self.submissions, self.sq[1])[0]
        struct.pack_into("I", self.submissions, self.sq[1], tail + 1)
        self.call(self.ENTER, self.ring, 1, 1, self.GETEVENTS, None, 0)
        head = struct.unpack_from("I", self.completions, self.cq[0])[0]
        while struct.unpack_from("I", self.completions, self.cq[1])[0] == head:
            self.call(self.ENTER, self.ring, 0, 1, self.GETEVENTS, None, 0)
        slot = head & struct.unpack_from("I", self.completions, self.cq[2])[0]
        size = struct.unpack_from("i", self.completions, self.cq[5] + 16 * slot + 8)[0]
        struct.pack_into("I", self.completions, self.cq[0], head + 1)
        return buffer.raw[:max(size, 0)]


if WAY == "dup":
    COPY = os.dup(0)
if WAY == "tty":
    TERMINAL = os.open("/dev/tty", os.O_RDWR)
if WAY == "io_uring":
    RING = Ring()


def take(truth):
    """Waits for input in this victim's way and takes it; `truth` is told when the wait begins."""
    size = 1 if MODE == "raw" else 4096
    if WAY == "thread":
        taken = []

        def reader():
            truth()
            taken.append(os.read(0, size))

        thread = threading.Thread(target=reader)
        thread.start()
        thread.join()
        return taken[0]
    if WAY == "poll":
        waiter = select.poll()
        waiter.register(0, select.POLLIN)
        truth()
        waiter.poll()
    elif WAY == "select":
        truth()
        select.select([0], [], [])
    elif WAY == "epoll":
        waiter = select.epoll()
        waiter.register(0, select.EPOLLIN)
        truth()
        waiter.poll()
        waiter.close()
    elif WAY == "dup":
        truth()
        return os.read(COPY, size)
    elif WAY == "tty":
        truth()
        return os.read(TERMINAL, size)
    elif WAY == "io_uring":
        truth()
        return RING.read(0, size)
    else:
        truth()
    return os.read(0, size)


def line(number):
    def truth():
        text = "".join(printed)
        record = {"after": number, "printed": text, "at_ns": time.monotonic_ns()}
        os.write(TRUTH, json.dumps(record).encode() + b"\n")

    data = take(truth)
    while MODE == "raw" and data and not data.endswith(b"\r"):
        data += take(lambda: None)
    printed.clear()
    if MODE == "raw":
        # As a line editor does.
        show(NEWLINE)
    return data.strip().decode()


def act():
    kind = RANDOM.random()
    if kind < 0.3:
        time.sleep(RANDOM.choice([0, 0.0001, 0.001, 0.005, 0.02, 0.06]))
    elif kind < 0.5:
        end = time.perf_counter() + RANDOM.choice([0.0001, 0.001, 0.01])
        while time.perf_counter() < end:
            pass
    elif kind < 0.65:
        show("x" * RANDOM.choice([1, 10, 5000]) + RANDOM.choice(["", NEWLINE, "> "]))
    elif kind < 0.75:
        show(RANDOM.choice(["done 7> ", "Password: ", "really? [y/N] ", "$ "]))
        time.sleep(RANDOM.choice([0.001, 0.03, 0.12]))
    elif kind < 0.85:
        subprocess.run(["true"], stdin=subprocess.DEVNULL)
    elif kind < 0.95:
        thread = threading.Thread(target=time.sleep, args=(RANDOM.choice([0.0005, 0.01]),))
        thread.start()
        thread.join()
    else:
        select.select([], [], [], RANDOM.choice([0.0005, 0.008]))


if MODE == "raw":
    tty.setraw(0)
show("done 0> ")
number = line(0)
while number:
    for _ in range(RANDOM.randint(0, 4)):
        act()
    show(f"done {number}> ")
    number = line(int(number))
