"""Running a program, and what CPU time it took."""

import resource
import subprocess
import tempfile
import time
from dataclasses import dataclass


# How much of its time each process that ran had a processor for itself; 1 on a machine that does
# nothing else.
shares = []


class Failed(Exception):
    """A program that did not end well: what it was, how it ended, and the end of what it said."""


@dataclass
class Ended:
    """What a program printed, its CPU time in seconds, and how much of its time it had a processor for itself."""

    out: str
    err: str
    cpu: float
    share: float


def run(command, stdin=None):
    """Runs a command to its end, with a file or nothing for its input.

    >>> ended = run(["sh", "-c", "echo one; echo two >&2"])
    >>> ended.out, ended.err, 0 < ended.share <= 1, ended.cpu > 0
    ('one\\n', 'two\\n', True, True)
    >>> run(["sh", "-c", "echo broken >&2; exit 3"])
    Traceback (most recent call last):
    process.Failed: sh -c echo broken >&2; exit 3: exit status 3
    broken
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before, started = cpu_of_children(), time.monotonic()
        code = subprocess.run(command, stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=err).returncode
        cpu, wall = cpu_of_children() - before, time.monotonic() - started
        texts = []
        for file in [out, err]:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if code:
        raise Failed(f"{' '.join(command)}: exit status {code}\n{texts[1][-2000:].strip()}")
    shares.append(min(1.0, cpu / wall))
    return Ended(texts[0], texts[1], cpu, shares[-1])


def cpu_of_children():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
