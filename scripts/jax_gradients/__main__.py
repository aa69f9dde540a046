"""Compares derivatives by Gradient with those of JAX, in float64.

Each case (cases.py) adds up the sines of the result of a call, and is differentiated by all its
parameters. So is the loss of the network in docs/python/train.md, by its weights. A derivative may
differ by `TOLERANCE` times the largest magnitude of the derivatives of its parameter, or of 1.
"""

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

from cases import CASES, Case  # noqa: E402 (constants of float64)

TOLERANCE = 1e-10
# Seconds for one call of the program, whatever else the machine does.
LIMIT = 120
PAGE = Path(__file__).parents[2] / "docs" / "python" / "train.md"


def parameters_of(case):
    """Returns the parameters of a case in the text format."""
    return ", ".join(f"%{name}: Tensor[{tuple(shape)}, float64]" for name, shape in case.shapes.items())


def text_of(number, case):
    """Returns the function of a case: the sum of the sines of its result."""
    lets, _, result = case.body.rpartition("; ") if "{" not in case.body else split_at_if(case.body)
    lets = lets and lets + ";"
    return (
        f"def @f{number}({parameters_of(case)}) {{\n  {lets}\n  let %result = {result};\n"
        "  let %sines = sin(%result);\n  sum(%sines)\n}\n"
    )


def split_at_if(body):
    """Splits a body before the `if` that is its result.

    >>> split_at_if("let %c = g(%x); if (%c) { let %a = %x; %a } else { %x }")
    ('let %c = g(%x)', '; ', 'if (%c) { let %a = %x; %a } else { %x }')
    """
    return body[: body.index("; if")], "; ", body[body.index("if (") :]


def values_of(case, seed):
    """Returns random arguments of a case, by name."""
    rng = np.random.default_rng(seed)
    values = {}
    for name, shape in case.shapes.items():
        size = rng.uniform(0.1, 0.9, shape)
        sign = 1 if name in ("p", "q") else rng.choice([-1.0, 1.0], shape)
        is_above_one = name == "q" and len(case.shapes) == 1
        values[name] = np.asarray(size * sign + is_above_one)
    return values


def network():
    """Returns the text of the network of the guide in float64, its loss in JAX, and arguments."""
    code = re.search(r'NETWORK = """(.*?)"""', PAGE.read_text(encoding="utf-8"), re.DOTALL)
    weights = re.search(r"WEIGHTS = (\[.*?\])", PAGE.read_text(encoding="utf-8"))
    names = ast.literal_eval(weights[1])

    def loss(x, classes, w1, b1, w2, b2):
        scores = jax.nn.log_softmax(jnp.tanh(x @ w1 + b1) @ w2 + b2)
        return -scores[jnp.arange(len(classes)), classes].mean()

    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (128, 2))
    values = {"x": x, "classes": ((x**2).sum(1) < 0.5).astype("int64")}
    for name, shape in zip(names, [(2, 16), (16,), (16, 2), (2,)]):
        values[name] = rng.uniform(-1, 1, shape)
    return code[1].replace("float32", "float64"), loss, values, names


class Program:
    """The derivatives of all functions, which anfora has computed as functions of one program."""

    def __init__(self, anfora, folder, text, gradients):
        self.anfora, self.folder, self.path = anfora, Path(folder), Path(folder) / "adjoints.anf"
        source = self.folder / "functions.anf"
        source.write_text(text, encoding="utf-8")
        self.call("opt", source, "--passes", ",".join(["ToANormalForm", *gradients]), "-o", self.path)

    def call(self, *arguments):
        done = subprocess.run([self.anfora, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or done.stdout.strip())

    def derivatives(self, function, values):
        """Returns the result of an adjoint function, and the derivatives."""
        inputs = []
        for name, value in values.items():
            np.save(self.folder / f"{name}.npy", value)
            inputs += ["--input", f"{name}={self.folder / name}.npy"]
        out = self.folder / function
        self.call("run", self.path, "--entry", function, *inputs, "-o", out)
        paths = sorted(out.glob("*.npy"), key=lambda path: int(path.stem.rpartition("_")[2]))
        result, *derivatives = [np.load(path) for path in paths]
        return result, derivatives


def difference(found, expected):
    """Returns the largest difference, as a part of the largest magnitude or of 1."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return np.inf
    size = max(1.0, np.abs(expected).max(initial=0.0))
    return np.abs(found - expected).max(initial=0.0) / size


@dataclass
class Job:
    """A function of the program, the same in JAX, its arguments, and the names of those by which it
    is differentiated."""

    name: str
    title: str
    function: Callable
    values: dict
    wanted: list

    def of_jax(self, values):
        """Returns the result in JAX, and the derivatives."""
        positions = tuple(list(self.values).index(name) for name in self.wanted)
        return jax.value_and_grad(self.function, positions)(*values)


def results_of_jax(jobs):
    """Returns the results of all jobs. One compilation takes less time than one for each."""
    everything = jax.jit(lambda arguments: [job.of_jax(values) for job, values in zip(jobs, arguments)])
    return everything([list(job.values.values()) for job in jobs])


def largest_difference(program, job, expected):
    """Returns the largest difference of the result and of the derivatives of a job."""
    of_jax = [np.asarray(value) for value in (expected[0], *expected[1])]
    result, derivatives = program.derivatives(f"{job.name}_adjoint", job.values)
    return float(max(difference(one, other) for one, other in zip([result, *derivatives], of_jax, strict=True)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="SUBSTRING", help="cases that contain it")
    parser.add_argument("--verbose", action="store_true", help="print the difference of each case")
    parser.add_argument("anfora", help="the program")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.only or any(part in case.body for part in options.only)]
    text, loss, values, weights = network()
    jobs = [Job(f"f{i}", case.body, sines(case), values_of(case, i), list(case.shapes)) for i, case in enumerate(chosen)]
    jobs.append(Job("loss", "the network", loss, values, weights))
    text += "".join(text_of(i, case) for i, case in enumerate(chosen))
    gradients = [f"Gradient{{function={job.name},require_grads=[{','.join(job.wanted)}]}}" for job in jobs]
    differences = []
    with tempfile.TemporaryDirectory() as folder:
        program = Program(options.anfora, folder, text, gradients)
        for job, expected in zip(jobs, results_of_jax(jobs)):
            differences.append(largest_difference(program, job, expected))
            if options.verbose:
                print(f"{differences[-1]:8.1e}  {job.title}")
    wrong = [(job, found) for job, found in zip(jobs, differences) if not found <= TOLERANCE]
    for job, found in wrong:
        print(f"{job.title}: the derivatives differ by {found:.1e}", file=sys.stderr)
    operators = set(re.findall(r"([\w.]+)\(", " ".join(case.body for case in chosen)))
    print(f"{len(differences)} programs with {len(operators)} operators: {len(wrong)} differ", end="")
    print(f" by more than {TOLERANCE}; the largest difference is {max(differences):.1e}")
    return 1 if wrong else 0


def sines(case: Case):
    """Returns the sum of the sines of the result of a case, in JAX."""
    return lambda *values: jnp.sin(case.function(*values)).sum()


sys.exit(main())
