"""Optimises models as they occur in practice with anfora, and holds the results against their goals.

The light models of the package onnx are optimised in four ways (``light.py``). They and transformers
are computed in float16 (``mixed.py``). They and models as exporters write them (``exporters.py``) are
then made as small as they get by ``anfora slim`` and by other tools (``compare.py``).
"""

import argparse
import os
import shutil
import sys

import compare
import exporters
import light
import mixed


def models_to_compare(only, args):
    """Yields the name, the path and the inputs of each model."""
    for name in light.GOALS:
        if name in only:
            path = light.model_path(name)
            yield f"light_{name}", path, [light.inputs_of(light.onnx.load(path), args.seed)]
    for name, make in exporters.MODELS.items():
        if name in only:
            yield name, *make(os.path.join(args.work, f"{name}.onnx"), args.seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [*light.GOALS, *exporters.MODELS]
    parser.add_argument("--work", required=True, help="directory for the files that are written")
    parser.add_argument("--only", action="append", choices=names, help="this model only")
    parser.add_argument("--part", choices=["light", "mixed", "compare"], help="this part only")
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--keep", action="store_true", help="keep the files that are written (gigabytes)")
    parser.add_argument("--write", action="store_true", help="put the table of node counts into README.md")
    parser.add_argument("--recorded", action="store_true", help="take what other tools leave from the table in README.md")
    parser.add_argument("command", nargs="+", help="the anfora program")
    args = parser.parse_args()
    if args.recorded and args.write:
        parser.error("--write puts down what the tools leave, and --recorded does not run them")
    only = args.only or names

    shutil.rmtree(args.work, ignore_errors=True)
    os.makedirs(args.work)
    failures = []
    if args.part in (None, "light"):
        failures += light.check_models([name for name in light.GOALS if name in only], args)
    if args.part in (None, "mixed"):
        failures += mixed.check_models([name for name in mixed.MODELS if name in only], args)
    if args.part in (None, "compare"):
        rows, missed = compare.compare(models_to_compare(only, args), args, light.count_nodes)
        failures += missed
        print(compare.table(rows), end="")
        if args.write and not args.only:
            compare.README_TABLE.write(compare.table(rows))
    for failure in failures:
        print(failure)
    if not failures:
        print("all goals are met")
    if not args.keep:
        shutil.rmtree(args.work, ignore_errors=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
