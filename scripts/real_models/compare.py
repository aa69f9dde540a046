"""Compares the number of nodes that anfora and other optimizers leave of the same models.

Every optimizer runs in a process of its own on the same file. A result counts if onnxruntime, without
optimisations of its own, computes the same outputs from it as from the file, for inputs of two
different sizes where the model has open extents. anfora must leave no more nodes than the least of
the results that count. With ``--contrib``, which uses operators that only onnxruntime has, it must
leave no more than without.
"""

import os
import subprocess
import sys
import time

import numpy as np
import onnx
import onnxruntime

from readme import Table
from tool import TOOLS

HERE = os.path.dirname(os.path.abspath(__file__))
# A tool that takes longer has no result.
SECONDS = 600
TOLERANCE = 1e-4
README_TABLE = Table("<!-- nodes: scripts/real-models --write -->", "<!-- end of nodes -->")


class Outcome:
    """What a tool made of a model: the nodes, or why the result does not count, and the CPU seconds."""

    def __init__(self, nodes=None, fault=None, seconds=0.0):
        self.nodes, self.fault, self.seconds = nodes, fault, seconds

    def __str__(self):
        return str(self.nodes) if self.fault is None else self.fault.split(":")[0]


def run_process(command):
    """Runs a command; returns the text of its failure, or None, and its CPU seconds."""
    before = os.times()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SECONDS)
        lines = done.stdout.strip().splitlines()
        fault = None if done.returncode == 0 else f"fails: {lines[-1][:100] if lines else done.returncode}"
    except subprocess.TimeoutExpired:
        fault = f"fails: takes more than {SECONDS} s"
    after = os.times()
    return fault, (after.children_user - before.children_user) + (after.children_system - before.children_system)


def outputs_of(path, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return [dict(zip(names, session.run(names, given))) for given in inputs]


def judge(expected, path, inputs):
    """Returns why a result is wrong; None if it computes what is expected."""
    try:
        actual = outputs_of(path, inputs)
    except Exception as error:  # onnxruntime raises many kinds
        return f"wrong: {str(error).splitlines()[0][:100]}"
    for wanted, found in zip(expected, actual):
        if list(wanted) != list(found):
            return "wrong: other outputs"
        for name, e in wanted.items():
            a = found[name]
            if e.shape != a.shape or e.dtype != a.dtype:
                return f"wrong: output {name} is {a.dtype}{list(a.shape)}"
            if e.dtype.kind != "f" and not np.array_equal(e, a):
                return f"wrong: output {name} differs"
            if e.dtype.kind == "f" and e.size:
                scale = max(float(np.max(np.abs(e))), 1e-30)
                if not np.allclose(a / scale, e / scale, rtol=0, atol=TOLERANCE, equal_nan=True):
                    return f"wrong: output {name} differs"
    return None


def check_is_telling(expected):
    """Fails if the outputs would be the same whatever a tool did."""
    for outputs in expected:
        for name, values in outputs.items():
            if values.dtype.kind == "f" and (not np.all(np.isfinite(values)) or np.ptp(values) == 0):
                raise ValueError(f"the comparison shows nothing: output {name} is constant or not finite")


def compare_model(name, source, inputs, args, count_nodes, recorded=None):
    """Runs all optimizers on one model; returns the row of the table.

    With a recorded row of the table, only anfora runs, and the rest is what was recorded.
    """
    work = os.path.join(args.work, "compare")
    os.makedirs(work, exist_ok=True)
    expected = outputs_of(source, inputs)
    if not name.startswith("light_"):
        check_is_telling(expected)
    row = {"model": name, "nodes": count_nodes(onnx.load(source, load_external_data=False))}
    commands = {"anfora": [*args.command, "slim", "--quiet"]}
    commands["contrib"] = [*args.command, "slim", "--quiet", "--contrib"]
    if recorded is None:
        commands |= {tool: [sys.executable, os.path.join(HERE, "tool.py"), tool] for tool in TOOLS}
    else:
        row |= {tool: recorded[tool] for tool in TOOLS}
    for tool, command in commands.items():
        target = os.path.join(work, f"{name}.{tool}.onnx")
        fault, seconds = run_process([*command, source, target])
        fault = fault or judge(expected, target, inputs)
        nodes = None if fault else count_nodes(onnx.load(target, load_external_data=False))
        row[tool] = Outcome(nodes, fault, seconds)
        if os.path.exists(target) and not args.keep:
            os.remove(target)
    return row


def missed_goals(row):
    """Returns what anfora misses on a model."""
    ours = row["anfora"]
    if ours.fault is not None:
        return [f"the result of slim is {ours.fault}"]
    contrib = row["contrib"]
    if contrib.fault is not None:
        return [f"the result of slim --contrib is {contrib.fault}"]
    if contrib.nodes > ours.nodes:
        return [f"slim --contrib leaves {contrib.nodes} nodes, slim leaves {ours.nodes}"]
    others = {tool: row[tool].nodes for tool in TOOLS if row[tool].fault is None}
    least = min(others, key=others.get, default=None)
    if least is not None and others[least] < ours.nodes:
        return [f"slim leaves {ours.nodes} nodes, {least} leaves {others[least]}"]
    return []


def table(rows):
    """Returns the table in Markdown."""
    columns = ["model", "nodes", "anfora", "contrib", *TOOLS]
    titles = {"model": "model", "nodes": "nodes before", "anfora": "`anfora slim`", "contrib": "`slim --contrib`"}
    titles |= {tool: tool for tool in TOOLS}
    lines = ["| " + " | ".join(titles[c] for c in columns) + " |", "|---|" + "---:|" * (len(columns) - 1)]
    for row in rows:
        lines.append("| " + " | ".join(str(row[c]) for c in columns) + " |")
    return "\n".join(lines) + "\n"


def recorded_rows():
    """Returns what each tool left of each model according to the table in the README."""
    rows = {}
    for model, _, _, _, *results in README_TABLE.read():
        outcomes = (Outcome(int(cell)) if cell.isdigit() else Outcome(fault=cell) for cell in results)
        rows[model] = dict(zip(TOOLS, outcomes, strict=True))
    return rows


def compare(models, args, count_nodes):
    """Compares the optimizers on models, each a name, a path and a list of inputs. Returns the rows and what is missed."""
    rows, missed = [], []
    recorded = recorded_rows() if args.recorded else {}
    for name, source, inputs in models:
        started = time.monotonic()
        row = compare_model(name, source, inputs, args, count_nodes, recorded[name] if args.recorded else None)
        rows.append(row)
        missed += [f"{name}: {what}" for what in missed_goals(row)]
        seconds = ", ".join(f"{tool} {row[tool].seconds:.2f}" for tool in ["anfora", *TOOLS])
        faults = [f"{tool} {row[tool].fault}" for tool in TOOLS if row[tool].fault]
        print(f"{name}: {time.monotonic() - started:.0f} s (CPU: {seconds})", *faults, sep="\n  ", file=sys.stderr)
    return rows, missed
