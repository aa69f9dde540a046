"""Measures ``anfora slim`` on models with large weights.

The cases:

- ``stay``: a model of 48 layers with 2.4 GB of weights in a file beside it. The output goes beside
  the input and refers to the same file.
- ``inline``: a model with 500 MB of weights in it, which are copied.
- ``move``: a model with 500 MB of weights beside it. The output goes to another folder, with a file
  of its own beside it.

``cp`` copies the same files. Runs of both alternate, and the median of the ratios counts. Processes
are started by this one, which imports only small modules: the peak memory of a process includes
that of its parent.
"""

import argparse
import os
import shutil
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
# The goals of each case: CPU seconds (None if there is no limit), times the CPU time of cp, and GB.
GOALS = {"stay": (0.5, None, 0.15), "inline": (None, 1.3, 0.2), "move": (None, 1.3, 0.15)}
SIZES = {"stay": (48, 1248), "inline": (10, 1248), "move": (10, 1248)}


def measure(command):
    """Runs a command; returns its CPU seconds and its peak memory in GB."""
    process = os.posix_spawnp(command[0], command, os.environ)
    _, status, usage = os.wait4(process, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(command)} fails")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e9


def prepare(case, args):
    """Makes the model of a case; returns its path, and the command line of ``slim`` and of ``cp``."""
    folder = os.path.join(args.work, case)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(os.path.join(folder, "out"))
    layers, width = SIZES[case]
    model = os.path.join(folder, "model.onnx")
    measure([sys.executable, os.path.join(HERE, "make.py"), model, str(max(1, round(layers * args.scale))), str(width)])
    out = os.path.join(folder, "out")
    copy = ["cp", model, f"{model}.data", os.path.join(out, "")]
    slim = [*args.command, "slim", "--quiet", model, os.path.join(out, "small.onnx")]
    if case == "stay":
        # Nothing is copied.
        copy = None
        slim[-1] = os.path.join(folder, "small.onnx")
    elif case == "move":
        slim.insert(-2, "--external-data")
    else:
        inline = os.path.join(folder, "inline.onnx")
        measure([*args.command, "convert", model, "--external-data=inline", "-o", inline])
        os.remove(f"{model}.data")
        copy, slim[-2] = ["cp", inline, os.path.join(out, "")], inline
    return folder, slim, copy


def empty(folder):
    """Removes the outputs of a run."""
    out = os.path.join(folder, "out")
    for name in os.listdir(out):
        os.remove(os.path.join(out, name))


def run(case, args):
    """Measures a case; prints a row of the table, and returns the goals that are missed."""
    folder, slim, copy = prepare(case, args)
    ratios, seconds, copies, peak = [], [], [], 0.0
    try:
        for _ in range(args.rounds):
            ours, gigabytes = measure(slim)
            empty(folder)
            seconds.append(ours)
            peak = max(peak, gigabytes)
            if copy is not None:
                theirs, _ = measure(copy)
                empty(folder)
                copies.append(theirs)
                ratios.append(ours / theirs)
    finally:
        shutil.rmtree(folder)
    ours = statistics.median(seconds)
    theirs, ratio = (statistics.median(numbers) if numbers else None for numbers in (copies, ratios))
    shown = [f"{number:.2f}" if number is not None else "–" for number in (ours, theirs, ratio)]
    print(f"| {case} | {' | '.join(shown)} | {peak:.3f} |", flush=True)
    most_seconds, most_ratio, most_gigabytes = GOALS[case]
    missed = []
    if most_seconds is not None and ours > most_seconds:
        missed.append(f"{case}: {ours:.2f} s of CPU time; the goal is {most_seconds}")
    if most_ratio is not None and ratio > most_ratio:
        missed.append(f"{case}: {ratio:.2f} times the CPU time of cp; the goal is {most_ratio}")
    if peak > most_gigabytes:
        missed.append(f"{case}: {peak:.3f} GB; the goal is {most_gigabytes}")
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--work", required=True, help="a folder for the models")
    parser.add_argument("--rounds", type=int, default=5, help="the number of runs of each command")
    parser.add_argument("--only", action="append", choices=list(GOALS), help="a case; all without it")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of layers")
    parser.add_argument("command", nargs="+", help="the program")
    args = parser.parse_args()
    print("| case | CPU s | cp, CPU s | ratio | peak, GB |\n|---|---:|---:|---:|---:|", flush=True)
    missed = [what for case in args.only or GOALS for what in run(case, args)]
    for what in missed:
        print(what, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
