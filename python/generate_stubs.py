"""Writes anfora/_anfora.pyi, the types of the extension module.

maturin reads them from the compiled module. What Rust has no type for (the keys of a dictionary, a
union) is added here. ``--check`` writes nothing, and fails if the file is out of date.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
STUB = HERE / "python/anfora/_anfora.pyi"

IMPORTS = """
import collections.abc
import typing
from typing import Any, Final, SupportsIndex, final

from typing_extensions import disjoint_base

from ._errors import Diagnostic, Location
"""

#: The types of properties, by name.
PROPERTIES = {
    "attrs": "dict[str, Any]",
    "config": "dict[str, str]",
    "functions": "dict[str, Function]",
    "instruments": "list[Any]",
    "loc": "Location | None",
    "op": "str | Expr | None",
    "statistics": "dict[str, dict[str, int]]",
}


#: The two ways to take items of a sequence.
ITEMS = """    @typing.overload
    def __getitem__(self, index: SupportsIndex, /) -> Binding: ...
    @typing.overload
    def __getitem__(self, index: slice, /) -> list[Binding]: ...
"""


def refined(text: str) -> str:
    text = re.sub(r"^from typing import .*\n(?:from typing_extensions import .*\n)?", "", text, flags=re.M)
    docs, _, rest = text.partition('"""\n\n')
    text = docs + '"""\n' + IMPORTS + "\n" + rest.lstrip("\n")
    # A type that Rust states as text stands in quotes.
    text = re.sub(r'(?<=: )"([^"\n]+)"(?=[,)=\s])', r"\1", text)
    text = re.sub(r'-> "([^"\n]+)":', r"-> \1:", text)
    for name, kind in PROPERTIES.items():
        text = re.sub(rf"(    def {name}\(self, /\) -> )[^:\n]*:", rf"\g<1>{kind}:", text)
    text = re.sub(r"(class Type:.*?def shape\(self, /\) -> )[^:\n]*:", r"\1tuple[int | str | None, ...] | None:", text, flags=re.S)
    text = re.sub(r"(class Literal:.*?def shape\(self, /\) -> )[^:\n]*:", r"\1tuple[int, ...]:", text, flags=re.S)
    one = r"    def __getitem__\(self, index: [^)]*\) -> Any: \.\.\.\n"
    head, bindings, rest = text.partition("class Bindings:")
    return head + bindings + re.sub(one, ITEMS, rest, count=1)


def generated() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "maturin", "generate-stubs", "--out", folder, "--profile", "release"]
        subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True)
        (found,) = Path(folder).rglob("_anfora.pyi")
        return refined(found.read_text(encoding="utf-8"))


def main() -> int:
    text = generated()
    if "--check" not in sys.argv:
        STUB.write_text(text, encoding="utf-8")
        return 0
    if STUB.exists() and STUB.read_text(encoding="utf-8") == text:
        return 0
    print(f"{STUB.name} is out of date: run {Path(__file__).name}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
