"""Measures the CPU time of ``anfora slim`` and of other optimizers of ONNX models, each as a whole process.

The models are chains of 20,000 and of 1,000,000 nodes (``anfora gen chain``), and those with which
``scripts/real-models`` compares the number of nodes: transformers as exporters write them, and the
light models of the package onnx. The other tools run as in ``scripts/real_models/tool.py``. A tool
is stopped when it has used 25 times the time of anfora and at least a minute; its time is then a
lower bound. Each run writes a new file. Every other tool should take at least 20 times the time of
anfora, unless anfora takes at most 1.3 times the time of ``cp`` for its own output: then the time is
that of writing the bytes. (Some light models are small, since they compute their weights. The
optimized models contain the weights.)
"""

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
from typing import NamedTuple

HERE = os.path.dirname(os.path.abspath(__file__))
REAL_MODELS = os.path.join(HERE, "..", "..", "scripts", "real_models")
sys.path.insert(0, REAL_MODELS)
from readme import Table  # noqa: E402

README_TABLE = Table("<!-- times: benches/peers/slim --write -->", "<!-- end of times -->")
TOOLS = ["onnxruntime", "onnxslim", "onnxsim", "onnxscript"]
CHAINS = {"chain-20000": 20_000, "chain-1000000": 1_000_000}
EXPORTED = ["transformer-24", "transformer-6-quantised"]
LIGHT = ["bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "shufflenet", "squeezenet", "vgg19", "zfnet512"]
MODELS = [*CHAINS, *EXPORTED, *(f"light_{name}" for name in LIGHT)]
# The goal, the bound by the time of `cp`, and the time after which a tool is stopped.
TIMES = 20
COPIES = 1.3
STOP_TIMES, STOP_SECONDS = 25, 60


class Timed:
    """The CPU seconds of a tool on a model, and how it ended: well, stopped or failed."""

    def __init__(self, seconds, end="well"):
        self.seconds, self.end = seconds, end

    def ratio(self, ours):
        """Returns how many times as long as anfora the tool takes; None if it fails.

        >>> Timed(3.0).ratio(0.1) > 29, Timed(3.0, "failed").ratio(0.1)
        (True, None)
        """
        return None if self.end == "failed" else self.seconds / ours

    def text(self, ours):
        """
        >>> Timed(3.0).text(0.1), Timed(60.0, "stopped").text(0.5), Timed(1.0, "failed").text(0.5)
        ('3.00 (30x)', '>60.00 (>120x)', 'fails')
        """
        if self.end == "failed":
            return "fails"
        more = ">" if self.end == "stopped" else ""
        return f"{more}{self.seconds:.2f} ({more}{self.ratio(ours):.0f}x)"


class Row(NamedTuple):
    """The CPU seconds of anfora on a model, of `cp` on the output of anfora, and of the other tools."""

    ours: float
    copy: float
    others: dict

    def is_bounded(self):
        """Returns whether anfora takes little more time than it takes to write its output.

        >>> Row(0.12, 0.1, {}).is_bounded(), Row(0.14, 0.1, {}).is_bounded()
        (True, False)
        """
        return self.ours <= COPIES * self.copy


def remove_model(path):
    """Removes a model and its weights, if they exist."""
    for file in [path, f"{path}.data"]:
        if os.path.exists(file):
            os.remove(file)


def timed(command, target, limit=None):
    """Runs a command that writes a new file; returns its time.

    It is stopped after `limit` seconds of CPU time.

    >>> timed([sys.executable, "-c", "pass"], os.devnull + "/none").end
    'well'
    >>> timed([sys.executable, "-c", "while True: pass"], os.devnull + "/none", 1).end
    'stopped'
    """
    remove_model(target)

    def restrict():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))

    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=restrict)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = usage.ru_utime + usage.ru_stime
    if process.returncode == 0:
        return Timed(seconds)
    return Timed(seconds, "stopped" if limit is not None and seconds >= 0.95 * limit else "failed")


def prepare(name, args):
    """Makes a model, if it is not there; returns its path."""
    if name.startswith("light_"):
        import onnx

        return os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data", "light", f"{name}.onnx")
    path = os.path.join(args.work, f"{name}.onnx")
    if name in CHAINS:
        subprocess.run([*args.command, "gen", "chain", str(CHAINS[name]), "-o", path], check=True)
    else:
        subprocess.run([sys.executable, os.path.join(REAL_MODELS, "exporters.py"), args.work, name], check=True, stdout=subprocess.DEVNULL)
    return path


def median(command, target, rounds):
    """Returns the median of the CPU seconds of a command that writes a new file."""
    runs = [timed(command, target) for _ in range(rounds)]
    if any(run.end != "well" for run in runs):
        raise SystemExit(f"{' '.join(command)} fails")
    return statistics.median(run.seconds for run in runs)


def measure(name, args):
    """Measures all tools on a model."""
    source, target, copied = prepare(name, args), os.path.join(args.work, "small.onnx"), os.path.join(args.work, "copy.onnx")
    ours = median([*args.command, "slim", "--quiet", source, target], target, args.rounds)
    copy = median(["cp", target, copied], copied, args.rounds)
    remove_model(copied)
    limit = max(STOP_SECONDS, int(STOP_TIMES * ours) + 1)
    others = {}
    for tool in TOOLS:
        others[tool] = timed([sys.executable, os.path.join(REAL_MODELS, "tool.py"), tool, source, target], target, limit)
        print(f"{name}: anfora {ours:.3f}, {tool} {others[tool].text(ours)}", file=sys.stderr, flush=True)
    for path in [target, *([] if name.startswith("light_") else [source])]:
        remove_model(path)
    return Row(ours, copy, others)


def table(rows):
    """Returns the table in Markdown.

    >>> print(table({"m": Row(0.1, 0.001, {tool: Timed(3.0) for tool in TOOLS})}), end="")
    | model | `cp` of the output | `anfora slim` | onnxruntime | onnxslim | onnxsim | onnxscript |
    |---|---:|---:|---:|---:|---:|---:|
    | m | 0.001 | 0.100 | 3.00 (30x) | 3.00 (30x) | 3.00 (30x) | 3.00 (30x) |
    """
    lines = ["| model | `cp` of the output | `anfora slim` | " + " | ".join(TOOLS) + " |", "|---|" + "---:|" * (len(TOOLS) + 2)]
    for name, (ours, copy, others) in rows.items():
        lines.append(f"| {name} | {copy:.3f} | {ours:.3f} | " + " | ".join(others[tool].text(ours) for tool in TOOLS) + " |")
    return "\n".join(lines) + "\n"


def with_others(made, others):
    """Returns a table with the rows of models that were not measured now, in the order of the models.

    >>> made = table({MODELS[0]: Row(0.1, 0.001, {tool: Timed(3.0) for tool in TOOLS})})
    >>> with_others(made, [["a", "1"], [MODELS[1], "2"], [MODELS[0], "3"]]).splitlines()[-1]
    '| chain-1000000 | 2 |'
    """
    head, lines = made.splitlines()[:2], made.splitlines()[2:]
    rows = {cells[0]: "| " + " | ".join(cells) + " |" for cells in others}
    rows |= {line.split("|")[1].strip(): line for line in lines}
    return "\n".join([*head, *(rows[name] for name in MODELS if name in rows)]) + "\n"


def missed(rows):
    """Returns a line for each tool that takes less than 20 times as long as anfora on a model.

    Models on which the time of anfora is that of writing the output count as well.

    >>> missed({"m": Row(0.1, 0.001, {"onnxsim": Timed(1.5), "onnxslim": Timed(2.5)})})
    ['m: onnxsim takes 15.0 times as long as anfora']
    >>> missed({"m": Row(0.1, 0.1, {"onnxsim": Timed(1.5)})})
    []
    """
    return [
        f"{name}: {tool} takes {ratio:.1f} times as long as anfora"
        for name, row in rows.items()
        for tool, other in row.others.items()
        if not row.is_bounded() and (ratio := other.ratio(row.ours)) is not None and ratio < TIMES
    ]


def main():
    parser = argparse.ArgumentParser(prog="benches/peers/slim", description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", required=True, help="a folder for the models")
    parser.add_argument("--only", action="append", choices=MODELS, help="this model only; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="the number of runs of anfora, of which the median counts")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a ratio misses the goal")
    parser.add_argument("--write", action="store_true", help="put the rows into the table of README.md")
    parser.add_argument("command", nargs="+", help="the anfora program")
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    rows = {name: measure(name, args) for name in args.only or MODELS}
    print(table(rows), end="")
    lines = missed(rows)
    print(*lines, f"{len(TOOLS) * len(rows) - len(lines)} of {len(TOOLS) * len(rows)} ratios hold", sep="\n")
    if args.write:
        README_TABLE.write(with_others(table(rows), README_TABLE.read()))
    shutil.rmtree(args.work, ignore_errors=True)
    return 1 if args.check and lines else 0


if __name__ == "__main__":
    sys.exit(main())
