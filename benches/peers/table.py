"""What is compared, what has to come out, and how it is shown."""

import os

# Systems in the order of their columns; the ratios of all but the first are to the first.
# "cold" are stages of anfora that run once, in a process of their own.
COLD = "anfora, cold"
SYSTEMS = ["anfora", COLD, "TVM", "MLIR", "LLVM", "egg", "cranelift-codegen", "pliron"]
# Those of the table in README.md.
SUMMARY = ["anfora", "TVM", "MLIR", "LLVM"]

# Stages, in the order of their rows. What each is in each system: README.md of benches.
STAGES = {
    "build": "build",
    "parse": "parse",
    "parse-verify": "parse and verify",
    "print": "print",
    "verify": "verify",
    "visit": "visit, by a callback",
    "visit-inside": "visit, by the system itself",
    "mutate": "mutate, changing nothing",
    "mutate-inside": "mutate, changing nothing, by the system itself",
    "cse": "common subexpressions",
    "dce": "dead code",
    "cse-dce": "common subexpressions, dead code",
    "cse-canonicalize-dce": "common subexpressions, canonicalize, dead code",
    "fold": "fold constants",
    "canonicalize": "canonicalize",
    "fold-canonicalize": "fold constants, canonicalize",
    "pipeline": "pipeline: fold, common subexpressions, dead code",
    "pipeline-verified": "pipeline, verified after each pass",
    "fuse": "fuse operators",
    "lift-siblings": "lift N lambdas, side by side",
    "lift-nested": "lift N lambdas, nested",
    "process": "whole process: read, parse, pipeline, print, write",
}

# What the figure of another system is held against, where that is another stage of anfora.
AGAINST = {"visit-inside": "visit", "mutate-inside": "mutate"}

# The goals: the ratio of the time of a system to that of anfora, at 100,000 bindings or at the
# largest size at which the system is measured.
GOAL_SIZE = 100_000
PASSES = ["cse", "dce", "cse-canonicalize-dce", "fold", "canonicalize", "fold-canonicalize", "pipeline", "fuse", "lift-siblings", "lift-nested"]
GOALS = {
    **{("MLIR", stage): 6 for stage in ["parse", "parse-verify"]},
    **{("MLIR", stage): 10 for stage in ["print", "cse-dce", "fold-canonicalize", "pipeline"]},
    **{("LLVM", stage): 3 for stage in ["cse-dce", "pipeline"]},
    **{("TVM", stage): 100 for stage in [*PASSES, "visit", "mutate"]},
    # The inverse: a stage takes at most this multiple of the time of the system.
    ("cranelift-codegen", "build"): 1 / 2,
    ("cranelift-codegen", "verify"): 1 / 0.6,
    ("pliron", "visit"): 1,
    ("MLIR", "process"): 20,
}
# The largest ratio of the time of a cold run to that of a warm one.
COLD_MOST = 1.3

# The expected number of remaining operations: that of anfora after the named stage; "all" for all
# of them.
LEFT = {
    ("TVM", "build"): "all",
    ("TVM", "parse"): "all",
    ("TVM", "parse-verify"): "all",
    ("TVM", "print"): "all",
    ("TVM", "mutate"): "all",
    ("TVM", "mutate-inside"): "all",
    # A binding that repeats another becomes one that names it.
    ("TVM", "cse"): "all",
    ("TVM", "canonicalize"): "all",
    ("TVM", "dce"): "dce",
    ("TVM", "cse-canonicalize-dce"): "cse-canonicalize-dce",
    ("TVM", "fold"): "fold-dce",
    ("TVM", "fold-canonicalize"): "fold-dce",
    ("TVM", "pipeline"): "pipeline",
    # Functions.
    ("TVM", "lift-siblings"): "lift-siblings",
    ("TVM", "lift-nested"): "lift-nested",
    ("MLIR", "print"): "all",
    ("MLIR", "cse-dce"): "cse-dce",
    ("MLIR", "fold-canonicalize"): "fold-dce",
    ("MLIR", "pipeline"): "pipeline",
    ("MLIR", "pipeline-verified"): "pipeline",
    ("LLVM", "print"): "all",
    # It folds as well.
    ("LLVM", "cse-dce"): "pipeline",
    ("LLVM", "dce"): "dce",
    ("LLVM", "fold"): "fold-dce",
    ("LLVM", "fold-canonicalize"): "fold-dce",
    ("LLVM", "pipeline"): "pipeline",
    ("LLVM", "pipeline-verified"): "pipeline",
    ("MLIR", "process"): "pipeline",
    ("LLVM", "process"): "pipeline",
    ("anfora", "process"): "pipeline",
    ("egg", "cse"): "cse",
    ("cranelift-codegen", "build"): "all",
    ("cranelift-codegen", "parse"): "all",
    ("cranelift-codegen", "parse-verify"): "all",
    ("cranelift-codegen", "print"): "all",
    ("cranelift-codegen", "pipeline"): "pipeline",
    ("pliron", "build"): "all",
    ("pliron", "parse"): "all",
    ("pliron", "parse-verify"): "all",
    ("pliron", "print"): "all",
    ("pliron", "visit"): "all",
    ("pliron", "dce"): "dce",
}
# Adding 0 is an identity for scalars of known sign. Systems that sort the operands of sums find
# more duplicates: MLIR finds one of 260 at a million.
TOLERANCE = 0.005


def microseconds(value):
    """Three digits, and no more than it takes.

    >>> [microseconds(v) for v in [0.0034567, 0.034, 1.2345, 17.04, 5321.2]]
    ['0.0035', '0.034', '1.23', '17.0', '5,321']
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.2g}"


def times(value):
    """
    >>> [times(v) for v in [0.456, 9.96, 12.34, 105632.0]]
    ['0.46x', '10x', '12x', '105,632x']
    """
    return f"{value:,.0f}x" if value >= 9.95 else f"{value:.1f}x" if value >= 1 else f"{value:.2f}x"


def ratio(figures, system, stage, n):
    """The largest size up to n with a figure of a system and one of anfora, and how many times as long the system takes; None without.

    >>> from figures import Figure, Figures
    >>> figures = Figures()
    >>> figures.add("anfora", Figure("visit", 1_000, 0.001)); figures.add("TVM", Figure("visit-inside", 1_000, 0.1))
    >>> size, value = ratio(figures, "TVM", "visit-inside", 100_000); size, round(value)
    (1000, 100)
    >>> ratio(figures, "TVM", "dce", 100_000)
    """
    size = figures.largest(system, stage, n)
    ours = figures.microseconds("anfora", AGAINST.get(stage, stage), size)
    return (size, figures.microseconds(system, stage, size) / ours) if ours else None


def cell(figures, system, stage, n, smallest):
    """What a system takes, and how many times as long that is as anfora does; at a smaller size where there is none for this one."""
    if system == "anfora":
        value = figures.microseconds(system, AGAINST.get(stage, stage), n)
        return "–" if value is None else microseconds(value)
    size = figures.largest(system, stage, n)
    if size is None or size < smallest:
        return "–"
    found = ratio(figures, system, stage, size)
    text = microseconds(figures.microseconds(system, stage, size))
    text += f" ({times(found[1])})" if found else ""
    return text if size == n else f"{text} at {size:,}"


def table(figures, n, systems, smallest):
    """Lines of Markdown: a row a stage, microseconds a binding, with ratios.

    >>> from figures import Figure, Figures
    >>> figures = Figures()
    >>> for system, stage, seconds in [("anfora", "print", 0.01), ("anfora", "dce", 0.002), ("MLIR", "print", 0.18)]:
    ...     figures.add(system, Figure(stage, 100_000, seconds))
    >>> figures.add("MLIR", Figure("dce", 10_000, 0.001)); figures.add("anfora", Figure("dce", 10_000, 0.0001))
    >>> print("\\n".join(table(figures, 100_000, ["anfora", "MLIR", "TVM"], 1_000)))
    | N = 100,000 | anfora | MLIR |
    |---|---|---|
    | print | 0.1 | 1.80 (18x) |
    | dead code | 0.02 | 0.1 (10x) at 10,000 |
    """
    systems = [s for s in systems if s in figures.systems()]
    lines = [f"| N = {n:,} | {' | '.join(systems)} |", "|---" * (len(systems) + 1) + "|"]
    for stage, label in STAGES.items():
        cells = [cell(figures, s, stage, n, smallest) for s in systems]
        if any(c != "–" for c in cells[1:]):
            lines.append(f"| {label} | {' | '.join(cells)} |")
    return lines


def goals(figures):
    """Each goal that there are figures for: the line that says whether it holds, and whether it does.

    >>> from figures import Figure, Figures
    >>> figures = Figures()
    >>> figures.add("anfora", Figure("print", 100_000, 0.01)); figures.add("MLIR", Figure("print", 100_000, 0.09))
    >>> list(goals(figures))
    [('MLIR, print, at 100,000: 9.0x, of at least 10x: missed', False)]
    """
    for (system, stage), least in GOALS.items():
        found = ratio(figures, system, stage, GOAL_SIZE)
        if found:
            holds = found[1] >= least
            said = "holds" if holds else "missed"
            yield f"{system}, {STAGES[stage]}, at {found[0]:,}: {times(found[1])}, of at least {times(least)}: {said}", holds
    for stage in ["parse", "print", *PASSES]:
        found = ratio(figures, COLD, stage, GOAL_SIZE)
        if found:
            holds = found[1] <= COLD_MOST
            said = "holds" if holds else "missed"
            yield f"{COLD}, {STAGES[stage]}, at {found[0]:,}: {times(found[1])}, of at most {times(COLD_MOST)}: {said}", holds


def same_work(figures):
    """Each count of operations that was made: the line that compares it with anfora's, and whether it is right.

    >>> from figures import Figure, Figures
    >>> figures = Figures()
    >>> figures.add("anfora", Figure("dce", 1_000, 0.1, 808)); figures.add("LLVM", Figure("dce", 1_000, 0.1, 900))
    >>> list(same_work(figures))
    [('LLVM, dead code, of 1,000: 900 left, 808 expected', False)]
    """
    for (system, stage, n), figure in sorted(figures.best.items()):
        expected = LEFT.get((system, stage))
        if expected is None or figure.operations is None:
            continue
        wanted = n if expected == "all" else figures.operations("anfora", expected, n)
        if wanted is not None:
            right = abs(figure.operations - wanted) <= TOLERANCE * wanted
            yield f"{system}, {STAGES[stage]}, of {n:,}: {figure.operations:,} left, {wanted:,} expected", right


def replace(text, mark, lines):
    """Puts lines between the two marks of a text.

    >>> replace("a\\n<!-- peers -->\\nold\\n<!-- end of peers -->\\nb\\n", "peers", ["new", "lines", ""])
    'a\\n<!-- peers -->\\n\\nnew\\nlines\\n\\n<!-- end of peers -->\\nb\\n'
    """
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    before, rest = text.split(begin)
    _, after = rest.split(end)
    return "".join([before, begin, "\n", "\n".join(lines), "\n", end, after])


def write(path, mark, lines):
    with open(path) as file:
        text = replace(file.read(), mark, lines)
    part = path + ".part"
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)
