"""The code of the Python guide, and of the Python section of the README, page by page.

The ``python`` blocks of a page run in order, in one namespace and in a temporary folder with the
models of ``examples``. What a block prints is the ``text`` block that follows it. In the guide, a
block without one prints nothing.
A drawing that a page writes (``*.svg``) is beside the page, which shows it.
``ANFORA_BLESS=1`` writes what was printed into the pages, and the drawings.
"""

import ast
import contextlib
import importlib.util
import io
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "docs" / "python"
PAGES = [*sorted(GUIDE.glob("*.md")), ROOT / "README.md"]

#: Packages that the toolkit does not need. A block that imports one is skipped where it is missing.
OPTIONAL = ("numpy", "ml_dtypes", "onnx", "onnx_ir", "onnxruntime", "ray", "tvm")


@dataclass
class Block:
    """A fenced block of a page: its language, its lines, and where they begin and end."""

    language: str
    code: str
    first: int
    end: int


def blocks_of(text):
    """Returns the fenced blocks of a page. Lines are counted from 0; `end` is that of the fence."""
    blocks, begin, language = [], None, ""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if begin is None and line.startswith("```"):
            begin, language = i + 1, line[3:].strip()
        elif begin is not None and line == "```":
            blocks.append(Block(language, "\n".join(lines[begin:i]), begin, i))
            begin = None
    assert begin is None, f"the block at line {begin} has no end"
    return blocks


def missing_package(code):
    """Returns the first optional package that code imports and that is not installed."""
    for node in ast.walk(ast.parse(code)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
        for name in names:
            package = name.split(".")[0]
            if package in OPTIONAL and not is_installed(package):
                return package
    return None


def is_installed(package):
    """Returns true if a package can be imported. A folder of its name, such as `onnx` of the
    repository, is none."""
    spec = importlib.util.find_spec(package)
    return spec is not None and spec.origin is not None


def run(page, text, may_print=False):
    """Runs the blocks of a page. Returns the page with what they printed, and the name of the
    package for whose lack the rest was left out."""
    names = {"__name__": "__guide__"}
    blocks = blocks_of(text)
    lines = text.split("\n")
    printed = []
    for i, block in enumerate(blocks):
        if block.language != "python":
            continue
        package = missing_package(block.code)
        if package is not None:
            return text, package
        out = io.StringIO()
        # Empty lines before the code: tracebacks then name the lines of the page.
        code = compile("\n" * block.first + block.code, str(page), "exec")
        with contextlib.redirect_stdout(out):
            exec(code, names)
        shown = out.getvalue().rstrip("\n")
        following = blocks[i + 1] if i + 1 < len(blocks) else None
        gap = "".join(lines[block.end + 1 : following.first - 1]).strip() if following else "none"
        if following is not None and following.language == "text" and not gap:
            printed.append((following, shown))
        elif not may_print:
            place = f"{page}:{block.first}"
            assert not shown, f"{place}: the block prints, and no `text` block follows: {shown}"
    for following, shown in reversed(printed):
        lines[following.first : following.end] = shown.split("\n") if shown else []
    return "\n".join(lines), None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    for model in (ROOT / "examples").glob("*.onnx"):
        shutil.copy(model, tmp_path / "examples")
    text = page.read_text(encoding="utf-8")
    now, package = run(page, text, may_print=page.parent == ROOT)
    drawings = sorted(tmp_path.glob("*.svg"))
    if package is None and os.environ.get("ANFORA_BLESS") == "1":
        page.write_text(now, encoding="utf-8")
        for drawing in drawings:
            shutil.copy(drawing, page.parent)
        return
    if package is not None:
        pytest.skip(f"the rest of the page needs the package {package}")
    assert now == text
    for drawing in drawings:
        assert f"({drawing.name})" in text
        assert drawing.read_text(encoding="utf-8") == (page.parent / drawing.name).read_text(encoding="utf-8")


def test_the_index_names_every_page():
    index = (GUIDE / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in GUIDE.glob("*.md")} - {"README.md"}
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages
    assert len(pages) >= 6


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.name)
def test_links_of_the_guide_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        assert (page.parent / link).exists(), link


@pytest.mark.parametrize("page", sorted(GUIDE.glob("*.md")), ids=lambda page: page.name)
def test_lines_of_the_guide_are_at_most_100_columns(page):
    shown = False
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
        if line.startswith("```"):
            shown = not shown and line == "```text"
        assert shown or line.startswith("|") or len(line) <= 100, f"{page.name}:{number}"


def test_a_difference_is_found():
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"
    assert run("page", page) == (page.replace("3\n", "2\n"), None)
    with pytest.raises(AssertionError, match="no `text` block follows"):
        run("page", "```python\nprint(1)\n```\n")
    assert run("page", "```python\nprint(1)\n```\n", may_print=True)[1] is None
    with pytest.raises(ZeroDivisionError):
        run("page", "```python\n1 / 0\n```\n")


def test_blocks_that_need_a_missing_package_are_left_out(monkeypatch):
    monkeypatch.setattr(f"{__name__}.OPTIONAL", ("absent_package",))
    page = "```python\nx = 1\n```\n\n```python\nfrom absent_package.x import y\n```\n"
    assert run("page", page) == (page, "absent_package")
    assert run("page", page.replace("absent_package.x import y", "sys import path"))[1] is None
