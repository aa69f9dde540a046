"""Writes anfora/_passes.py: a function for each registered pass and pipeline, with its options. The
list of names in anfora/transform.py is brought up to date too.

Run it after a pass, an option or a pipeline was added; a test holds the file against the registry.
"""

from __future__ import annotations

import keyword
import sys
import textwrap
from pathlib import Path

from anfora import _anfora

HEAD = '''"""The passes of the registry and the named pipelines. Written by generate_passes.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import _anfora
from ._anfora import Module, Pass, PassContext

'''

BIND_PARAMS = '''def BindParams(func_name: str, params: Mapping[str, Any]) -> Pass:
    """Binds parameters of a function to constants, and removes them from its signature.

    func_name: the function. params: the constants by the name of the parameter: literals, numbers, or
        arrays of NumPy.
    """
    return _anfora._bind_params(func_name, dict(params))'''


def wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, 100 - len(indent)).replace("\n", "\n" + indent)


def options_of(entry: dict) -> list[dict]:
    """Returns the options that a caller in Python can name."""
    options = [o for o in entry["options"] if o["name"].isidentifier()]
    if words := [o["name"] for o in options if keyword.iskeyword(o["name"])]:
        sys.exit(f"{entry['name']} has an option that Python cannot name: {words[0]}")
    return options


def function(name: str, parameters: list[str], result: str, doc: str, options: list[dict]) -> list[str]:
    """Returns the lines of a function without its body; the options follow the parameters."""
    parameters = parameters + (["*"] if options else [])
    parameters += [f"{o['name']}: {o['type']} | None = None" for o in options]
    lines = [f"def {name}({', '.join(parameters)}) -> {result}:"]
    if len(lines[0]) > 100:
        rows = "".join(f"    {parameter},\n" for parameter in parameters)
        lines = [f"def {name}(\n{rows}) -> {result}:"]
    lines.append(f'    """{wrapped(doc, "    ")}' + ("" if options else '"""'))
    if options:
        lines.append("")
        for o in options:
            default = f" Default: {o['default']}." if o["default"] else ""
            text = f"{o['name']}: {o['doc'].rstrip('.')}.{default}"
            lines.append("    " + wrapped(text, "        "))
        lines.append('    """')
    return lines


def made(entry: dict, options: list[dict]) -> str:
    """Returns the expression that makes a pass or pipeline with the given options."""
    given = ", ".join(f'"{o["name"]}": {o["name"]}' for o in options)
    return f'_anfora._make_pass("{entry["name"]}", {{{given}}})'


def of_pass(entry: dict) -> str:
    if entry["name"] == "BindParams":
        return BIND_PARAMS
    options = options_of(entry)
    lines = function(entry["name"], [], "Pass", entry["doc"].rstrip(".") + ".", options)
    return "\n".join([*lines, f"    return {made(entry, options)}"])


def of_pipeline(entry: dict) -> str:
    options = options_of(entry)
    parameters = ["mod: Module", "context: PassContext | None = None"]
    about = f"Runs the pipeline {entry['name']}: {entry['doc']}."
    lines = function(entry["name"], parameters, "Module", about, options)
    return "\n".join([*lines, f"    return {made(entry, options)}(mod, context)"])


def names() -> list[str]:
    passes = [entry["name"] for entry in _anfora._registered_passes()]
    return sorted(passes + [entry["name"] for entry in pipelines()])


def pipelines() -> list[dict]:
    """Returns the pipelines whose names are names in Python."""
    return [entry for entry in _anfora._registered_pipelines() if entry["name"].isidentifier()]


def text() -> str:
    listed = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names()) + "]\n"
    functions = [of_pass(entry) for entry in _anfora._registered_passes()]
    functions += [of_pipeline(entry) for entry in pipelines()]
    return HEAD + listed + "\n\n" + "\n\n\n".join(functions) + "\n"


#: The names that anfora/transform.py has itself.
OWN = [
    "Outcome",
    "Pass",
    "PassContext",
    "PassInfo",
    "PassInstrument",
    "Repeat",
    "RunCodegen",
    "Sequential",
    "byoc",
    "dataflowblock_pass",
    "function_pass",
    "list_passes",
    "list_pipelines",
    "module_pass",
    "parse_pipeline",
    "pass_instrument",
]


def transform(before: str) -> str:
    head, _, _ = before.partition("__all__ = [")
    return head + "__all__ = [\n" + "".join(f'    "{n}",\n' for n in sorted(OWN + names())) + "]\n"


def files() -> dict[Path, str]:
    """Returns the files and what has to be in them."""
    folder = Path(_anfora.__file__).parent
    face = folder / "transform.py"
    return {folder / "_passes.py": text(), face: transform(face.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")
