"""The types of the package, for programs that are checked by mypy: `typing/*.py`."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import anfora as af
import pytest

TYPING = Path(__file__).parent / "typing"
EXAMPLES = sorted(TYPING.glob("*.py"))
PACKAGE = Path(af.__file__).parent


def mypy(tmp_path, *arguments):
    """Runs mypy in an empty folder, and returns its status and the errors by file and line."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    if not (PACKAGE / "_anfora.pyi").exists():
        pytest.skip("the package has no stub _anfora.pyi")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, arguments)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(?:.*[/\\])?(\w+\.py):(\d+): error: .*?\[([\w-]+)\]$", done.stdout, re.M)
    assert len(found) == done.stdout.count(": error: "), done.stdout
    return done, {(name, int(line), code) for name, line, code in found}


RIGHT = [path for path in EXAMPLES if path.name != "wrong.py"]


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.name)
def test_examples_are_typed(path, tmp_path):
    done, errors = mypy(tmp_path, path)
    assert errors == set() and done.returncode == 0, done.stdout + done.stderr


def test_mistakes_are_found(tmp_path):
    wrong = TYPING / "wrong.py"
    expected = set()
    for number, line in enumerate(wrong.read_text(encoding="utf-8").splitlines(), 1):
        expected |= {("wrong.py", number, code) for code in re.findall(r"# error: (\S+)", line)}
    assert len(expected) >= 10
    done, errors = mypy(tmp_path, wrong)
    assert errors == expected, done.stdout


def test_typed_examples_run(capsys):
    mod = af.loads(
        "def @main(%x: Tensor[(4,), float32]) {"
        " let %a = exp(%x); let %b = multiply(%a, 2f); let %c = add(1f, 2f); multiply(%b, %c) }"
    )
    programs = runpy.run_path(str(TYPING / "programs.py"))
    passes = runpy.run_path(str(TYPING / "passes.py"))
    assert programs["look"](mod)[1].startswith("a exp (4,) <string>:1:")
    assert passes["optimize"](mod).binding_count == 2 < mod.binding_count
    assert programs["change"](mod) == {"double": 1}
    assert programs["build"]().name == "main"
    assert programs["mistakes"]() != []
    assert programs["models"](af.onnx.to_bytes(mod))["main"].ret_type == mod["main"].ret_type
