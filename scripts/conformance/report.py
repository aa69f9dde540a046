"""The table, the reasons and the totals."""

from collections import Counter, defaultdict

FAILED = ["wrong", "crash", "less"]
# What a table shows of a step, in this order.
COLUMNS = {
    "run": ["pass", "wrong", "crash", "unsupported"],
    "export": ["pass", "wrong", "crash", "unsupported", "unproved"],
    "text": ["pass", "wrong", "crash", "unsupported", "unproved"],
    "older": ["pass", "wrong", "crash", "unsupported", "unproved"],
    "types": ["pass", "wrong", "crash", "less", "unsupported", "unproved"],
    "rows": ["pass", "wrong", "crash", "untyped"],
}


def table(rows):
    """Lines of a table, columns aligned, those left out that hold nothing but zeros.

    >>> print("\\n".join(table([("Add", {("run", "pass"): 3}), ("Celu", {("run", "pass"): 1, ("run", "wrong"): 2})])))
          run   run
         pass wrong
    Add     3     -
    Celu    1     2
    """
    columns = [(s, c) for s, names in COLUMNS.items() for c in names if any(r.get((s, c)) for _, r in rows)]
    lines = [["", *(s for s, _ in columns)], ["", *(c for _, c in columns)]]
    lines += [[op, *(str(r.get(c) or "-") for c in columns)] for op, r in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns) + 1)]
    return [
        " ".join([line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:]))]).rstrip() for line in lines
    ]


def counts_by_op(results):
    by_op = defaultdict(Counter)
    for case, steps in results:
        for step, (status, _) in steps.items():
            by_op[case.op][step, status] += 1
    return by_op


def totals(results):
    total = Counter((step, status) for _, steps in results for step, (status, _) in steps.items())
    lines = []
    for step, names in COLUMNS.items():
        said = [f"{total[step, c]} {c}" for c in names if total[step, c]]
        lines.append(f"{step:7} {', '.join(said)}")
    return lines


def reasons(results, statuses):
    """Why steps ended so: each reason with how many cases it holds for, and one of them, the most frequent first."""
    found = defaultdict(list)
    for case, steps in results:
        for step, (status, why) in steps.items():
            if status in statuses:
                found[step, status, why].append(case.name)
    order = sorted(found.items(), key=lambda item: (list(COLUMNS).index(item[0][0]), -len(item[1]), item[0]))
    return [f"{len(names):5} {step} {status}: {why} ({names[0]})" for (step, status, why), names in order]


def failed(results):
    """Every step that ended as none may."""
    order = sorted(results, key=lambda r: r[0].name)
    return [
        f"{case.name} ({case.op}, {opset(case)}), {step}: {status}: {why}"
        for case, steps in order
        for step, (status, why) in steps.items()
        if status in FAILED
    ]


def opset(case):
    return ", ".join(f"{domain or 'opset'} {version}" for domain, version in case.opsets.items())


def show(results, verbose):
    by_op = counts_by_op(results)
    for line in table(sorted(by_op.items())):
        print(line)
    groups = {"not supported": ["unsupported"], "not compared": ["unproved"], "less than ONNX finds": ["less"], "not typed": ["untyped"]}
    for title, statuses in groups.items():
        lines = reasons(results, statuses)
        if lines:
            most = len(lines) if verbose else 40
            print(f"\n{title}:")
            print("\n".join(lines[:most]))
            if lines[most:]:
                print(f"      and {len(lines) - most} more reasons (--verbose)")
    wrong = failed(results)
    if wrong:
        print("\nwrong:")
        print("\n".join(wrong))
    print()
    print("\n".join(totals(results)))


def as_json(results):
    return [
        {
            "name": case.name,
            "kind": case.kind,
            "op": case.op,
            "opsets": case.opsets,
            "steps": {step: {"status": status, "why": why} for step, (status, why) in steps.items()},
        }
        for case, steps in results
    ]
