"""Running a program, and what CPU time it took."""

import os
import subprocess
import tempfile
from dataclasses import dataclass


# How much of its time each process that ran had a processor for itself; 1 on a machine that does nothing else.
shares = []


@dataclass
class Ended:
    """What a program printed, and what it took."""

    out: str
    err: str
    cpu: float
    share: float


def run(command, stdin=None, timeout=None):
    """Runs a command to its end, and ends this program if it fails. Its input is a file or nothing.

    >>> ended = run(["sh", "-c", "echo one; echo two >&2"])
    >>> ended.out, ended.err, ended.cpu >= 0
    ('one\\n', 'two\\n', True)
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        before, started = os.times(), os.times().elapsed
        code = subprocess.run(command, stdin=stdin or subprocess.DEVNULL, stdout=out, stderr=err, timeout=timeout).returncode
        after = os.times()
        texts = []
        for file in [out, err]:
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    if code:
        raise SystemExit(f"{' '.join(command)}: exit status {code}\n{texts[1][-2000:]}")
    cpu = after.children_user - before.children_user + after.children_system - before.children_system
    shares.append(min(1.0, cpu / max(after.elapsed - started, 1e-9)))
    return Ended(texts[0], texts[1], cpu, shares[-1])
