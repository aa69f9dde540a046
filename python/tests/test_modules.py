"""Programs: text, functions, bindings, types, literals, equality, copies."""

import copy
import html
import pickle
import re

import anfora as af
import pytest
from anfora import _html

TEXT = """def @main(%x: Tensor[(n, 4), float32], %c: bool) -> Tensor[(n, 4), float32] {
  let %a = add(%x, 1f);
  let %b = if (%c) {
    let %d = exp(%a);
    %d
  } else {
    %a
  };
  let %t = (%a, %b);
  let %f = %t.1;
  permute_dims(%f, axes=[0, 1])
}
"""


@pytest.fixture
def mod():
    return af.loads(TEXT, "example.anf")


def test_a_module_is_its_text(mod):
    assert af.loads(mod.text()) == mod
    assert hash(af.loads(mod.text())) == hash(mod)
    assert af.loads(TEXT.replace("%a", "%other")) == mod
    assert af.loads(TEXT.replace("1f", "2f")) != mod
    assert mod != 3
    assert "main" in mod and "other" not in mod and len(mod) == 1 and list(mod) == ["main"]


def test_functions_are_found_by_name(mod):
    assert mod["main"].name == "main" and mod["@main"] == mod["main"]
    assert list(mod.functions) == ["main"]
    with pytest.raises(KeyError, match="did you mean"):
        mod["mian"]


def test_bindings_are_handles(mod):
    f = mod["main"]
    assert [b.name for b in f.bindings] == ["a", "d", "b", "t", "f"]
    a, d, b, t, field = f.bindings
    assert (a.op, a.value.kind) == ("add", "call")
    assert [arg.kind for arg in a.args] == ["var", "literal"]
    assert a.args[0] == f.params[0] and hash(a.args[0]) == hash(f.params[0])
    assert a.type.shape == ("n", 4) and a.type.dtype == "float32" and a.type.ndim == 2
    assert str(a.loc) == "example.anf:2:3" and a.loc.line == 2
    assert b.value.kind == "if" and b.value.cond.name == "c"
    assert [x.name for x in b.value.then_block.bindings] == ["d"]
    assert b.value.then_block.result.name == "d"
    assert b.value.else_block.name == "a"
    assert t.value.kind == "tuple" and [x.name for x in t.args] == ["a", "b"]
    assert field.value.kind == "tuple_getitem" and field.value.index == 1
    assert f.result.op == "permute_dims" and f.result.attrs["axes"] == [0, 1]
    assert str(f.ret_type) == "Tensor[(n, 4), float32]"
    assert repr(a) == "<anfora.Binding let %a: Tensor[(n, 4), float32] = add(%x, float32[])>"
    assert len(f.bindings) == 5 and f.bindings[-1] == field
    with pytest.raises(IndexError):
        f.bindings[5]


def test_literals(mod):
    one = mod["main"].bindings[0].args[1].literal
    assert one.dtype == "float32" and one.shape == () and one.item() == 1.0
    assert mod["main"].params[0].literal is None
    assert af.Literal(2).dtype == "int32" and af.Literal(2.5).dtype == "float32"
    assert af.Literal(True).item() is True
    assert af.Literal(3, "int8").item() == 3
    assert pickle.loads(pickle.dumps(one)) == one
    assert af.Literal(1.5, name="bias").name == "bias"
    with pytest.raises(ValueError, match="float32"):
        af.Literal(1, "flaot32")
    with pytest.raises(ValueError):
        af.Literal(300, "int8")


def test_types():
    ty = af.Type("(Tensor[(n, 4), float32], int64)")
    assert ty.kind == "tuple" and [str(f) for f in ty.fields] == ["Tensor[(n, 4), float32]", "Tensor[(), int64]"]
    assert ty == af.Type(str(ty)) and hash(ty) == hash(af.Type(str(ty)))
    assert ty != af.Type("int64") and ty != 3
    assert pickle.loads(pickle.dumps(ty)) == ty
    assert af.Type("Tensor[(?, 2), float32]").shape == (None, 2)
    with pytest.raises(af.ParseError):
        af.Type("Tensor[(n, float32]")


def test_copies_are_separate(mod):
    for other in (copy.copy(mod), copy.deepcopy(mod), mod.copy(), pickle.loads(pickle.dumps(mod))):
        assert other == mod
        other.rename("main", "renamed")
        assert "renamed" in other and "main" in mod
        assert other != mod


def test_attributes(mod):
    f = mod["main"]
    assert f.set_attr("level", 3) is f
    f.set_attr("names", ["a", ["b", 1.5]])
    f.set_attr("dims", (2, None))
    assert f.attrs == {"level": 3, "names": ["a", ["b", 1.5]], "dims": (2, None)}
    f.set_attr("level", None)
    assert "level" not in f.attrs
    mod.set_attr("producer", "test")
    assert mod.attrs == {"producer": "test"}
    assert af.loads(mod.text())["main"].attrs == f.attrs
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="holds itself"):
        f.set_attr("circle", circle)
    with pytest.raises(TypeError):
        f.set_attr("set", {1, 2})


def test_a_stale_handle_says_so(mod):
    a = mod["main"].bindings[0]
    af.transform.DeadCodeElimination().apply(mod)
    assert a.name == "a"
    af.transform.CanonicalizeBindings().apply(mod)
    with pytest.raises(af.StaleError):
        a.name
    assert "stale" in repr(a)
    f = mod["main"]
    del mod["main"]
    with pytest.raises(af.StaleError):
        f.name


def test_mistakes_have_their_place():
    with pytest.raises(af.ParseError) as caught:
        af.loads("def @main(%x: float32) {\n  exq(%x)\n}", "wrong.anf")
    (found,) = caught.value.diagnostics
    assert (found.file, found.line, found.column) == ("wrong.anf", 2, 3)
    assert "exp" in found.help and "wrong.anf:2:3" in str(caught.value)
    with pytest.raises(TypeError):
        af.loads(3)


def test_a_page_links_names_to_what_binds_them():
    def links(page):
        return [html.unescape(name).split("@", 1)[1] for name in re.findall(r'href="#([^"]*)"', page)]

    page = _html.page('''def @main(%x: float32, %"a.b": float32) {
  let %t = split(%x, sections=2);
  let %first = %t.0;
  let %f = fn (%p: float32) { add(%p, %"a.b") };
  @help(%first, note="%x")
}

def private @help(%x: float32) {
  exp(%x)
}''')
    assert links(page) == ['main%x', 'main%t', 'main%p', 'main%"a.b"', 'help', 'main%first', 'help%x']
    defined = [html.unescape(name).split("@", 1)[1] for name in re.findall(r'<a id="([^"]*)"', page)]
    assert defined == [
        'main', 'main%x', 'main%"a.b"', 'main%t', 'main%first', 'main%f', 'main%p', 'help', 'help%x'
    ]


def test_a_notebook_shows_a_page(mod):
    page = mod._repr_html_()
    assert page.startswith("<style>") and "href=" in page and "permute_dims" in page
    lines = "\n".join(f"  let %v{i} = exp(%x);" for i in range(500))
    long = af.loads(f"def @main(%x: float32) {{\n{lines}\n  %x\n}}")
    assert "more lines" in long._repr_html_()


def test_building(mod):
    fb = af.FunctionBuilder(mod, "built")
    x = fb.param("x", "Tensor[(8,), float32]")
    flag = fb.param("flag", "bool")
    with fb.dataflow() as region:
        y = fb.emit("add", x, 1.0, name="y")
        z = fb.emit("sum", y, axis=[0], keepdims=True, name="z")
        region.output(z)
    assert str(z.type) == "Tensor[(1,), float32]" and z.name == "z"
    fb.open_block()
    then = fb.close_block(fb.emit("exp", z))
    fb.open_block()
    other = fb.close_block(z)
    chosen = fb.emit_if(flag, then, other, name="chosen")
    pair = fb.emit_tuple(chosen, z)
    first = fb.emit_tuple_getitem(pair, 0)
    (p,) = fb.open_function(("p", "Tensor[(1,), float32]"))
    f = fb.close_function(fb.emit("tanh", p), name="f")
    function = fb.finish(fb.emit(f, first))
    assert function.name == "built" and len(function.bindings) == 9
    mod.verify()
    with pytest.raises(af.StaleError):
        fb2 = af.FunctionBuilder(mod, "other")
        fb2.emit("exp", x)
    fb3 = af.FunctionBuilder(mod, "third")
    with pytest.raises(af.VerifyError, match="exp"):
        fb3.emit("exq", fb3.param("x", "float32"))
    with pytest.raises(af.AnforaError):
        fb.emit("exp", 1.0)


def test_an_ill_formed_module_is_told():
    mod = af.loads("def @main(%x: float32) -> float32 { %x }")
    mod.verify()
