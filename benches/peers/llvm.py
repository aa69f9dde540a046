"""LLVM: `opt` on a function of scalars, its passes timed by its own timers (`-time-passes`), which measure CPU time."""

import os
import re
import shutil

import process
from figures import Figure
from mlir import version_of

NAME = "LLVM"
SIZES = [10_000, 100_000, 1_000_000]
PLACES = ["opt-22", "/usr/lib/llvm-22/bin/opt", "opt"]
MISSING = "opt is not installed: on Debian, as root, `apt-get update && apt-get install llvm-22` (or set LLVM_OPT)"

# The passes of a run, its options, and stages of the table by what of the report they are the sum
# of. The result is printed by a pass of its own.
RUNS = [
    ("verify", ["-disable-verify"], {"parse": ["Parse IR"], "verify": ["VerifierPass"], "print": ["PrintModulePass"]}),
    ("verify", ["-disable-verify"], {"parse-verify": ["Parse IR", "VerifierPass"]}),
    ("early-cse", ["-disable-verify"], {"cse-dce": ["EarlyCSEPass"]}),
    ("dce", ["-disable-verify"], {"dce": ["DCEPass"]}),
    ("instsimplify", ["-disable-verify"], {"fold": ["InstSimplifyPass"]}),
    ("instcombine", ["-disable-verify"], {"fold-canonicalize": ["InstCombinePass"]}),
    ("instcombine,early-cse,dce", ["-disable-verify"], {"pipeline": ["InstCombinePass", "EarlyCSEPass", "DCEPass"]}),
    (
        "instcombine,verify,early-cse,verify,dce,verify",
        ["-disable-verify"],
        {"pipeline-verified": ["InstCombinePass", "EarlyCSEPass", "DCEPass", "VerifierPass"]},
    ),
]


def find():
    """The program, or None."""
    return next(filter(None, map(shutil.which, [os.environ["LLVM_OPT"]] if "LLVM_OPT" in os.environ else PLACES)), None)


def version(program):
    return version_of(process.run([program, "--version"]).out)


def cpu(report):
    """Seconds of CPU time by name. A column of a group that is all zeros is left out of the report, so columns are found by their heads.

    >>> found = cpu('''
    ... ===-------------------------------------------------------------------------===
    ...                           Pass execution timing report
    ... ===-------------------------------------------------------------------------===
    ...   Total Execution Time: 0.0750 seconds (0.1887 wall clock)
    ...
    ...    ---User Time---   --System Time--   --User+System--   ---Wall Time---  --- Name ---
    ...    0.0500 ( 80.0%)   0.0125 (100.0%)   0.0625 ( 83.3%)   0.1577 ( 83.6%)  EarlyCSEPass
    ...    0.0125 ( 20.0%)   0.0000 (  0.0%)   0.0125 ( 16.7%)   0.0310 ( 16.4%)  DCEPass
    ...    0.0625 (100.0%)   0.0125 (100.0%)   0.0750 (100.0%)   0.1887 (100.0%)  Total
    ...
    ...                                LLVM IR Parsing
    ...    ---User Time---   --User+System--   ---Wall Time---  --- Name ---
    ...    0.2500 (100.0%)   0.2500 (100.0%)   0.9999 (100.0%)  Parse IR''')
    >>> found["EarlyCSEPass"], found["DCEPass"], found["Parse IR"]
    (0.0625, 0.0125, 0.25)
    """
    found, heads = {}, []
    for line in report.splitlines():
        if line.rstrip().endswith("--- Name ---"):
            heads = re.findall(r"-+([A-Z][A-Za-z+ ]*?)-+", line.replace("--- Name ---", ""))
            continue
        cells = re.findall(r"(\d+\.\d+) \( *[\d.]+%\)", line)
        if not heads or len(cells) != len(heads):
            continue
        name = re.sub(r"^.*\)", "", line).strip()
        values = dict(zip(heads, map(float, cells)))
        # Where neither of its parts was measured, the sum is left out as well.
        seconds = values.get("User+System", values.get("User Time", values.get("System Time", 0.0)))
        if name != "Total":
            found[name] = found.get(name, 0.0) + seconds
    return found


def figures(program, path, n, work):
    """One run of everything on the program in a file, of n operations; results go into the folder `work`."""
    for passes, options, stages in RUNS:
        result, report = os.path.join(work, "result.ll"), os.path.join(work, "report.txt")
        if os.path.exists(report):
            os.remove(report)
        ended = process.run([program, path, "-S", "-o", result, f"-passes={passes}", "-time-passes", f"-info-output-file={report}", *options])
        with open(report) as file:
            times = cpu(file.read())
        with open(result) as file:
            left = operations(file.read())
        if "pipeline" in stages:
            yield Figure("process", n, ended.cpu, left)
        for stage, names in stages.items():
            yield Figure(stage, n, sum(times[name] for name in names), left)


def operations(text):
    """How many operations a program has.

    >>> operations("  %b0 = fadd float %x, 0x3FE0000000000000\\n  %b1 = fmul float %b0, %x\\n  ret float %b1")
    2
    """
    return len(re.findall(r" = f(?:add|mul|sub) ", text))
