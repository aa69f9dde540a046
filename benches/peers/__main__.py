"""Runs the benchmark program (`anfora gen chain N`) through anfora and the systems and crates that it is compared with, each in turn, and prints what every
stage costs in microseconds of CPU time a binding, on one thread: of each figure the smallest of several rounds, each in a process of its own.

What every system leaves of the program is counted and has to be the same; the exit status is 1 if it is not, or if a system fails.

TVM is installed into target/tvm-env on the first run. MLIR and LLVM are Debian packages, which takes root; a system that is not there is left out, and said
to be missing. Variables that name programs to use instead: TVM_PYTHON (an interpreter), MLIR_OPT, LLVM_OPT, ANFORA_PEERS (that of crates/).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import crates
import figures
import llvm
import mlir
import process
import table
import tvm_relax

WORK = "target/peers-work"
PEERS = [tvm_relax, mlir, llvm]
SHOWN = [10_000, 100_000, 1_000_000]
# What takes a minute, this size and TVM, runs in every second round.
LARGE = 1_000_000
# A process that waits for nothing but files has a processor for at least this share of its time.
QUIET = 0.9
# TVM's slowest stages are shown beside a hundred times as many bindings at most.
SMALLEST = {10_000: 1_000, 100_000: 1_000, 1_000_000: 1_000_000}


def parse():
    parser = argparse.ArgumentParser(prog="benches/peers/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="not at 1,000,000 bindings, and two rounds")
    parser.add_argument("--rounds", type=int, help="how often everything runs (5; 2 with --quick)")
    parser.add_argument("--only", action="append", choices=table.SYSTEMS[2:], help="compares with this one only; may be repeated")
    parser.add_argument("--check", action="store_true", help="exit status 1 if a ratio misses its goal, too")
    parser.add_argument("--write", action="store_true", help="replaces the tables in README.md and benches/README.md")
    parser.add_argument("--json", metavar="FILE", help="where to write all figures")
    return parser.parse_args()


def said(text):
    print(text, file=sys.stderr, flush=True)


def found(only):
    """The peers that are there: each with its program; and what to say of those that are not."""
    there, missing = {}, []
    for peer in PEERS:
        if only and peer.NAME not in only:
            continue
        program = peer.find()
        if program:
            there[peer.NAME] = peer, program
        else:
            missing.append(f"{peer.NAME} is left out. {peer.MISSING}")
    return there, missing


def measure(rounds, sizes, program, there, only):
    """Everything, in turn, that often; what takes long in every second round. The figures, and what failed."""
    best, failed = figures.Figures(), {}
    rust = [s for s in crates.SIZES if s == "anfora" or not only or s in only]
    for i in range(rounds):
        started = time.monotonic()
        for n in [n for n in sizes if n < LARGE or i % 2 == 0]:
            for system in rust:
                if n in crates.SIZES[system]:
                    for figure in crates.figures(program, system, n):
                        best.add(system, figure)
            for system, figure in crates.cold(program, n, WORK):
                best.add(system, figure)
            for name, (peer, command) in there.items():
                if n not in peer.SIZES or (name, n) in failed or (peer is tvm_relax and i % 2):
                    continue
                path = crates.write(program, name, n, WORK)
                try:
                    for figure in peer.figures(command, path, n, WORK):
                        best.add(name, figure)
                except process.Failed as failure:
                    failed[name, n] = f"{name} failed on {n:,}: {failure}"
                    said(failed[name, n])
        said(f"round {i + 1} of {rounds}: {time.monotonic() - started:.0f} s")
    return best, list(failed.values())


def machine():
    """The machine and the commit, in a line."""
    model = "an unknown processor"
    try:
        with open("/proc/cpuinfo") as info:
            model = next((line.split(":", 1)[1].strip() for line in info if line.startswith("model name")), model)
    except OSError:
        pass
    git = lambda *arguments: subprocess.run(["git", *arguments], capture_output=True, text=True).stdout.strip()
    commit = git("rev-parse", "--short=10", "HEAD") or "unknown"
    changed = " and changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return f"{os.cpu_count()} cores, {model}; commit {commit}{changed}, {time.strftime('%Y-%m-%d', time.gmtime())}"


def head(rounds, versions):
    """What stands above the tables."""
    lines = [
        f"Microseconds of CPU time per binding: the minimum of {rounds} rounds "
        f"({(rounds + 1) // 2} for TVM and at 1,000,000 bindings).",
        "In brackets, the ratio to the time of anfora.",
        "",
        f"{machine()}; {', '.join(f'{name} {version}' for name, version in versions.items())}.",
        "",
    ]
    share = statistics.median(process.shares)
    if share < QUIET:
        lines += [f"The machine did other work: half of the processes had a processor for {share:.0%} of their time or less.", ""]
    return lines


def judge(best):
    """Prints whether all have done the same work, and which goals hold. The lines on what does not: of the work, of the goals."""
    work, goals = list(table.same_work(best)), list(table.goals(best))
    wrong, missed = ([line for line, right in lines if not right] for lines in [work, goals])
    print(f"what is left of the program is the same in {len(work) - len(wrong)} of {len(work)} stages of others", *wrong, sep="\n")
    print("", *(line for line, _ in goals), f"{len(goals) - len(missed)} of {len(goals)} goals hold", sep="\n")
    return wrong, missed


def main():
    args = parse()
    os.makedirs(WORK, exist_ok=True)
    for name in os.listdir(WORK):
        os.remove(os.path.join(WORK, name))
    program = crates.build()
    there, missing = found(args.only)
    for line in missing:
        said(line)
    rounds = args.rounds or (2 if args.quick else 5)
    sizes = [1_000, 10_000, 100_000] + ([] if args.quick else [LARGE])
    best, failed = measure(rounds, sizes, program, there, args.only)

    versions = {name: peer.version(program) for name, (peer, program) in there.items()}
    rust = {name: version for name, version in crates.versions().items() if name in best.systems()}
    full, summary = head(rounds, {**versions, **rust}), head(rounds, versions)
    for n in SHOWN:
        if n in sizes:
            full += [*table.table(best, n, table.SYSTEMS, SMALLEST[n]), ""]
    summary += [*table.table(best, table.GOAL_SIZE, table.SUMMARY, SMALLEST[table.GOAL_SIZE]), ""]
    for lines in [full, summary]:
        lines += (line for text in missing + failed for line in [text, ""])
    print("\n".join(full))
    wrong, missed = judge(best)
    if args.json:
        with open(args.json, "w") as file:
            rows = [{"system": system, **vars(figure)} for (system, _, _), figure in sorted(best.best.items())]
            json.dump(rows, file, indent=1)
    if args.write:
        table.write("benches/README.md", "peers", full)
        table.write("README.md", "peers", summary)
    return 1 if wrong or failed or (args.check and missed) else 0


if __name__ == "__main__":
    sys.exit(main())
