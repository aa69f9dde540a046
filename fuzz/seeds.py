"""Writes the first inputs of the fuzz targets to target/fuzz/corpus, from the tests, the documentation and the examples
of the repository. `fuzz/run --keep` then adds to fuzz/corpus those that reach new code.

    source scripts/onnx-env.sh && "$python" fuzz/seeds.py "$anfora"

The argument is the command line of anfora, which writes the models. The others are those of scripts/odd_models.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts/odd_models"))
from models import MODELS  # noqa: E402
FOUND = ROOT / "target/fuzz/corpus"
LONGEST = 4096


def write(target, contents):
    if 0 < len(contents) <= LONGEST:
        folder = FOUND / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / hashlib.sha1(contents).hexdigest()).write_bytes(contents)


def programs(text):
    """The input and the output of a file test, and each of their functions alone."""
    for part in text.split("// ----\n"):
        part = re.sub(r"^//.*\n", "", part, flags=re.MULTILINE)
        yield part
        yield from re.split(r"^(?=def )", part, flags=re.MULTILINE)


def models(program, text):
    """A program as a model, before and after the passes; nothing if it cannot be one."""
    for command in (["convert"], ["opt", "-O3", "--quiet"]):
        output = ROOT / "target/fuzz/seed.onnx"
        output.unlink(missing_ok=True)
        arguments = [program, command[0], "-", "--from", "anf", "-o", str(output), *command[1:]]
        subprocess.run(arguments, input=text.encode(), capture_output=True)
        if output.exists():
            yield output.read_bytes()


def main():
    [program] = sys.argv[1:]
    for file in sorted((ROOT / "tests/files").rglob("*.anf")):
        text = file.read_text()
        write("pipeline", text.splitlines()[0].removeprefix("// RUN:").split(";")[0].strip().encode())
        for part in programs(text):
            write("text", part.encode())
            if "@main" in part:
                for model in models(program, part):
                    write("onnx", model)
    for model in sorted((ROOT / "examples").glob("*.onnx")):
        write("onnx", model.read_bytes())
    for model in MODELS.values():
        write("onnx", model.SerializeToString())
    sources = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*/src/**/*.rs"), *ROOT.glob("*/tests/**/*.rs"), *ROOT.glob("tests/*.rs")]
    for file in sorted(sources):
        text = file.read_text()
        for left, right in re.findall(r'"([^"\n]+)"\s*=>\s*"([^"\n]+)"', text):
            write("rules", f"{left} => {right}".encode())
        for pipeline in re.findall(r'"([A-Z]\w+(?:\{[^"\n]*\}|<\d+>\([^"\n]*\))?(?:,[^"\n]+)?)"', text):
            write("pipeline", pipeline.encode())
        for program_text in re.findall(r'"((?:def|declare|type|attr|#!?\[)[^"]*)"', text):
            write("text", program_text.encode())
    for pipeline in re.findall(r"^\| `[\w.]+` \| `([^`]+)`", (ROOT / "docs/passes.md").read_text(), flags=re.MULTILINE):
        write("pipeline", pipeline.encode())
    for target in ["text", "onnx", "pipeline", "rules"]:
        print(target, len(list((FOUND / target).iterdir())))


main()
