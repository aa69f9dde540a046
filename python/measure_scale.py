"""Measures what one machine holds, and what a fleet does: the tables of docs/python/scale.md.

    python python/measure_scale.py bindings [COUNT]...
    python python/measure_scale.py weights [MIB]...
    python python/measure_scale.py fleet [TASKS]

Needs the package itself; numpy for weights, ray for the fleet.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import anfora as af
import anfora.ray
from anfora import _limited

MIB = 1 << 20
EXAMPLE = Path(__file__).parents[1] / "examples" / "residual.onnx"


def program(*arguments: str) -> _limited.Done:
    """Runs the program, and returns how it ended."""
    done = _limited.run(arguments, program=None, seconds=3600, memory=None)
    if done.status != "ok":
        sys.exit(f"anfora {' '.join(arguments)}: {done.message}")
    return done


def row(*cells: object) -> None:
    """Prints a row of a table."""
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def bindings(folder: Path, counts: Iterable[int]) -> None:
    """Runs O2 on the benchmark program in several sizes."""
    row("bindings", "text, MiB", "O2, s", "peak, MiB", "bytes a binding")
    for count in counts:
        file = folder / "chain.anf"
        program("gen", "chain", str(count), "-o", str(file))
        done = program("opt", str(file), "--passes", "O2", "--emit", "none", "--quiet")
        peak = done.peak_bytes or 0
        size = os.path.getsize(file) // MIB
        row(f"{count:,}", size, f"{done.seconds:.1f}", f"{peak // MIB:,}", peak // count)


def weights(folder: Path, sizes: Iterable[int]) -> None:
    """Runs slim on models with weights of 16 MiB each, in the model and in a data file."""
    import numpy as np

    row("weights, MiB", "where", "slim, s", "peak, MiB")
    for size in sizes:
        mod = af.Module()
        builder = af.FunctionBuilder(mod, "main")
        last = builder.param("x", "Tensor[(1, 2048), float32]")
        for number in range(size // 16):
            array = np.random.default_rng(number).random((2048, 2048), dtype="float32")
            last = builder.emit("matmul", last, af.Literal(array, name=f"w{number}"))
        builder.finish(last)
        for where, option in (("model", "inline"), ("data file", "1024")):
            if where == "model" and size >= 2048:
                row(f"{size:,}", where, "larger than protocol buffers can be", "")
                continue
            file, small = folder / "model.onnx", folder / "small.onnx"
            external = None if option == "inline" else int(option)
            af._anfora._save_onnx(mod, str(file), external_data=external)
            done = program("slim", str(file), str(small), "--quiet")
            row(f"{size:,}", where, f"{done.seconds:.2f}", f"{(done.peak_bytes or 0) // MIB:,}")
            for path in folder.iterdir():
                path.unlink()


def fleet(folder: Path, tasks: int) -> None:
    """Runs a fleet and a campaign in a loop, on one worker and on two."""
    import ray

    models = folder / "models"
    models.mkdir()
    for number in range(tasks):
        shutil.copy(EXAMPLE, models / f"{number}.onnx")
    paths = sorted(models.iterdir())

    def slim() -> af.ray.Run[af.ray.SlimRow]:
        return af.ray.slim_files(paths, folder / "small", progress=False).wait()

    def campaign() -> af.ray.Run[af.ray.CampaignRow]:
        return af.ray.campaign(range(tasks), "O3", progress=False).wait()

    limits = af.ray._Limits(None, 600.0, 4 << 30)
    small = str(folder / "small.onnx")
    loops: dict[str, Callable[[], object]] = {
        "slim_files": lambda: [af.ray._slim(str(path), small, [], limits) for path in paths],
        "campaign": lambda: [
            af.ray._campaign(seed, ["O3"], ["random", "200"], limits, 60.0, None) for seed in range(tasks)
        ],
    }
    row("run", "tasks", "workers", "s", "tasks a second", "ms a task and worker", "of which Ray, ms")
    alone: dict[str, float] = {}
    for name, loop in loops.items():
        took = seconds(loop)
        alone[name] = took / tasks
        row(name, tasks, "a loop", f"{took:.1f}", f"{tasks / took:.1f}", f"{1000 * alone[name]:.0f}", "")
    for workers in (1, 2):
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
        # The workers have started before the clock does.
        af.ray.slim_files(paths[: 4 * workers], folder / "warm", progress=False).wait()
        for name, run in (("slim_files", slim), ("campaign", campaign)):
            took = seconds(run)
            each = took * workers / tasks
            cost = f"{1000 * (each - alone[name]):.0f}"
            row(name, tasks, workers, f"{took:.1f}", f"{tasks / took:.1f}", f"{1000 * each:.0f}", cost)
        ray.shutdown()


def seconds(work: Callable[[], object]) -> float:
    """Returns the shortest time of three that something takes. Ends this program if a task
    fails."""
    times = []
    for _ in range(3):
        begin = time.monotonic()
        done = work()
        times.append(time.monotonic() - begin)
        if isinstance(done, af.ray.Run) and done.failures:
            sys.exit(str(done))
    return min(times)


def main() -> None:
    """Measures what the first argument names."""
    what, *numbers = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = [int(number) for number in numbers]
        if what == "bindings":
            bindings(folder, given or [100_000, 1_000_000, 10_000_000])
        elif what == "weights":
            weights(folder, given or [256, 1024, 4096])
        elif what == "fleet":
            fleet(folder, *(given or [50]))
        else:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
