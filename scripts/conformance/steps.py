"""What is done with a case. Each step gives how it ended and why.

`pass`: as it should be. `wrong`: not so. `crash`: the program panicked, was killed or took too long. `unsupported`: refused, with the
reason. `untyped`, of rows: a tensor about which nothing was found. `unproved`: nothing wrong was found, but neither onnxruntime nor the reference runs the original model. `less`, of types:
right, but somewhere less was found than ONNX finds.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile

import onnx

import cases
import compare
import gradients
import runtimes

STEPS = ["run", "export", "text", "older", "types", "rows"]
# Versions of the operators for which newer ones are written, besides the one before that of the
# model. onnxruntime lacks operators of versions before 7.
OLDER = [13, 11]
# What onnxruntime computes otherwise in old versions: the mask of Dropout without training is false
# in versions 10 and 11.
OTHER_IN_OLD = {"test_dropout_default_mask"}
# Seconds for one call of the program, whatever else the machine does.
LIMIT = 120
# What the program says of a node that it has no kernel for, as opposed to one that it gets wrong.
UNSUPPORTED = re.compile(r"has no kernel|no kernel for|not supported|unsupported|do(es)? not support")


class Ended(Exception):
    """A step is over: how it ended, and why."""

    def __init__(self, status, why=""):
        super().__init__(status, why)
        self.status, self.why = status, why


def reason(text):
    """The first line of a message without what is the case's own, so that equal reasons are counted together.

    >>> reason("error: `onnx.Foo` has no kernel\\n  --> @main, as printed:3:7\\n")
    '`onnx.Foo` has no kernel'
    >>> reason("target/some/where/model.onnx: node `x`: bad")
    'node `x`: bad'
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = re.sub(r"^(error|panicked): ", "", lines[0]) if lines else "nothing was said"
    first = re.sub(r"\S*/(\S+\.(onnx|anf|pb))(: )?", "", first)
    helps = [re.sub(r"^= ?(note|help): ", "", line) for line in lines if line.startswith(("= note", "= help", "note:"))]
    return "; ".join([first, *helps[:1]])


class Steps:
    """The steps for one case."""

    def __init__(self, anfora, case, work):
        self.anfora, self.case, self.work = anfora, case, work
        self.original = runtimes.Original(case)

    def anfora_does(self, *arguments):
        """Runs the program; its standard output, or how and why the step ends."""
        try:
            done = subprocess.run([self.anfora, *arguments], capture_output=True, timeout=LIMIT)
        except subprocess.TimeoutExpired:
            raise Ended("crash", f"{arguments[0]} takes more than {LIMIT} s") from None
        said = done.stderr.decode(errors="replace")
        if done.returncode == 0:
            return done.stdout.decode(errors="replace")
        if done.returncode != 1:
            raise Ended("crash", f"{arguments[0]} exits with {done.returncode}: {said[-500:]}")
        raise Ended("unsupported" if UNSUPPORTED.search(said) else "wrong", f"{arguments[0]}: {reason(said)}")

    def path(self, name):
        return os.path.join(self.work, name)

    def run(self):
        """Imported, optimised as far as it goes, interpreted."""
        try:
            self.interpret()
        except Ended as end:
            if end.status != "unsupported":
                raise
            raise Ended("unsupported", self.reason_kept() or end.why) from None

    def reason_kept(self):
        """Why the first node that the import keeps as it is has no kernel; None if it keeps none."""
        kept = json.loads(self.anfora_does("check", self.case.model, "--stats=json"))["kept"]
        if not kept:
            return None
        first = kept[0]
        name = f"{first['domain']}.{first['op_type']}" if first["domain"] else first["op_type"]
        return f"{name} (version {first['version']}): {first['reason']}"

    def interpret(self):
        optimised = self.path("optimised.anf")
        entry = self.optimise(optimised)
        infos = {i.name: i for i in self.case.load().graph.input}
        for number in range(len(self.case.sets)):
            given = []
            for name, path in self.case.inputs(number):
                kind = cases.kind_of(infos[name])
                if kind != "tensor_type":
                    raise Ended("unsupported", f"run: takes no input that is a {kind.removesuffix('_type')}")
                given += ["--input", f"{name}={path}"]
            out = self.path(f"out_{number}")
            self.anfora_does("run", optimised, "--entry", entry, *given, "-o", out)
            wanted = flat(runtimes.expected(self.case, number))
            found = [read_output(out, i) for i in range(len(wanted))]
            missing = [i for i, f in enumerate(found) if f is None]
            if missing:
                raise Ended("unsupported", "run: an output that is not a tensor is not saved")
            difference = runtimes.differ(self.case, wanted, found)
            if difference:
                raise Ended("wrong", difference)

    def optimise(self, target):
        """The model, optimised as far as it goes; the function to run. Of a model with a node Gradient, that is the function that
        the pass Gradient adds."""
        differentiated = gradients.differentiated(self.case.load())
        if differentiated is None:
            self.anfora_does("opt", self.case.model, "-O3", "--quiet", "-o", target)
            return "main"
        model, by = differentiated
        onnx.save(model, self.path("differentiated.onnx"))
        passes = f"ToANormalForm,Gradient{{function=main,require_grads=[{','.join(by)}]}},O3"
        self.anfora_does("opt", self.path("differentiated.onnx"), "--passes", passes, "--quiet", "-o", target)
        return "main_adjoint"

    def export(self):
        """Imported, optimised, exported."""
        target = self.path("exported.onnx")
        self.anfora_does("opt", self.case.model, "-O2", "--quiet", "-o", target)
        self.check(target)

    def text(self):
        """To the text format and back, without passes."""
        text, target = self.path("text.anf"), self.path("text.onnx")
        self.anfora_does("convert", self.case.model, "-o", text)
        self.anfora_does("convert", text, "-o", target)
        self.check(target)

    def older(self):
        """Written for older versions of the operators, where rules allow that."""
        if self.case.name in OTHER_IN_OLD:
            raise Ended("unproved", "onnxruntime computes something else in old versions")
        stated = standard_versions(self.case.load())
        written = 0
        for opset in sorted({n for s in stated for n in [s - 1, *OLDER] if 7 <= n < s}):
            target = self.path(f"opset_{opset}.onnx")
            try:
                self.anfora_does("convert", self.case.model, "-o", target, "--opset", str(opset))
            except Ended as end:
                if end.status == "crash":
                    raise
                continue
            self.check(target, unproved_by=["reference"])
            versions = standard_versions(onnx.load(target, load_external_data=False))
            if versions != [opset]:
                raise Ended("wrong", f"it is of version {versions}, not {opset}")
            written += 1
        if not written:
            raise Ended("unsupported", "there is no older form")

    def check(self, path, unproved_by=()):
        """Whether a model that was made from the case's is one, and computes the same.

        A model that a runtime in `unproved_by` cannot run is unproved: the reference runtime lacks old versions of operators.
        """
        said = runtimes.checker_says(path, self.original.full_check)
        if said:
            raise Ended("wrong", f"the checker refuses what was written: {said}")
        models = [onnx.load(path), self.case.load()]
        for what, values in [("inputs", cases.real_inputs), ("outputs", lambda m: m.graph.output)]:
            after, before = ([v.name for v in values(m)] for m in models)
            if before != after:
                raise Ended("wrong", f"its {what} are {str(after)[:200]}, not {str(before)[:200]}")
        if self.original.runtime is None:
            raise Ended("unproved", f"neither runtime runs the original: {self.original.why}")
        try:
            difference = self.original.wrong_outputs(path)
        except Exception as error:  # Each runtime has errors of its own, and none in common.
            said = " ".join(str(error).split())[:300]
            status = "unproved" if self.original.runtime in unproved_by else "wrong"
            raise Ended(status, f"{self.original.runtime} runs the original, not what was written: {said}") from None
        if difference:
            raise Ended("wrong", f"in {self.original.runtime}: {difference}")

    def types(self):
        """The types of all values, where the file says those of the inputs only, against those that ONNX finds."""
        model = self.case.load()
        forget_types(model)
        bare = self.path("bare.onnx")
        onnx.save(model, bare)
        theirs = types_by_onnx(model)
        found = json.loads(self.anfora_does("check", bare, "--types", "--stats=json"))["values"]
        ours = by_unique_name((v["name"], v) for v in found)
        less = []
        makers = {o: cases.qualified(n) for n in nodes_of(model) for o in n.output}
        for name, wanted in theirs.items():
            if name not in ours or not wanted.HasField("tensor_type"):
                continue
            relation = compare.type_relation(ours[name], wanted)
            # What is kept as it is may say less: its row says what all nodes of the operator have in common.
            kept = (ours[name]["op"] or "onnx.").startswith("onnx.")
            if relation == "says less" and not kept:
                less.append(f"`{makers.get(name)}` gives {ours[name]['type']}, ONNX {dims_text(wanted)}")
            elif relation not in ("agrees", "says less"):
                raise Ended("wrong", f"`{name}`, of {makers.get(name)}, {relation}")
        if less:
            raise Ended("less", less[0])


    def rows(self):
        """The types of the outputs where every node is kept as it is, and so is typed by the row of its operator, against the stored outputs."""
        model = self.case.load()
        outputs = list(self.case.load().graph.output)
        forget_types(model)
        bare = self.path("kept.onnx")
        onnx.save(model, bare)
        found = json.loads(self.anfora_does("check", bare, "--keep-nodes", "--types", "--stats=json"))["values"]
        ours = by_unique_name((v["name"], v) for v in found)
        untyped = []
        for number in range(len(self.case.sets)):
            for info, path in zip(outputs, self.case.outputs(number)):
                if info.name not in ours:
                    continue
                said = ours[info.name]
                if cases.kind_of(info) != "tensor_type":
                    if said["dtype"] is not None:
                        raise Ended("wrong", f"`{info.name}` is a tensor, not a {cases.kind_of(info).removesuffix('_type')}")
                    continue
                with open(path, "rb") as f:
                    tensor = onnx.TensorProto.FromString(f.read())
                relation = compare.type_relation(said, onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims)))
                if said["dtype"] is None:
                    untyped.append(info.name)
                elif relation not in ("agrees", "says less"):
                    raise Ended("wrong", f"`{info.name}` {relation}")
        if untyped:
            raise Ended("untyped", f"nothing is known of `{untyped[0]}`")


def standard_versions(model):
    """The versions of the standard operators that a model states."""
    return [o.version for o in model.opset_import if o.domain in ("", "ai.onnx")]


def dims_text(ty):
    relation = compare.type_relation({"dtype": None, "shape": None, "type": "()"}, ty)
    return relation.removeprefix("is (), not ")


def flat(values):
    """The tensors of outputs in order: those of lists one by one, as the program numbers them.

    >>> flat([1, [2, [3]], None, 4])
    [1, 2, 3, 4]
    """
    found, stack = [], list(reversed(values))
    while stack:
        value = stack.pop()
        if isinstance(value, (list, tuple)):
            stack.extend(reversed(value))
        elif value is not None:
            found.append(value)
    return found


def read_output(folder, number):
    """An output that the program saved: in a NumPy file, or an ONNX one where NumPy has no such elements."""
    import numpy as np

    array = os.path.join(folder, f"output_{number}.npy")
    if os.path.exists(array):
        return np.load(array)
    tensor = os.path.join(folder, f"output_{number}.pb")
    if os.path.exists(tensor):
        with open(tensor, "rb") as f:
            return onnx.numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))
    return None


def graphs_of(model):
    """The graph, and all graphs inside."""
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        yield graph
        for node in graph.node:
            for attribute in node.attribute:
                pending.extend(attribute.graphs)
                if attribute.HasField("g"):
                    pending.append(attribute.g)


def nodes_of(model):
    return [node for graph in graphs_of(model) for node in graph.node]


def forget_types(model):
    """Takes out what a model says of types, but for those of its inputs."""
    for graph in graphs_of(model):
        del graph.value_info[:]
        for output in graph.output:
            output.ClearField("type")


def types_by_onnx(model):
    """The types that ONNX finds, by name, where a name has one."""
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception as error:  # InferenceError, and others of what a rule did not expect.
        raise Ended("unproved", f"shape inference fails: {' '.join(str(error).split())[:200]}") from None
    infos = (i for graph in graphs_of(inferred) for i in [*graph.input, *graph.value_info, *graph.output])
    return by_unique_name((i.name, i.type) for i in infos if i.HasField("type"))


def by_unique_name(pairs):
    found, twice = {}, set()
    for name, value in pairs:
        twice |= {name} & found.keys()
        found[name] = value
    return {name: value for name, value in found.items() if name not in twice}


def do(anfora, case, chosen):
    """The chosen steps for a case: how each ended, and why."""
    results = {}
    work = tempfile.mkdtemp(prefix="anfora-conformance-")
    try:
        steps = Steps(anfora, case, work)
        for step in chosen:
            try:
                getattr(steps, step)()
                results[step] = ("pass", "")
            except Ended as end:
                results[step] = (end.status, end.why)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return results
