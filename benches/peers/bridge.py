"""From which size on is it worth to leave TVM for a pass: passes of TVM's Relax, and the same
passes of anfora with the way there and back (`anfora.tvm`).

    python3 benches/peers/bridge.py [--write] [--python PYTHON] [--limit SECONDS] [--only PASS]...

Each figure is the CPU time of one run in a process of its own (bridge_worker.py). A system is not
run on larger programs than the first one that takes it longer than the limit. Both are installed
into target/tvm-env: TVM from the package index, anfora as a wheel that is built here. `--python`
names an interpreter that has both. `--write` replaces the table in docs/python/tvm.md.
"""

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import textwrap

import process
import table

SIZES = [1_000, 10_000, 100_000]
PASSES = [
    "FoldConstant",
    "EliminateCommonSubexpr",
    "CanonicalizeBindings",
    "DeadCodeElimination",
    "the four above",
    "FuseOps",
    "LambdaLift",
    "Normalize",
    "ConvertToDataflow",
    "ToNonDataflow",
    "BindParams",
]
SYSTEMS = ["TVM", "anfora"]
WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bridge_worker.py")


def seconds(value):
    """
    >>> [seconds(v) for v in [0.0034, 0.25, 12.34, 160.2]]
    ['0.0034 s', '0.25 s', '12 s', '160 s']
    """
    return f"{value:.0f} s" if value >= 9.95 else f"{value:.1f} s" if value >= 0.995 else f"{value:.2g} s"


def crossing(theirs, ours, sizes, limit):
    """The size from which on anfora takes less time, or None: between two sizes, that of a line
    through both on logarithmic scales. A time of None is more than the limit, and a size with two
    of these says nothing.

    >>> crossing([1.0, 100.0, 10_000.0], [10.0, 100.0, 1_000.0], [1_000, 10_000, 100_000], 60)
    10000
    >>> crossing([0.1, 1.0, None], [1.0, 2.0, 20.0], [1_000, 10_000, 100_000], 60)
    24370
    >>> crossing([5.0, 50.0], [1.0, 10.0], [1_000, 10_000], 60)
    1000
    >>> crossing([0.1, 1.0], [1.0, 10.0], [1_000, 10_000], 60)
    """
    known = [(n, math.log((t or limit) / (o or limit))) for n, t, o in zip(sizes, theirs, ours) if t or o]
    if not known or known[-1][1] < 0:
        return None
    found = known[0][0]
    for (n, gain), (m, more) in zip(known, known[1:]):
        if gain < 0 <= more:
            found = n * (m / n) ** (-gain / (more - gain))
    return round(found)


def about(size):
    """
    >>> [about(n) for n in [None, 1_000, 17_183, 4_567]]
    ['no size up to 100,000', '1,000 or fewer', '17,000', '4,600']
    """
    if size is None:
        return f"no size up to {SIZES[-1]:,}"
    if size <= SIZES[0]:
        return f"{SIZES[0]:,} or fewer"
    digits = 10 ** (len(str(size)) - 2)
    return f"{round(size / digits) * digits:,}"


def measure(python, system, name, n, limit):
    """The line of the worker, or None if its work took longer than the limit."""
    command = [python, WORKER, system, name, str(n), "--limit", str(limit)]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if ended.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    if ended.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {ended.returncode}\n{ended.stderr[-2000:].strip()}")
    return json.loads(ended.stdout.splitlines()[-1])


def row(python, name, limit):
    """The figures of a pass, by system and size."""
    figures = {}
    for system in SYSTEMS:
        found = []
        for n in SIZES:
            ended = bool(found) and found[-1] is None
            found.append(None if ended else measure(python, system, name, n, limit))
            if not ended:
                print(f"{name}, {system}, {n:,}: {found[-1] or f'more than {limit} s'}", file=sys.stderr, flush=True)
        figures[system] = found
    return figures


def lines(rows, limit):
    """The table, and the line on what the conversion takes of it."""
    yield "| pass | " + " | ".join(f"{n:,}: TVM | anfora" for n in SIZES) + " | worth it from |"
    yield "|---|" + "---|" * (2 * len(SIZES) + 1)
    shares = []
    for name, figures in rows.items():
        theirs, ours = ([f and f["seconds"] for f in figures[system]] for system in SYSTEMS)
        cells = [f"> {limit} s" if value is None else seconds(value) for pair in zip(theirs, ours) for value in pair]
        shares += [(f["from_relax"] + f["to_relax"]) / f["seconds"] for f in figures["anfora"] if f]
        yield f"| {name} | {' | '.join(cells)} | {about(crossing(theirs, ours, SIZES, limit))} |"
    yield ""
    yield f"Of the time of anfora, the two conversions take {min(shares):.0%} to {max(shares):.0%}."


def interpreter():
    """An interpreter that has TVM and anfora, which is built for it."""
    import callbacks
    import tvm_relax

    python = tvm_relax.find()
    if python is None:
        sys.exit(tvm_relax.MISSING)
    install = [python, "-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"]
    subprocess.run([*install, callbacks.wheel()], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="replaces the table in docs/python/tvm.md")
    parser.add_argument("--python", help="an interpreter that has TVM and anfora")
    parser.add_argument("--limit", type=int, default=60, help="seconds of CPU time for a pass (%(default)s)")
    parser.add_argument("--only", action="append", choices=PASSES, help="measures this pass only; may be repeated")
    args = parser.parse_args()
    python = os.path.abspath(args.python) if args.python else None
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    python = python or interpreter()
    version = process.run([python, "-c", "import importlib.metadata as m; print(m.version('apache-tvm'))"]).out.strip()
    rows = {name: row(python, name, args.limit) for name in args.only or PASSES}
    sizes = ", ".join(f"{n:,}" for n in SIZES)
    title = f"CPU time on programs of {sizes} bindings, of the pass of TVM {version} and of anfora's"
    title += " with both conversions:"
    made = [*textwrap.wrap(title, 100), "", *lines(rows, args.limit)]
    print("\n".join(made))
    if args.write:
        table.write("docs/python/tvm.md", "bridge", [*made, ""])


if __name__ == "__main__":
    main()
