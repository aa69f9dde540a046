"""TVM's own cases of passes: what anfora's pass makes of a module, beside what TVM's pass made of
it.

``ANFORA_TVM_PAIRS`` names the recordings: a JSON object a line, with the pass, the test, the
arguments, and the modules before and after. ``tvm_pairs.json`` has a line for each pair whose
results differ: the verdict, and the reason.
"""

import collections
import contextlib
import gzip
import json
import os
import pathlib

import pytest
from anfora import transform as T

np = pytest.importorskip("numpy", reason="numpy is not installed")
tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed")
tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed")
relax = tvm.relax
bridge = pytest.importorskip("anfora.tvm")

#: TVM's passes, and the pass of anfora of the same purpose, made of the arguments of TVM's.
PASSES = {
    "AttachGlobalSymbol": lambda **_: T.AttachGlobalSymbol(),
    "BindParams": lambda func_name, params: T.BindParams(func_name, arrays(params)),
    "CanonicalizeBindings": lambda **_: T.CanonicalizeBindings(),
    "ConvertToDataflow": lambda min_size: T.ConvertToDataflow(min_size=min_size),
    "DeadCodeElimination": lambda entry_functions: T.DeadCodeElimination(entries=" ".join(entry_functions or [])),
    "EliminateCommonSubexpr": lambda **_: T.EliminateCommonSubexpr(),
    "FoldBatchnormToConv2D": lambda **_: T.FoldBatchNorm(),
    "FoldConstant": lambda **_: T.FoldConstant(),
    "FuseOps": lambda **_: T.FuseOps(),
    "InlinePrivateFunctions": lambda **_: T.InlineFunctions(),
    "LambdaLift": lambda **_: T.LambdaLifting(),
    "Normalize": lambda **_: T.Normalize(),
    "ToNonDataflow": lambda **_: T.ToNonDataflow(),
}

#: The greatest number of elements of an operand in a run.
MOST_ELEMENTS = 1 << 20


def arrays(recorded):
    """Returns recorded parameters by name."""
    named = {}
    for key, value in recorded["$map"]:
        name = key["$var"] if isinstance(key, dict) else key
        named[name] = np.array(value["$array"], value["dtype"])
    return named


# ---- the forms in which modules are compared -----------------------------------------------------


def without_names(mod):
    """Returns a module whose private functions are named by the order of their first use."""
    order = sorted((gv for gv, fn in mod.functions.items() if is_public(fn)), key=lambda gv: gv.name_hint)
    seen = {gv.name_hint for gv in order}
    for gv in order:
        for used in globals_in(mod[gv]):
            if used.name_hint not in seen:
                seen.add(used.name_hint)
                order.append(used)
    names = {gv.name_hint: f"private {i}" for i, gv in enumerate(order) if not is_public(mod[gv])}
    saved = json.loads(tvm.ir.save_json(mod))
    nodes = saved["nodes"]
    for node in nodes[:]:
        if node["type"] == "ir.GlobalVar":
            old = nodes[node["data"]["name_hint"]]["data"]
            if old in names:
                node["data"]["name_hint"] = len(nodes)
                nodes.append({"type": "ffi.String", "data": names[old]})
    return tvm.ir.load_json(json.dumps(saved))


def is_public(fn):
    return fn.attrs is not None and "global_symbol" in fn.attrs


def globals_in(fn):
    """Returns the global variables of a function, in the order of their first use."""
    found = []

    def visit(node):
        if isinstance(node, tvm.ir.GlobalVar) and all(node.name_hint != other.name_hint for other in found):
            found.append(node)

    if isinstance(fn, relax.Function):
        relax.analysis.post_order_visit(fn, visit)
    return found


def with_inferred_results(mod):
    """Returns a module whose functions have the result types that their bodies have."""
    new = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for gv, fn in mod.functions.items():
        if isinstance(fn, relax.Function):
            made = relax.Function(fn.params, fn.body, fn.body.ty, fn.is_pure, fn.attrs)
            new.update_func(new.get_global_var(gv.name_hint), made)
    return new


def with_scalars_inside(mod):
    """Returns a module whose private functions have the scalars that are their arguments inside."""
    given = {}
    for fn in mod.functions.values():
        for call in calls_of(fn):
            if isinstance(call.op, tvm.ir.GlobalVar) and not is_public(mod[call.op]):
                given.setdefault(call.op.name_hint, {i: a for i, a in enumerate(call.args) if is_scalar(a)})
    functions = {gv.name_hint: fn for gv, fn in mod.functions.items()}
    variables = {gv.name_hint: gv for gv in mod.functions}
    for name, scalars in given.items():
        if scalars:
            fn = functions[name]
            functions[name] = fn.bind_params({fn.params[i]: a for i, a in scalars.items()})
            variables[name] = tvm.ir.GlobalVar(name)
            relax.expr._update_type(variables[name], functions[name].ty)
    mutator = WithoutScalars(given, variables)
    for name, fn in functions.items():
        functions[name] = mutator.visit_expr(fn) if isinstance(fn, relax.Function) else fn
    return tvm.IRModule({variables[name]: fn for name, fn in functions.items()}, attrs=mod.attrs)


def is_scalar(expr):
    return isinstance(expr, relax.Constant) and expr.data.shape == ()


def calls_of(fn):
    found = []
    if isinstance(fn, relax.Function):
        relax.analysis.post_order_visit(fn, lambda e: found.append(e) if isinstance(e, tvm.ir.Call) else None)
    return found


@relax.expr_functor.mutator
class WithoutScalars(relax.expr_functor.PyExprMutator):
    """Removes the scalars from the arguments of calls."""

    def __init__(self, given, variables):
        super().__init__()
        self.given = given
        self.variables = variables

    def visit_call_(self, call):
        name = getattr(call.op, "name_hint", None)
        scalars = self.given.get(name)
        if not scalars:
            return call
        args = [a for i, a in enumerate(call.args) if i not in scalars]
        return tvm.ir.Call(self.variables[name], args, call.attrs, call.ty_args, ret_ty=call.ty)


#: Changes of both modules after which they are compared, by the name in the list.
FORMS = {
    "CanonicalizeBindings": relax.transform.CanonicalizeBindings(),
    "ConvertToDataflow": relax.transform.ConvertToDataflow(),
    "DeadCodeElimination": relax.transform.DeadCodeElimination(),
    "EliminateCommonSubexpr": relax.transform.EliminateCommonSubexpr(),
    "Normalize": relax.transform.Normalize(),
    "ToNonDataflow": relax.transform.ToNonDataflow(),
    "names": without_names,
    "results": with_inferred_results,
    "scalars": with_scalars_inside,
}


def same(left, right):
    """Returns true if two modules are equal. Each recording has its own symbols that nothing
    binds."""
    return tvm_ffi.structural_equal(left, right, map_free_vars=True)


def same_form(left, right, forms):
    for name in forms:
        left, right = FORMS[name](left), FORMS[name](right)
    return same(left, right)


# ---- results -------------------------------------------------------------------------------------


class NotRunnable(Exception):
    """A module that cannot be run: a function that is not there, or parameters without values."""


def extent(dim, symbols):
    """Returns an extent of an operand; symbols get small numbers in the order of their first
    use."""
    if isinstance(dim, tvm.tirx.IntImm):
        return int(dim.value)
    if not isinstance(dim, tvm.tirx.Var):
        raise NotRunnable(f"the extent {dim}")
    return symbols.setdefault(dim.name, len(symbols) + 3)


def argument(ty, symbols, random):
    """Returns a random value of a type."""
    if isinstance(ty, relax.TensorType):
        is_known = isinstance(ty.shape, relax.ShapeExpr)
        shape = [extent(d, symbols) for d in ty.shape.values] if is_known else [4] * max(ty.ndim, 1)
        if np.prod(shape, dtype=float) > MOST_ELEMENTS:
            raise NotRunnable(f"an operand of the shape {shape}")
        dtype = "float32" if ty.dtype is None else str(ty.dtype)
        if "int" in dtype:
            return tvm.runtime.tensor(random.integers(0, 5, shape).astype(dtype))
        if dtype == "bool":
            return tvm.runtime.tensor(random.random(shape) < 0.5)
        return tvm.runtime.tensor(random.random(shape).astype(dtype))
    if isinstance(ty, relax.TupleType):
        return tuple(argument(field, symbols, random) for field in ty.fields)
    if isinstance(ty, relax.ShapeType) and ty.values is not None:
        return tvm.runtime.ShapeTuple([extent(d, symbols) for d in ty.values])
    if isinstance(ty, tvm.ir.PrimType):
        return 3.0 if "float" in str(ty.dtype) else 3
    raise NotRunnable(f"a parameter of the type {ty}")


def leaves(value):
    """Returns the arrays and numbers of a result."""
    found, todo = [], [value]
    while todo:
        item = todo.pop()
        if hasattr(item, "numpy"):
            found.append(item.numpy())
        elif isinstance(item, (int, float, bool)):
            found.append(np.asarray(item))
        elif hasattr(item, "__len__"):
            todo += [item[i] for i in range(len(item))]
        else:
            raise NotRunnable(f"a result of the class {type(item).__name__}")
    return found


def results(mod):
    """Returns the results of the public functions of a module on random operands."""
    functions = {gv.name_hint: fn for gv, fn in mod.functions.items() if isinstance(fn, relax.Function)}
    shown = [name for name, fn in functions.items() if is_public(fn)] or ["main"]
    public = tvm.IRModule(dict(mod.functions.items()), attrs=mod.attrs)
    for name in shown:
        public.update_func(public.get_global_var(name), functions[name].with_attr("global_symbol", name))
    found = {}
    try:
        machine = relax.VirtualMachine(relax.build(relax.transform.Normalize()(public), "llvm"), tvm.cpu())
        for name in shown:
            symbols, random = {}, np.random.default_rng(0)
            values = [argument(p.ty, symbols, random) for p in functions[name].params]
            found[name] = leaves(machine[name](*values))
    except NotRunnable:
        raise
    except Exception as error:
        raise NotRunnable(str(error).strip().splitlines()[-1]) from error
    return found


def same_results(left, right):
    """Returns true if the results of two modules are the same, up to rounding."""
    return left.keys() == right.keys() and all(
        len(left[name]) == len(right[name])
        and all(
            a.shape == b.shape and a.dtype == b.dtype and np.allclose(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
            for a, b in zip(left[name], right[name])
        )
        for name in left
    )


def bindings(mod):
    """Returns the number of bindings of the functions of a module, those inside others included."""
    count, todo = 0, [fn for fn in mod.functions.values() if isinstance(fn, relax.Function)]
    while todo:
        item = todo.pop()
        if isinstance(item, relax.Function):
            todo.append(item.body)
        elif isinstance(item, relax.If):
            todo += [item.true_branch, item.false_branch]
        elif isinstance(item, relax.SeqExpr):
            found = [b.value for block in item.blocks for b in block.bindings]
            count += len(found)
            todo += found
    return count


# ---- the pairs -----------------------------------------------------------------------------------

LIST = pathlib.Path(__file__).with_name("tvm_pairs.json")

#: The verdicts of the lines of the list.
VERDICTS = ("equal in form", "better", "by design")


def pairs():
    """Returns the recorded pairs by pass. The recordings lack FoldBatchnormToConv2D, whose pairs
    are the modules that BindParams leaves in its tests, and what TVM makes of them here."""
    path = os.environ.get("ANFORA_TVM_PAIRS")
    if not path:
        pytest.skip("ANFORA_TVM_PAIRS does not name the recordings")
    if not tvm.__version__.startswith("0.26."):
        pytest.skip("the recordings are those of apache-tvm 0.26")
    found = collections.defaultdict(list)
    with gzip.open(path, "rt") as lines:
        for line in lines:
            pair = json.loads(line)
            if pair["after"] is None:
                continue
            found[pair["pass"]].append(pair)
            if pair["pass"] == "BindParams" and "fold_batch_norm" in pair["test"]:
                after = relax.transform.FoldBatchnormToConv2D()(tvm.ir.load_json(pair["after"]))
                made = {"pass": "FoldBatchnormToConv2D", "args": {}, "before": pair["after"]}
                found["FoldBatchnormToConv2D"].append({**pair, **made, "after": tvm.ir.save_json(after)})
    return found


def of_anfora(pair, before):
    """Returns what the pass of anfora makes of a module of TVM."""
    mod = bridge.from_relax(before)
    with T.PassContext(opt_level=3):
        return bridge.to_relax(PASSES[pair["pass"]](**(pair["args"] or {}))(mod))


def complaint(pair, line):
    """Returns what is not as the list says; ``None`` if all is."""
    before, after = (tvm.ir.load_json(pair[key]) for key in ("before", "after"))
    try:
        ours = of_anfora(pair, before)
    except bridge.TvmError as error:
        return f"is refused: {error}"
    if same(ours, after):
        return None if line is None else f"is equal, not {line['verdict']}"
    if line is None:
        return "differs, and is not in the list"
    if line["verdict"] == "equal in form":
        return None if same_form(ours, after, line["forms"]) else f"is not equal after {', '.join(line['forms'])}"
    if line["verdict"] == "better" and bindings(ours) >= bindings(after):
        return f"has {bindings(ours)} bindings, and {bindings(after)} with TVM's pass"
    return results_complaint(before, after, ours, line)


def results_complaint(before, after, ours, line):
    """Returns what is not as the list says of the results. By default, the new modules have the
    same ones, and so does the one before if it can be run. ``run`` says "TVM's differ" if only
    anfora's module has those of before, and "cannot" if the new modules cannot be run."""
    try:
        found = results(ours), results(after)
    except NotRunnable as error:
        return None if line.get("run") == "cannot" else f"cannot be run: {error}"
    same, kept = same_results(*found), True
    with contextlib.suppress(NotRunnable):
        kept = same_results(results(before), found[0])
    now = "differ" if not kept else "same" if same else "TVM's differ"
    return None if now == line.get("run", "same") else f"has results that are {now!r}"


@pytest.mark.parametrize("pipeline", ["O2", "O3", "slim", "InlineFunctions,Normalize,LambdaLifting,AttachGlobalSymbol"])
def test_pipelines_leave_well_formed_modules(pipeline):
    for text in sorted({pair["before"] for recorded in pairs().values() for pair in recorded}):
        before = tvm.ir.load_json(text)
        mod = bridge.from_relax(before)
        with T.PassContext(opt_level=3):
            after = bridge.to_relax(T.parse_pipeline(pipeline)(mod))
        if relax.analysis.check_well_formed(before):
            relax.analysis.well_formed(after)


@pytest.mark.parametrize("name", sorted(PASSES))
def test_the_pairs_of_a_pass(name):
    judged = {(line["pass"], line["pair"]): line for line in json.loads(LIST.read_text())["pairs"]}
    recorded = pairs()[name]
    assert recorded
    counts, wrong = collections.Counter(), []
    for pair in recorded:
        line = judged.pop((name, pair["seq"]), None)
        text = complaint(pair, line)
        if text is None and line is not None and line["test"] != pair["test"].split("::")[1]:
            text = f"is not that of {line['test']}"
        if text is not None:
            wrong.append(f"pair {pair['seq']} ({pair['test']}) {text}")
        counts[line["verdict"] if line else "equal"] += 1
    wrong += [f"pair {seq} is not recorded" for of, seq in judged if of == name]
    print(f"\n{name}: {len(recorded)} pairs,", ", ".join(f"{n} {verdict}" for verdict, n in counts.most_common()))
    assert not wrong, "\n".join(wrong)


def test_the_list_is_well_formed():
    lines = json.loads(LIST.read_text())["pairs"]
    keys = [(line["pass"], line["pair"]) for line in lines]
    assert keys == sorted(set(keys))
    for line in lines:
        assert line["pass"] in PASSES and line["verdict"] in VERDICTS and line["reason"], line
        assert ("forms" in line) == (line["verdict"] == "equal in form"), line
        assert set(line.get("forms", [])) <= set(FORMS) - {line["pass"]}, line
