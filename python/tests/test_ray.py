"""Fleets on Ray: two workers on this machine, some of which die."""

import io
import os
import re
import shlex
import signal
import subprocess
import sys
import time

import anfora as af
import anfora.ray
import pytest
from anfora import _limited

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the tests send signals")

MODEL = "def @main(%x: Tensor[(n, 4), float32]) { let %a = exp(%x); let %b = exp(%a); let %c = exp(%a); add(%b, %c) }"

#: A program that is `anfora` after it has noted its process and that of its parent, and done what a
#: test wants. Its first argument is a folder, its second what it does.
PROGRAM = """import os, pathlib, signal, sys, time
from anfora import _anfora
folder, act, arguments = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
note = folder / f"{time.time_ns()}"
note.with_suffix(".new").write_text(f"{os.getpid()} {os.getppid()} {arguments[:2]}")
note.with_suffix(".new").rename(note)
given = sys.stdin.read() if "-" in arguments else ""
victim = any("victim" in argument for argument in arguments)
if act == "sleep":
    time.sleep(1)
elif act == "kill" and victim:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(60)
elif act == "hang" and victim:
    time.sleep(60)
elif act == "allocate" and victim:
    bytearray(1 << 30)
elif act == "crash" and victim:
    os.kill(os.getpid(), signal.SIGSEGV)
elif act == "break" and "tanh(" in given:
    sys.exit(print("error: pass `Broken` failed: line 17", file=sys.stderr) or 1)
elif given:
    sys.exit(0)
sys.exit(_anfora._main(["anfora", *arguments]))
"""


def test_without_ray_the_command_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'anfora\[ray\]'"):
        af.ray.slim_files([], tmp_path)
    with pytest.raises(ImportError, match=r"pip install 'anfora\[ray\]'"):
        af.ray.campaign([1], "O2")


def test_wrong_arguments_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(ValueError, match="would take the place"):
        af.ray.slim_files([tmp_path / "a" / "m.onnx", tmp_path / "b" / "m.onnx"], tmp_path / "out")
    with pytest.raises(ValueError, match="would take the place"):
        af.ray.slim_files([tmp_path / "m.onnx"], tmp_path)
    with pytest.raises(ValueError, match="4GiB"):
        af.ray.slim_files([], tmp_path, memory="4 gigs")
    with pytest.raises(ValueError, match="timeout"):
        af.ray.campaign([], "O2", timeout=0)
    with pytest.raises(TypeError, match="a list"):
        af.ray.campaign([], "O2", program="anfora")
    with pytest.raises(af.ConfigError, match="FoldConstant"):
        af.ray.campaign([1], ["O2", "FoldConstan"])


def test_a_process_has_limits():
    def run(code, **limits):
        limits = {"seconds": 20.0, "memory": 1 << 30, **limits}
        return _limited.run(["-c", code], program=[sys.executable], **limits)

    done = run("print('out'); import sys; print(sys.stdin.read(), file=sys.stderr)", stdin=b"given")
    assert (done.status, done.code, done.stdout, done.stderr) == ("ok", 0, b"out\n", "given\n")
    assert done.message == "" and done.peak_bytes < 100 << 20
    done = run("import sys; sys.exit('error: no')")
    assert (done.status, done.code, done.message) == ("failed", 1, "error: no")
    done = run("import os; os.abort()")
    assert done.status == "crashed" and "signal 6" in done.message
    begin = time.monotonic()
    done = run("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(60)", seconds=0.5)
    assert done.status == "timeout" and time.monotonic() - begin < 10
    # What the process started is ended with it.
    done = run("import subprocess; subprocess.run(['sleep', '987'])", seconds=0.5)
    assert done.status == "timeout"
    if sys.platform == "linux":
        assert run("bytearray(2 << 30)").status == "memory"
        assert run("bytearray(500 << 20)").status == "ok"
        big = ["gen", "chain", "3000000", "-o", os.devnull, "--to", "anf"]
        assert _limited.run(big, program=None, seconds=60, memory=400 << 20).status == "memory"


@pytest.fixture(scope="module")
def cluster():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    # Ray takes 127.0.0.1 for any address of the machine.
    address = {"_node_ip_address": "127.0.0.2"} if sys.platform == "linux" else {}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, **address)
    yield ray
    ray.shutdown()


@pytest.fixture
def fleet(cluster, tmp_path):
    """A folder with models, and a function that returns their paths."""
    for name in ("a", "b", "c", "d", "e", "victim"):
        af.save(af.loads(MODEL), tmp_path / f"{name}.onnx")
    return tmp_path


def models(folder):
    return sorted(folder.glob("*.onnx"))


def program(folder, act):
    (folder / "notes").mkdir(exist_ok=True)
    (folder / "program.py").write_text(PROGRAM)
    return [sys.executable, str(folder / "program.py"), str(folder / "notes"), act]


def notes(folder):
    """Returns the processes that the program has noted, the first one first, with their parents."""
    names = sorted(path for path in (folder / "notes").iterdir() if not path.suffix)
    return [tuple(int(n) for n in path.read_text().split()[:2]) for path in names]


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.01)


def test_a_fleet_of_models(fleet):
    (fleet / "broken.onnx").write_bytes(b"no model")
    paths = [*models(fleet), fleet / "missing.onnx"]
    out = io.StringIO()
    run = af.ray.slim_files(paths, fleet / "small", check=1, progress=out)
    seen = list(run)
    assert sorted(row.path for row in seen) == sorted(map(str, paths))
    assert [row.path for row in run.rows] == list(map(str, paths))
    assert {row.path for row in run.failures} == {str(fleet / "broken.onnx"), str(fleet / "missing.onnx")}
    assert all(row.status == "failed" and row.message.startswith("error: ") for row in run.failures)
    expected = af.slim((fleet / "a.onnx").read_bytes())
    for row in run.rows:
        if row.status == "ok":
            assert row.nodes == (4, 3) and row.seconds > 0 and row.peak_bytes > 1 << 20
            with open(row.output, "rb") as file:
                assert file.read() == expected
            assert row.sizes == (os.path.getsize(row.path), len(expected))
    table = str(run).splitlines()
    assert table[0].split()[:3] == ["model", "status", "nodes"] and len(table) == len(paths) + 1
    assert f"{len(paths)}/{len(paths)}" in out.getvalue() and "2 failed, 6 ok" in out.getvalue()


def test_the_options_reach_the_program(fleet):
    options = {"input_shapes": {"x": [3, None]}, "exact": True, "size_threshold": 10}
    run = af.ray.slim_files(
        models(fleet)[:1], fleet / "small", **options, disable=["EliminateCommonSubexpr"], progress=False
    ).wait()
    [row] = run.rows
    assert row.status == "ok" and row.nodes == (4, 4)
    assert af.load(row.output)["main"].params[0].type.shape == (3, 4)


def test_a_worker_that_is_killed_loses_no_model(fleet):
    run = af.ray.slim_files(models(fleet), fleet / "small", program=program(fleet, "sleep"), progress=False)
    wait_until(lambda: notes(fleet))
    child, worker = notes(fleet)[0]
    assert worker != os.getpid() and is_running(child)
    os.kill(worker, signal.SIGKILL)
    rows = list(run)
    assert sorted(row.path for row in rows) == list(map(str, models(fleet)))
    assert {row.status for row in rows} == {"ok"}
    assert sorted(path.name for path in (fleet / "small").iterdir()) == [p.name for p in models(fleet)]
    # The model of the worker was tried again, and the process of before did not go on.
    assert len(notes(fleet)) > len(rows)
    assert all(not is_running(pid) for pid, _ in notes(fleet))


def test_a_model_whose_workers_always_die_is_reported(fleet):
    run = af.ray.slim_files(
        models(fleet), fleet / "small", program=program(fleet, "kill"), retries=1, progress=False
    ).wait()
    statuses = {os.path.basename(row.path): row.status for row in run.rows}
    assert statuses.pop("victim.onnx") == "lost"
    assert set(statuses.values()) == {"ok"} and len(statuses) == 5
    assert run.failures[0].message


@pytest.mark.parametrize(("act", "status"), [("hang", "timeout"), ("allocate", "memory"), ("crash", "crashed")])
def test_limits_hold_for_each_task(fleet, act, status):
    begin = time.monotonic()
    run = af.ray.slim_files(
        models(fleet), fleet / "small", program=program(fleet, act), timeout=5, memory="600MiB", progress=False
    ).wait()
    statuses = {os.path.basename(row.path): row.status for row in run.rows}
    assert statuses.pop("victim.onnx") == status
    assert set(statuses.values()) == {"ok"} and time.monotonic() - begin < 30
    assert not (fleet / "small" / "victim.onnx").exists()


def test_a_run_can_be_cancelled(fleet):
    run = af.ray.slim_files(models(fleet), fleet / "small", program=program(fleet, "hang"), progress=False)
    wait_until(lambda: (fleet / "small" / "a.onnx").exists())
    run.cancel()
    assert list(run) == [] and run.table() == ""
    wait_until(lambda: not any(is_running(pid) for pid, _ in notes(fleet)))


def test_progress_is_redrawn_on_a_terminal(fleet):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    af.ray.slim_files(models(fleet), fleet / "small", progress=terminal).wait()
    shown = terminal.getvalue()
    assert shown.count("\r") >= 2 and shown.count("\n") == 1
    assert re.search(r"\[#+\.*\] \d/6 in \d+ s", shown) and "6/6" in shown.rpartition("\r")[2]


def test_a_campaign_has_a_row_for_each_seed_and_pipeline(cluster):
    run = af.ray.campaign(range(6), ["O2", "O3"], size=60, progress=False).wait()
    expected = [(seed, pipeline) for seed in range(6) for pipeline in ("O2", "O3")]
    assert [(row.seed, row.pipeline) for row in run.rows] == expected
    assert [row.message for row in run.failures] == []
    assert all(row.program is None and row.command is None for row in run.rows)


def test_failures_become_a_small_program_and_a_command(cluster, tmp_path):
    run = af.ray.campaign([3], ["O1", "phase1"], size=60, folder=tmp_path, reduce=300, progress=False).wait()
    fine, failed = run.rows
    assert fine.status == "ok" and failed.status == "failed"
    message = "error: pass `FoldConstant` failed: the program is not in A-normal form"
    assert failed.message.startswith(message)
    assert af.loads(failed.program).binding_count <= 10
    # The command fails on the program, and the other one on that of the seed, in the same way.
    own = f"{shlex.quote(sys.executable)} -m anfora "
    for command in (failed.command, failed.original):
        assert command.startswith("anfora ")
        command = re.sub(r"(^|\| )anfora ", lambda found: found[1] + own, command)
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and message in done.stderr
    [file] = tmp_path.iterdir()
    assert file.name in failed.command and file.read_text().endswith(failed.program)


def test_a_failure_of_another_program_is_reduced(cluster, tmp_path):
    options = {"size": 60, "progress": False, "program": program(tmp_path, "break")}
    # The search ends by itself; on a busy machine, it takes minutes.
    run = af.ray.campaign([3], "O3", reduce=600, **options).wait()
    [row] = run.rows
    assert row.status == "failed" and row.message == "error: pass `Broken` failed: line 17"
    assert "tanh(" in row.program and row.program.count("\n") < 12
    # Without time, the program stays that of the seed.
    run = af.ray.campaign([3], "O3", reduce=0, **options).wait()
    assert run.rows[0].program.count("\n") > 60


def test_a_worker_that_is_killed_loses_no_seed(cluster, tmp_path):
    run = af.ray.campaign(range(5), "O2", program=program(tmp_path, "sleep"), progress=False)
    wait_until(lambda: notes(tmp_path))
    os.kill(notes(tmp_path)[0][1], signal.SIGKILL)
    assert [(row.seed, row.status) for row in run.wait().rows] == [(seed, "ok") for seed in range(5)]


def test_seeds_whose_program_cannot_be_made_are_reported(cluster):
    run = af.ray.campaign(range(2), ["O1", "O2"], shape="no-such-shape", progress=False).wait()
    assert [row.status for row in run.rows] == ["failed"] * 4
    assert "no-such-shape" in run.rows[0].message
