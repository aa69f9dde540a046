"""What is generated is up to date, and what is said about types is true."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent


def test_the_functions_of_passes_are_up_to_date():
    spec = importlib.util.spec_from_file_location("generate_passes", HERE / "generate_passes.py")
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for path, content in generate.files().items():
        assert path.read_text(encoding="utf-8") == content, f"run generate_passes.py: {path.name}"


#: The settings of mypy.
SETTINGS = str(HERE / "pyproject.toml")


@pytest.mark.parametrize(
    "command",
    [
        ["mypy", "--strict", "-p", "anfora", "--config-file", SETTINGS],
        [
            *("mypy.stubtest", "anfora", "--mypy-config-file", SETTINGS),
            *("--allowlist", "allowed", "--ignore-unused-allowlist"),
        ],
    ],
    ids=["mypy", "stubtest"],
)
def test_types_are_true(command, tmp_path):
    pytest.importorskip("mypy")
    # The bridge to TVM cannot be imported without TVM.
    (tmp_path / "allowed").write_text("anfora\\.(tvm|_tvm_\\w+)(\\..*)?\n")
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
