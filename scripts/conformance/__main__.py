"""Holds anfora against the test cases that the ONNX project publishes in the PyPI package `onnx`.

Of every case (steps.py):

- run: the model is imported, optimised with `-O3` and interpreted, and its outputs compared with those stored;
- export: it is imported, optimised with `-O2` and exported; the checker has to accept the result, and onnxruntime (or, where that
  does not run the original, the reference implementation of the package) has to compute the stored outputs from it;
- text: it is converted to the text format and back, which the same is asked of;
- older: it is converted to each of several older versions of the operators; a version that lacks an operator which no rule writes in
  others is passed over, and of the others the same is asked;
- rows: with every node kept as it is, the types of the outputs accept those stored; every operator of every domain of the package has a
  row in the table of result types, and the rows agree with the schemas (signatures.py);
- types: the types that are found where the file says those of the inputs only have to say all that those of `onnx.shape_inference` say,
  names of dimensions that it makes up apart; values of nodes that are kept as they are may say less.

The exit status is 1 if anything is wrong, or typed with less, if the program panics, or if fewer node tests pass than `--least`, when all run.
"""

import argparse
import json
import os
import sys
import time

FIRST = os.path.dirname(os.path.abspath(__file__))


def parse():
    parser = argparse.ArgumentParser(
        prog="scripts/onnx-conformance", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", metavar="SUBSTRING", help="cases whose name has this in it")
    parser.add_argument("--op", action="append", metavar="OPERATOR", help="cases whose model has this operator")
    parser.add_argument("--kind", action="append", choices=["node", "simple", "pytorch-operator", "pytorch-converted", "light"])
    parser.add_argument("--step", action="append", choices=["run", "export", "text", "older", "types", "rows"], help="only this step; may be repeated")
    parser.add_argument("--least", type=int, default=1721, help="node tests that have to pass, interpreted (%(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (%(default)s)")
    parser.add_argument("--json", metavar="FILE", help="where to write how every step of every case ended")
    parser.add_argument("--verbose", action="store_true", help="all reasons")
    parser.add_argument("anfora", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    import workers

    if sys.argv[1:2] == ["--serve"]:
        workers.serve(sys.argv[2], sys.argv[3:])
        return 0
    args = parse()
    # These need what is not there before the first run.
    import cases
    import report
    import signatures

    started = time.monotonic()
    found = cases.all_cases(args.cache)
    chosen = [
        c
        for c in found
        if (not args.only or any(o in c.name for o in args.only))
        and (not args.op or any(o in c.ops for o in args.op))
        and (not args.kind or c.kind in args.kind)
    ]
    # The large ones first, so that no process is left with one at the end.
    order = sorted(chosen, key=lambda c: -os.path.getsize(c.model))
    results = {}

    def done(case, steps):
        if steps is None:
            steps = {args.step[0] if args.step else "run": ("crash", "the process that runs the models died")}
        results[case.name, case.kind] = steps
        if sys.stderr.isatty():
            print(f"\r{len(results)} of {len(chosen)}", end="", file=sys.stderr, flush=True)

    log = os.path.join(args.cache, "log.txt")
    with open(log, "w") as errors:
        workers.do_all(args.anfora, args.step or [], order, args.jobs, errors, done)
    ended = [(c, results[c.name, c.kind]) for c in chosen]
    report.show(ended, args.verbose)
    if args.json:
        with open(args.json, "w") as f:
            json.dump(report.as_json(ended), f, indent=1)
    print(f"{len(chosen)} cases in {time.monotonic() - started:.0f} s")
    too_few = False
    if not args.step or "run" in args.step:
        passes = sum(c.kind == "node" and steps["run"][0] == "pass" for c, steps in ended)
        print(f"{passes} node tests pass, interpreted")
        too_few = len(chosen) == len(found) and passes < args.least
    misfits = signatures.problems(args.anfora) if not args.step or "rows" in args.step else []
    for line in misfits:
        print(f"table of result types: {line}")
    if too_few:
        print(f"at least {args.least} have to pass")
    return 1 if report.failed(ended) or too_few or misfits else 0


if __name__ == "__main__":
    sys.path.insert(0, FIRST)
    sys.exit(main())
