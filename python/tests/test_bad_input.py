"""Bad input: arguments of wrong types, mistakes, files and models that are damaged.

Nothing may panic. A panic is an exception that is no `Exception`, an error that asks for a report,
or the end of the process.
"""

import inspect
import os
import pickle

import anfora as af
import pytest
from anfora import instrument as I
from anfora import pattern as P
from anfora import transform as T
from anfora import visitor as V
from support import MODEL, TEXT, Odd, in_process, mod, public


def odd_values():
    """Returns arguments that no function wants, and some that a few want."""
    other = af.loads("def @main(%x: float32) { let %y = exp(%x); %y }")
    ended = []
    T.Pass("module", "keep", lambda m, ctx: ended.append(m) or m)(other)
    removed = af.loads("def @f(%x: float32) { exp(%x) }")
    gone = removed["f"]
    removed.remove("f")
    circle = []
    circle.append(circle)
    return [
        None, True, 0, -1, 1 << 31, 1 << 63, -(1 << 63), 1 << 64, 1 << 200, 1.5, float("nan"), 1j,
        "", "x", "main", "@main", "\0", "é𝄞", "\ud800", "%x", "a" * 10_000, b"", b"\xff" * 9,
        [], [None], ["x"], [1, 2], circle, (), (1,), {}, {"x": 1}, {1: 2}, set(), range(3), Odd,
        Odd(), len, lambda *args: args, other, other["main"], other["main"].bindings,
        other["main"].bindings[0], other["main"].params[0], other["main"].ret_type, gone, ended[0],
        af.Type("Tensor[(q, 2), float32]"), af.Literal(1.0), T.FoldConstant(), T.PassContext(),
        I.PassTimingInstrument(), P.capture("x"), P.op("exp", P.any_()),
        P.Rule("r", "exp(%x)", "%x"), V.ExprVisitor(), V.ExprMutator(), af.SKIP, iter([1]),
    ]  # fmt: skip


def check(call):
    """Calls, and fails if that panics. All errors that Python itself has are allowed."""
    try:
        return call()
    except (TypeError, ValueError, OverflowError, LookupError, AttributeError, OSError):
        pass
    except (RecursionError, MemoryError, NotImplementedError, af.AnforaError) as error:
        assert "internal error" not in str(error), error
    except Exception as error:
        assert type(error).__module__ != "pyo3_runtime", error
        raise
    return None


MODULES = {"af": af, "transform": T, "instrument": I, "pattern": P, "visitor": V, "onnx": af.onnx}


FUNCTIONS = [
    (f"{where}.{name}", value)
    for where, namespace in MODULES.items()
    for name, value, _ in public(namespace)
    if callable(value) and getattr(value, "__module__", "").startswith("anfora")
]


def objects(mod):
    """Returns objects of all classes, whose methods are called."""
    f = mod["main"]
    bindings = f.bindings
    fb = af.FunctionBuilder(mod, "new")
    x = fb.param("x", "float32")
    (match,) = P.Matcher(P.op("exp", P.capture("x"))).find_all(f)
    return [
        mod, f, bindings, bindings[0], bindings[0].value, f.params[0], f.body, x, fb, f.ret_type,
        af.Literal(1.0), P.capture("x"), P.op("add", P.any_(), P.any_()), match,
        P.RuleSet([]), P.Rule("r", "exp(%x)", "%x"), T.FoldConstant(),
        T.Sequential([T.FoldConstant()]), T.PassContext(), T.FoldConstant().info,
        I.PassTimingInstrument(), I.Bisect(3), V.ExprVisitor(), V.ExprMutator(),
        P.Matcher(P.any_()),
    ]  # fmt: skip


# Values that cannot be shown in a message, and the warnings of NumPy.
QUIET = pytest.mark.filterwarnings("ignore")


@QUIET
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda pair: pair[0])
def test_functions_refuse_odd_arguments(function, mod, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    before = mod.text()
    _, call = function
    odd = odd_values()
    check(call)
    for value in odd:
        check(lambda: call(value))
        check(lambda: call(value, value))
        check(lambda: call(mod, value))
        check(lambda: call(mod["main"], value))
        check(lambda: call("module", "x", value))
        check(lambda: call(name=value))
    if mod.text() != before:
        # A few functions, such as `count_rewrites`, are asked to edit.
        mod.verify()


NUMBER_OF_OBJECTS = 25


@QUIET
@pytest.mark.parametrize("index", range(NUMBER_OF_OBJECTS))
def test_methods_refuse_odd_arguments(index, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    odd = odd_values()
    one = objects(af.loads(TEXT))[index]
    for name, _, static in public(type(one)):
        mod = af.loads(TEXT)
        target = objects(mod)[index]
        if not callable(static) and not isinstance(static, staticmethod):
            check(lambda: getattr(target, name))
            continue
        check(lambda: getattr(target, name)())
        for value in odd:
            for args in [(value,), (value, value), ("x", value), ("exp", value, value)]:
                check(lambda: getattr(target, name)(*args))
            check(lambda: getattr(target, name)(name=value))
        check(lambda: (repr(target), str(target), hash(target), target == target))
        mod.verify()
        assert af.loads(mod.text()) == mod or "set_attr" in dir(type(target)), name


def test_all_classes_have_an_object(mod):
    assert len(objects(mod)) == NUMBER_OF_OBJECTS
    assert len(FUNCTIONS) > 100


WRONG_TYPES = [
    lambda m: af.loads(3),
    lambda m: af.loads(None),
    lambda m: af.loads(b"def"),
    lambda m: af.loads("", 3),
    lambda m: af.load(3),
    lambda m: af.load(None),
    lambda m: af.save(m, 3),
    lambda m: af.save(3, os.devnull),
    lambda m: af.save(3, "new.onnx"),
    lambda m: af.onnx.from_onnx(3),
    lambda m: af.onnx.from_onnx(None),
    lambda m: af.onnx.to_bytes(3),
    lambda m: af.onnx.to_bytes(m, entry=3),
    lambda m: af.onnx.to_bytes(m, opset="x"),
    lambda m: m[3],
    lambda m: m[None],
    lambda m: m.rename("main", 3),
    lambda m: m.remove(3),
    lambda m: m.set_attr(3, 3),
    lambda m: m.set_attr("x", {}),
    lambda m: m["main"].set_attr("x", Odd()),
    lambda m: m["main"].bindings["x"],
    lambda m: m["main"].bindings[None],
    lambda m: m.text(elide=3),
    lambda m: m < m,
    lambda m: af.Type(3),
    lambda m: af.Literal(Odd()),
    lambda m: af.Function(),
    lambda m: af.Expr(),
    lambda m: af.FunctionBuilder(3),
    lambda m: af.FunctionBuilder(m, 3),
    lambda m: af.FunctionBuilder(m, "k").param("x", 3),
    lambda m: af.FunctionBuilder(m, "k").emit(3),
    lambda m: af.FunctionBuilder(m, "k").emit("exp", "x"),
    lambda m: af.FunctionBuilder(m, "k").emit("exp", {}),
    lambda m: af.FunctionBuilder(m, "k").finish("x"),
    lambda m: af.FunctionBuilder(m, "k").end_dataflow(3),
    lambda m: af.FunctionBuilder(m, "k").open_function("p"),
    lambda m: T.FoldConstant()(3),
    lambda m: T.FoldConstant()(None),
    lambda m: T.FoldConstant()(m["main"]),
    lambda m: T.FoldConstant()(m, 3),
    lambda m: T.FoldConstant().apply(m, "x"),
    lambda m: T.Sequential([T.FoldConstant]),
    lambda m: T.Sequential(3),
    lambda m: T.Repeat([3]),
    lambda m: T.parse_pipeline(3),
    lambda m: T.module_pass(Odd),
    lambda m: T.module_pass(3),
    lambda m: T.Pass("module", "p", 3),
    lambda m: T.PassContext(opt_level="x"),
    lambda m: T.PassContext(opt_level=1.5),
    lambda m: T.PassContext(required_pass="FoldConstant"),
    lambda m: T.PassContext(required_pass=[3]),
    lambda m: T.PassContext(config={1: 1}),
    lambda m: T.PassContext(config=3),
    lambda m: T.PassContext(instruments=3),
    lambda m: T.PassContext(instruments=[3]),
    lambda m: T.PassContext(instruments=[None]),
    lambda m: T.PassContext(instruments=[I.PassTimingInstrument]),
    lambda m: T.PassContext(verify="x"),
    lambda m: T.PassContext(bogus=1),
    lambda m: T.PassContext().override_instruments([3]),
    lambda m: I.Bisect("x"),
    lambda m: I.DumpIR(3),
    lambda m: I.PrintBeforeAll("main"),
    lambda m: I.pass_instrument(Odd),
    lambda m: V.ExprVisitor().visit(3),
    lambda m: V.ExprVisitor().visit(m["main"].bindings[0]),
    lambda m: V.ExprVisitor().only(3).visit(m),
    lambda m: V.ExprMutator().visit(m["main"].body),
    lambda m: V.post_order_visit(m, 3),
    lambda m: V.post_order_rewrite(m, 3),
    lambda m: af.slim(3),
    lambda m: af.slim(b"", disable="FoldConstant"),
]


@pytest.mark.parametrize("wrong", WRONG_TYPES, ids=inspect.getsource)
def test_wrong_types(wrong, mod):
    with pytest.raises(TypeError):
        wrong(mod)
    assert mod == af.loads(TEXT)


def test_what_is_no_class_is_no_instrument():
    with pytest.raises(TypeError):
        I.pass_instrument(3)


def test_symbols_are_a_dictionary(mod):
    with pytest.raises(TypeError):
        T.BindSymbols(symbols=3)(mod)


def broken(text):
    return lambda m: af.loads(text, "wrong.anf")


def build(*steps):
    def work(m):
        fb = af.FunctionBuilder(m, "built")
        x, c = fb.param("x", "Tensor[(8,), float32]"), fb.param("c", "bool")
        last = None
        for step in steps:
            last = step(fb, x, c, last)

    return work


MISTAKES = [
    (broken("def @main(%x: float32) { exq(%x) }"), af.ParseError, "did you mean `exp`"),
    (broken("def @main(%x: float32) { exp(%y) }"), af.ParseError, "wrong.anf:1:30"),
    (broken("def @main(%x: flaot32) { %x }"), af.ParseError, "did you mean `float32`"),
    (broken("def @main(%x: float32)\n{\n  exp(%x"), af.ParseError, "wrong.anf:3:"),
    (broken("dfe @main() { () }"), af.ParseError, "wrong.anf:1:1"),
    (broken("\0"), af.ParseError, "unexpected character"),
    (broken("(" * 100_000), af.ParseError, "expected an item"),
    (broken("def @main() {" + "(" * 100_000), af.ParseError, "end of the text"),
    (broken("def @main(%x: float32) { matmul(%x, %x) }"), af.ParseError, "rank"),
    (lambda m: af.Type("flaot32"), af.ParseError, "did you mean `float32`"),
    (lambda m: af.Type(""), af.ParseError, "expected a type"),
    (lambda m: af.Type("Tensor[" * 1000), af.ParseError, "type:1:8"),
    (lambda m: af.Type("!a0"), af.ParseError, "unknown alias"),
    (lambda m: m["mian"], KeyError, "did you mean .*main"),
    (lambda m: m.rename("mian", "x"), KeyError, "did you mean .*main"),
    (lambda m: m.rename("main", "g"), af.AnforaError, "there is a function"),
    (lambda m: m.remove("mian"), KeyError, "did you mean .*main"),
    (lambda m: m["main"].bindings[99], IndexError, "bindings"),
    (build(lambda fb, x, c, _: fb.emit("exq", x)), af.VerifyError, "did you mean `exp`"),
    (build(lambda fb, x, c, _: fb.emit("")), af.VerifyError, "unknown operator"),
    (build(lambda fb, x, c, _: fb.emit("exp")), af.VerifyError, "takes 1 operands"),
    (build(lambda fb, x, c, _: fb.emit("add", x, None)), af.VerifyError, "operand 1 is missing"),
    (build(lambda fb, x, c, _: fb.emit("add", x, x, axis=1)), af.VerifyError, "no attribute"),
    (build(lambda fb, x, c, _: fb.emit("sum", x, axis=[1 << 62])), af.VerifyError, "out of range"),
    (build(lambda fb, x, c, _: fb.emit("sum", x, axis="x")), af.VerifyError, "list of integers"),
    (build(lambda fb, x, c, _: fb.emit(x, x)), af.VerifyError, "cannot be called"),
    (build(lambda fb, x, c, _: fb.emit("@g", x, x)), af.VerifyError, "takes"),
    (build(lambda fb, x, c, _: fb.emit_tuple_getitem(x, 0)), af.VerifyError, "a tuple"),
    (build(lambda fb, x, c, _: fb.emit_tuple_getitem(fb.emit_tuple(x), 7)), af.VerifyError, "7"),
    (build(lambda fb, x, c, _: fb.match_cast(x, "Tensor[(3,), int8]")), af.VerifyError, "int8"),
    (build(lambda fb, x, c, _: fb.match_cast(x, "flaot32")), af.ParseError, "did you mean"),
    (build(lambda fb, x, c, _: fb.param("y", "flaot32")), af.ParseError, "did you mean"),
    (build(lambda fb, x, c, _: fb.emit_if(x, x, x)), af.VerifyError, "condition"),
    (build(lambda fb, x, c, _: fb.emit_if(c, x, c)), af.VerifyError, "nothing in common"),
    (build(lambda fb, x, c, _: fb.close_block(x)), af.VerifyError, "not closed in the order"),
    (build(lambda fb, x, c, _: fb.close_function(x)), af.VerifyError, "not closed in the order"),
    (
        build(lambda fb, x, c, _: fb.open_block(), lambda fb, x, c, _: fb.finish(x)),
        af.VerifyError,
        "not closed in the order",
    ),
    (
        build(lambda fb, x, c, _: fb.ret("int8"), lambda fb, x, c, _: fb.finish(x)),
        af.VerifyError,
        "is stated",
    ),
    (
        build(lambda fb, x, c, _: fb.emit_tuple_getitem(fb.emit_tuple(x), -1)),
        (OverflowError, ValueError),
        ".",
    ),
    (lambda m: m["main"].set_attr("x", 1 << 64), (OverflowError, ValueError), "."),
    (lambda m: m["main"].set_attr("x", ("n",)), af.AnforaError, "extent"),
    (lambda m: m.set_attr("\ud800", 1), UnicodeEncodeError, "surrogates"),
    (lambda m: T.parse_pipeline("FoldConstnat"), af.ConfigError, "did you mean `FoldConstant`"),
    (lambda m: T.parse_pipeline("FuseOps{x=1}"), af.ConfigError, "column 9"),
    (lambda m: T.parse_pipeline("fixpoint<4>(" * 500), af.ConfigError, "at most 64 deep"),
    (lambda m: T.ConvertToDataflow(min_size=-1), af.ConfigError, "whole number"),
    (lambda m: T.EliminateCommonSubexpr(commutative=3), af.ConfigError, "true"),
    (lambda m: T.PassContext(disabled_pass=["FoldConstnat"]), af.ConfigError, "did you mean"),
    (lambda m: T.PassContext(config={"FoldConstant.max_wrok": 1}), KeyError, "did you mean"),
    (lambda m: T.PassContext(config={"FoldConstant.max_work": "x"}), af.ConfigError, "max_work"),
    (lambda m: T.PassContext(opt_level=256), ValueError, "between 0 and 255"),
    (lambda m: T.PassContext(threads=-1), ValueError, "threads"),
    (lambda m: T.PassContext().__exit__(None, None, None), RuntimeError, "not the current one"),
    (lambda m: T.DeadCodeElimination(entries="mian")(m), af.PassError, "mian"),
    (lambda m: T.BindSymbols(symbols={"m": 2})(m), af.PassError, "did you mean `n`"),
    (lambda m: T.EnterPhase(phase="99"), af.ConfigError, "unknown phase"),
    (lambda m: T.phase1(m, precision="float61"), af.ConfigError, "did you mean `float16`"),
    (lambda m: af.onnx.from_onnx(b""), af.OnnxError, "empty"),
    (lambda m: af.onnx.from_onnx(b"\xff" * 100), af.OnnxError, "byte 0"),
    (lambda m: af.onnx.to_bytes(m, entry="mian"), af.OnnxError, "mian"),
    (lambda m: af.onnx.to_bytes(m), af.OnnxError, "run the pass `LambdaLifting`"),
    (lambda m: af.onnx.to_bytes(T.O1(af.loads(MODEL)), opset=-1), af.OnnxError, "version"),
    (lambda m: af.load("not_there.anf"), FileNotFoundError, "not_there.anf"),
    (lambda m: af.load("not_there.onnx"), FileNotFoundError, "No such file"),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda row: f"{row[1]}-{row[2]}")
def test_mistakes(mistake, mod):
    call, error, message = mistake
    with pytest.raises(error, match=message) as caught:
        call(mod)
    if isinstance(caught.value, (af.ParseError, af.VerifyError, af.OnnxError)):
        assert caught.value.diagnostics and all(d.message for d in caught.value.diagnostics)
    if isinstance(caught.value, af.ParseError):
        first = caught.value.diagnostics[0]
        assert (first.line or 0) >= 1 and (first.column or 0) >= 1 and first.file
    assert mod == af.loads(TEXT)
    mod.verify()


def test_places_are_counted_in_characters():
    with pytest.raises(af.ParseError) as caught:
        af.loads('def @main(%"é𝄞": float32) {\r\n  exp(%"é𝄞") ; exq() }', "é.anf")
    found = caught.value.diagnostics[0]
    assert (found.file, found.line, found.column) == ("é.anf", 2, 14)


def test_every_mistake_of_a_text_is_told():
    with pytest.raises(af.ParseError) as caught:
        af.loads("def @main(%x: float32) {\n  let %a = exq(%x);\n  let %b = tahn(%x);\n  %b\n}")
    assert [(d.line, d.help) for d in caught.value.diagnostics] == [
        (2, "did you mean `exp`?"),
        (3, "did you mean `tanh`?"),
    ]


@pytest.mark.parametrize(
    "steps",
    [
        # The variable of a block is used after it.
        [
            lambda fb, x, c, last: fb.open_block(),
            lambda fb, x, c, last: fb.emit("exp", x),
            lambda fb, x, c, last: (fb.close_block(last), last)[1],
            lambda fb, x, c, last: fb.finish(last),
        ],
        # A block is both branches.
        [
            lambda fb, x, c, last: fb.open_block(),
            lambda fb, x, c, last: fb.close_block(fb.emit("exp", x)),
            lambda fb, x, c, last: fb.finish(fb.emit_if(c, last, last)),
        ],
        # A variable of a region is no output.
        [
            lambda fb, x, c, last: fb.begin_dataflow(),
            lambda fb, x, c, last: fb.emit("exp", x),
            lambda fb, x, c, last: (fb.end_dataflow(), last)[1],
            lambda fb, x, c, last: fb.finish(last),
        ],
        # The function is not there.
        [lambda fb, x, c, last: fb.finish(fb.emit("@not_there", x))],
    ],
)
def test_a_built_function_is_well_formed(steps, mod):
    with pytest.raises(af.VerifyError):
        build(*steps)(mod)
    mod.verify()


def test_a_builder_that_fails_leaves_the_function_of_its_name(mod):
    fb = af.FunctionBuilder(mod, "g")
    x = fb.param("x", "Tensor[(8,), float32]")
    fb.ret("int8")
    try:
        fb.finish(x)
    except af.VerifyError:
        pass
    mod.verify()


@pytest.mark.parametrize(
    "use",
    [
        "hash(lit), lit == lit, repr(lit), lit.nbytes, lit.dtype, lit.shape",
        "mod.text(), hash(mod), T.O3(mod), mod.verify()",
        "__import__('pickle').dumps(mod)",
        "lit.tobytes()",
        "__import__('pickle').dumps(lit)",
    ],
)
def test_constants_that_do_not_fit_into_memory(use):
    text = "def @main() { dense<Tensor[(1000000000000,), float32]>[1] }"
    code = f"""
mod = af.loads({text!r})
lit = mod["main"].result.literal
try:
    {use}
except MemoryError:
    pass
"""
    assert in_process(code) == (0, "", "")


def test_files_that_are_damaged(tmp_path):
    (tmp_path / "bad.onnx").write_bytes(b"\x08" + b"\xff" * 50)
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "folder.onnx").mkdir()
    for name in ["bad.onnx", "empty.onnx"]:
        with pytest.raises(af.OnnxError, match=name):
            af.load(tmp_path / name)
    with pytest.raises(OSError):
        af.load(tmp_path / "folder.onnx")
    with pytest.raises(OSError):
        af.save(af.Module(), tmp_path / "nowhere" / "x.anf")


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "binary.anf"
    path.write_bytes("def @é\n é".encode() + b"\xff\xfe\x00def")
    for name in [path, str(path), os.fsencode(path)]:
        with pytest.raises(af.ParseError, match="binary.anf:2:3: error: byte 11") as caught:
            af.load(name)
    (found,) = caught.value.diagnostics
    assert (found.file, found.line, found.column) == (str(path), 2, 3)


def test_programs_in_files(tmp_path, mod):
    path = tmp_path / "é.anf"
    af.save(mod, path)
    assert path.read_bytes() == mod.text().encode() and af.load(os.fsencode(path)) == mod
    (path.parent / "windows.anf").write_bytes(mod.text().replace("\n", "\r\n").encode())
    assert af.load(path.parent / "windows.anf") == mod


def test_a_file_is_kept_if_the_module_cannot_be_printed(tmp_path, mod):
    path = tmp_path / "kept.anf"
    path.write_text("before")
    kept = []
    T.Pass("module", "keep", lambda m, ctx: kept.append(m) or m)(mod)
    with pytest.raises(af.StaleError):
        af.save(kept[0], path)
    assert path.read_text() == "before"


@pytest.mark.xfail(strict=True, raises=af.ParseError, reason="symbols of attributes are not bound")
def test_a_module_with_any_attribute_can_be_read_again(mod):
    mod["main"].set_attr("type", af.Type("Tensor[(k, 2), float32]"))
    assert af.loads(mod.text()) == mod


def test_errors_can_be_pickled():
    with pytest.raises(af.ParseError) as caught:
        af.loads("def @main(%x: flaot32) { %x }")
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error) == str(caught.value) and error.diagnostics == caught.value.diagnostics


def test_slim_knows_the_names_of_passes():
    with pytest.raises(af.ConfigError, match="did you mean .FoldConstant"):
        af.slim(af.onnx.to_bytes(af.loads(MODEL)), disable=["FoldConstnat"])


@pytest.mark.parametrize(
    "arguments",
    [
        {"input_shapes": {"x": ["a"]}},
        {"input_shapes": {"x": 3}},
        {"input_shapes": {3: [1]}},
        {"disable": [3]},
        {"disable": 3},
        {"check": "x"},
        {"output": 3},
    ],
    ids=repr,
)
def test_slim_refuses_wrong_types(arguments):
    with pytest.raises(TypeError):
        af.slim(af.onnx.to_bytes(af.loads(MODEL)), **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_shapes": {"z": [2]}}, "there is no input `z`"),
        ({"input_shapes": {"x": [2, 2]}}, "2 extents are given"),
        ({"input_shapes": {"x": [3]}}, "the extent 3 is given"),
    ],
    ids=repr,
)
def test_slim_refuses_wrong_shapes(arguments, message):
    with pytest.raises(af.PassError, match=message):
        af.slim(af.onnx.to_bytes(af.loads(MODEL)), **arguments)
