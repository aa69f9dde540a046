"""Runs the program `anfora` as a process with limits of time and memory.

The process sets its limits itself, before it becomes the program, so nothing runs between the fork
and the start of it. It ends with its parent on Linux: also if the parent is killed.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

#: The seconds that a process has to remove its unfinished files when its time is over.
_GRACE = 1.0
#: The longest wait between two looks at a process, in seconds.
_PAUSE = 0.02
#: At most this much of what a process says about a failure is kept.
_MESSAGE = 4000
#: The messages of a process that gets no more memory. Threads need some for their stacks.
_OUT_OF_MEMORY = ("memory allocation of", "MemoryError", "cannot start a thread")


@dataclass(frozen=True)
class Done:
    """A process that has ended."""

    #: ``ok``, ``failed`` (it says why), ``timeout``, ``memory`` or ``crashed`` (by a signal).
    status: str
    #: The exit status; negative, the signal that ended it.
    code: int
    stdout: bytes
    stderr: str
    seconds: float
    #: The most memory that it held at once, if the system tells.
    peak_bytes: int | None

    @property
    def message(self) -> str:
        """The message of a process that has failed; empty if it has not failed."""
        if self.status == "ok":
            return ""
        begin = re.search(r"^(error|memory allocation|\w*Error)\b.*", self.stderr, re.MULTILINE)
        text = self.stderr[begin.start() :] if begin else self.stderr
        ends = {"timeout": "the time was over", "crashed": f"ended by signal {-self.code}"}
        first = ends.get(self.status, "")
        return "\n".join(part for part in (first, text.strip()[:_MESSAGE]) if part)


def run(
    arguments: Sequence[str],
    *,
    program: Sequence[str] | None,
    seconds: float,
    memory: int | None,
    stdin: bytes = b"",
) -> Done:
    """Runs a program to its end, or to the end of its time. Without ``program``, that is the
    command line of this package. ``memory`` limits the bytes of address space, where the system
    can."""
    limits = [str(memory or 0), str(_cpu_seconds(seconds)), str(os.getpid())]
    command = [sys.executable, "-m", f"{__package__}._limited", *limits, *(program or ["-"]), "--"]
    # Files without names: nothing is left behind if this process is killed.
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        begin = time.monotonic()
        process = subprocess.Popen(
            [*command, *arguments], stdin=given, stdout=out, stderr=err, start_new_session=True
        )
        in_time, peak = False, None
        try:
            in_time, peak = _wait(process, seconds)
        finally:
            # The time is over, or waiting was interrupted.
            if process.returncode is None:
                _, peak = _end(process)
        took = time.monotonic() - begin
        out.seek(0)
        err.seek(0)
        said = err.read().decode("utf-8", "replace")
        code = process.returncode
        return Done(_status(code, said, in_time), code, out.read(), said, took, peak)


def _cpu_seconds(seconds: float) -> int:
    """Returns a limit of processor time that ends what is left without a parent to watch it. The
    program of this package takes one thread unless it is told otherwise."""
    return int(seconds) + 2


def _status(code: int, said: str, in_time: bool) -> str:
    if not in_time or code == -getattr(signal, "SIGXCPU", signal.SIGTERM):
        return "timeout"
    if code == 0:
        return "ok"
    if any(sign in said for sign in _OUT_OF_MEMORY):
        return "memory"
    return "crashed" if code < 0 else "failed"


def _wait(process: subprocess.Popen[bytes], seconds: float) -> tuple[bool, int | None]:
    """Waits for the end of a process. Returns true if it ended in time, and its peak memory."""
    if sys.platform == "win32":
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False, None
        return True, None
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    end, pause, peak = time.monotonic() + seconds, 0.001, None
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid != 0:
            process.returncode = os.waitstatus_to_exitcode(status)
            # The peak of a process begins with that of its parent, so a smaller one does not show.
            shows = usage.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            return True, usage.ru_maxrss * unit if shows or peak is None else peak
        peak = _peak(process.pid) or peak
        left = end - time.monotonic()
        if left <= 0:
            return False, peak
        time.sleep(min(pause, left))
        pause = min(pause * 2, _PAUSE)


def _peak(pid: int) -> int | None:
    """Returns the most memory that a running process has held, on Linux."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            found = re.search(r"^VmHWM:\s+(\d+) kB", file.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def _end(process: subprocess.Popen[bytes]) -> tuple[bool, int | None]:
    """Ends a process and those that it started."""
    if sys.platform == "win32":
        process.kill()
        return _wait(process, _GRACE)
    peak, ended = None, False
    for number, seconds in ((signal.SIGTERM, _GRACE), (signal.SIGKILL, float("inf"))):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        if not ended:
            ended, peak = _wait(process, seconds)
    return ended, peak


def _become(arguments: list[str]) -> None:
    """Sets limits, and becomes a program."""
    memory, cpu, parent = (int(text) for text in arguments[:3])
    program, rest = _split(arguments[3:])
    if sys.platform == "linux":
        # PR_SET_PDEATHSIG: the parent's end ends this process.
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
        if os.getppid() != parent:
            sys.exit(1)
    if sys.platform != "win32":
        import resource

        limits = [(resource.RLIMIT_CPU, cpu), (resource.RLIMIT_CORE, 0)]
        limits += [(resource.RLIMIT_AS, memory)] if memory else []
        for kind, limit in limits:
            _, most = resource.getrlimit(kind)
            limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
            resource.setrlimit(kind, (limit, limit))
    if program != ["-"]:
        os.execvp(program[0], [*program, *rest])
    from . import _anfora

    sys.exit(_anfora._main(["anfora", *rest]))


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Returns what is before the first ``--``, and what is behind it."""
    at = arguments.index("--")
    return arguments[:at], arguments[at + 1 :]


if __name__ == "__main__":
    _become(sys.argv[1:])
