"""The table of result types that anfora has for kept nodes, against the schemas that ONNX and onnxruntime publish.

Every operator of the `onnx` package has a row in every version, and every row agrees with the schemas: in the number of outputs, in the
element types, and in what is drawn at random. Of the domain of onnxruntime only the usual operators have rows.
"""

import json
import subprocess

import onnx
from onnx.defs import OpSchema

# The package says so of an operator that computes its result from its operands alone.
NOT_RANDOM = {"AffineGrid"}
# Outputs that the documentation gives the type of an input, though the schema has two names for it.
OF_INPUT = {("com.microsoft", "QGemm", "of 8")}
KINDS = {"a sequence": "seq(", "a value that may be missing": "optional("}


class Schema:
    """What the comparison needs of a schema of either package."""

    def __init__(self, schema, type_of):
        self.domain, self.name, self.version = schema.domain, schema.name, schema.since_version
        self.inputs = [(type_of(p), is_variadic(p)) for p in schema.inputs]
        self.outputs = [(type_of(p), is_variadic(p)) for p in schema.outputs]
        self.allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
        self.attributes = set(schema.attributes)
        determinism = getattr(schema, "node_determinism", None)
        has_graphs = any(str(a.type).endswith((".GRAPH", ".GRAPHS")) for a in schema.attributes.values())
        self.is_random = None
        if determinism is not None and not has_graphs and self.name not in NOT_RANDOM:
            self.is_random = determinism == OpSchema.NodeDeterminism.NonDeterministic

    def types(self, type_str):
        """The types that a type or a parameter stands for."""
        return self.allowed.get(type_str, {type_str})

    def input_type(self, i):
        if i < len(self.inputs):
            return self.inputs[i][0]
        return self.inputs[-1][0] if self.inputs and self.inputs[-1][1] else None

    def __str__(self):
        return f"{self.domain}.{self.name} (version {self.version})" if self.domain else f"{self.name} (version {self.version})"


def is_variadic(parameter):
    return str(parameter.option).endswith("Variadic")


def of_onnx():
    return [Schema(s, lambda p: p.type_str) for s in onnx.defs.get_all_schemas_with_history()]


def of_onnxruntime():
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return [Schema(s, lambda p: p.typeStr) for s in state.get_all_operator_schema() if s.domain == "com.microsoft"]


def type_text(element):
    """The name that schemas give a tensor of an element type.

    >>> type_text("float32"), type_text("int64")
    ('tensor(float)', 'tensor(int64)')
    """
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(element, element) })"


def element_problem(schema, number, said):
    """In what the element types that a row gives an output contradict the schema; None if in nothing."""
    stated = schema.outputs[min(number, len(schema.outputs) - 1)][0]
    allowed = schema.types(stated)
    if said in ("", "by the node"):
        return None
    if said in KINDS:
        return None if all(t.startswith(KINDS[said]) for t in allowed) else f"is not always {said}"
    by_attribute = False
    if said.startswith("element of "):
        given = schema.types(schema.input_type(int(said.removeprefix("element of "))))
        return None if any(t.startswith(("seq(", "optional(")) for t in given) else f"`{said}` is one of {sorted(given)}"
    for choice in said.split(", "):
        word, _, rest = choice.removeprefix("same as ").partition(" ")
        if choice.startswith("same as ") or word in ("of", "exchanged"):
            given = schema.input_type(int(rest or word))
            if given is None:
                return f"`{choice}`: there is no such input"
            fits = given == stated or by_attribute or word == "exchanged" or (schema.domain, schema.name, choice) in OF_INPUT
            if not fits:
                return f"`{choice}` has the type {given}, the output {stated}"
        elif word in ("attribute", "tensor"):
            by_attribute = True
            if rest not in schema.attributes:
                # A later version may have it.
                continue
        elif type_text(word) not in allowed:
            return f"`{word}` is not one of {sorted(allowed)}"
    return None


def row_problems(schema, row):
    """In what a row contradicts a schema."""
    outputs, variadic = len(schema.outputs), bool(schema.outputs) and schema.outputs[-1][1]
    if variadic != row["repeats"] or (len(row["outputs"]) < outputs if variadic else len(row["outputs"]) != outputs):
        yield f"{schema}: the row has {len(row['outputs'])} outputs, the schema {outputs}"
    for number, said in enumerate(row["outputs"][:outputs]):
        problem = element_problem(schema, number, said)
        if problem:
            yield f"{schema}, output {number}: {problem}"
    if schema.is_random is not None and schema.is_random == row["pure"]:
        yield f"{schema}: the row says pure={row['pure']}"


def problems(anfora):
    """Operators without a row, rows that contradict schemas, and rows without an operator."""
    listed = subprocess.run([anfora, "onnx-ops", "--json"], capture_output=True, check=True, text=True).stdout
    rows = [json.loads(line) for line in listed.splitlines()]
    found, used = [], set()
    newest = {}
    for schema in of_onnx():
        newest[schema.domain] = max(newest.get(schema.domain, 0), schema.version)
    for schema in of_onnx() + of_onnxruntime():
        holding = [
            i
            for i, r in enumerate(rows)
            if (r["domain"], r["operator"]) == (schema.domain, schema.name) and r["from"] <= schema.version <= r["to"]
        ]
        used.update(holding)
        if not holding and schema.domain != "com.microsoft":
            found.append(f"{schema}: there is no row")
        if len(holding) > 1:
            found.append(f"{schema}: there are {len(holding)} rows")
        for i in holding[:1]:
            found += row_problems(schema, rows[i])
    for i, row in enumerate(rows):
        if i not in used:
            found.append(f"{row['domain']}.{row['operator']}, versions {row['from']} to {row['to']}: no schema has such an operator")
        if row["domain"] in newest and row["to"] > newest[row["domain"]]:
            found.append(f"{row['domain']}.{row['operator']}: version {row['to']} is not known to the package")
    return found
