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


def of_pass(entry: dict) -> str:
    if entry["name"] == "BindParams":
        return BIND_PARAMS
    options = [o for o in entry["options"] if o["name"].isidentifier()]
    if words := [o["name"] for o in options if keyword.iskeyword(o["name"])]:
        sys.exit(f"{entry['name']} has an option that Python cannot name: {words[0]}")
    parameters = "".join(f", {o['name']}: {o['type']} | None = None" for o in options)
    signature = f"*{parameters}" if parameters else ""
    lines = [f"def {entry['name']}({signature}) -> Pass:"]
    if len(lines[0]) > 100:
        rows = "".join(f"    {o['name']}: {o['type']} | None = None,\n" for o in options)
        lines = [f"def {entry['name']}(\n    *,\n{rows}) -> Pass:"]
    doc = wrapped(entry["doc"].rstrip(".") + ".", "    ")
    lines.append(f'    """{doc}' + ("" if options else '"""'))
    if options:
        lines.append("")
        for o in options:
            default = f" Default: {o['default']}." if o["default"] else ""
            text = f"{o['name']}: {o['doc'].rstrip('.')}.{default}"
            lines.append("    " + wrapped(text, "        "))
        lines.append('    """')
    given = ", ".join(f'"{o["name"]}": {o["name"]}' for o in options)
    lines.append(f'    return _anfora._make_pass("{entry["name"]}", {{{given}}})')
    return "\n".join(lines)


def of_pipeline(name: str, text: str, doc: str) -> str:
    about = wrapped(f"Runs the pipeline {name}: {doc}.", "    ")
    return (
        f"def {name}(mod: Module, context: PassContext | None = None) -> Module:\n"
        f'    """{about}"""\n'
        f'    return _anfora._parse_pipeline("{name}")(mod, context)'
    )


def names() -> list[str]:
    passes = [entry["name"] for entry in _anfora._registered_passes()]
    return sorted(passes + [p[0] for p in _anfora._registered_pipelines() if p[0].isidentifier()])


def text() -> str:
    pipelines = [p for p in _anfora._registered_pipelines() if p[0].isidentifier()]
    listed = "__all__ = [\n" + "".join(f'    "{name}",\n' for name in names()) + "]\n"
    functions = [of_pass(entry) for entry in _anfora._registered_passes()]
    functions += [of_pipeline(*p) for p in pipelines]
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
