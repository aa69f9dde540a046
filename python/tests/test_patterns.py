"""Patterns and rules: what they match, what they make, what they refuse."""

import threading

import anfora as af
import pytest
from anfora.pattern import (
    Match,
    Matcher,
    Rule,
    RuleSet,
    any_,
    any_literal,
    any_of,
    call,
    capture,
    count_rewrites,
    global_,
    literal,
    none_,
    op,
    op_in,
    rest,
    rewrite,
    tuple_,
    tuple_getitem,
)

TEXT = """def private @g(%z: float32) { sqrt(%z) }
def @main(%x: Tensor[(2, 3), float32], %s: float32, %n: Tensor[(m,), int32]) {
  let %a = add(%x, 1f);
  let %b = multiply(%a, 2f);
  let %c = sum(%b, axis=[1]);
  let %d = clip(%c, none, 1f);
  let %t = (%d, %s);
  let %u = %t.1;
  let %v = @g(%u);
  let %w = add(%n, %n);
  (%v, %w, %b)
}
"""


@pytest.fixture
def mod():
    return af.loads(TEXT)


def roots(mod, pattern):
    return [str(m.root).split("(")[0] or "tuple" for m in Matcher(pattern).find_all(mod["main"])]


def test_each_pattern_matches_its_kind(mod):
    x = any_()
    assert roots(mod, op("add", x, x)) == ["add", "add"]
    assert roots(mod, op("add", x, 1.0)) == ["add"] == roots(mod, op("add", x, 1))
    assert roots(mod, op("add", x, 2.0)) == []
    assert roots(mod, op("multiply", op("add", x, x), x)) == ["multiply"]
    assert roots(mod, op("multiply", op("exp", x), x)) == []
    assert roots(mod, op_in(["add", "multiply"], x, x)) == ["add", "multiply", "add"]
    assert roots(mod, op("add", rest())) == ["add", "add"]
    assert roots(mod, call(global_("g"), x)) == ["@g"] == roots(mod, call(global_("@g"), x))
    assert roots(mod, call(global_("h"), x)) == []
    assert roots(mod, tuple_(x, x)) == ["tuple"]
    assert roots(mod, tuple_getitem(x, 1)) == ["%t.1"] == roots(mod, tuple_getitem(x))
    assert roots(mod, tuple_getitem(x, 0)) == []
    assert roots(mod, op("multiply", x, any_literal())) == ["multiply"]
    assert roots(mod, op("multiply", x, literal(2))) == ["multiply"]
    assert roots(mod, op("multiply", x, literal(af.Literal(2.0)))) == ["multiply"]
    assert roots(mod, op("multiply", x, literal(af.Literal(3.0)))) == []
    assert roots(mod, op("clip", x, none_(), x)) == ["clip"] == roots(mod, op("clip", x, None, x))
    assert roots(mod, any_of(op("sum", x), op("clip", rest()))) == ["sum", "clip"]
    assert roots(mod, op("sum", x) | op("exp", x)) == ["sum"]


def test_conditions(mod):
    x, add = any_(), op("add", any_(), any_())
    assert roots(mod, add.dtype("int32")) == ["add"] == roots(mod, add.dtype("float32"))
    assert roots(mod, add.dtype("float64")) == []
    assert roots(mod, add.rank(2)) == ["add"] and roots(mod, add.rank(3)) == []
    assert roots(mod, add.shape([None, 3])) == ["add"] and roots(mod, add.shape([2, 4])) == []
    assert roots(mod, add.static_shape()) == ["add"]
    assert roots(mod, op("sum", x).attr("axis", [1])) == ["sum"]
    assert roots(mod, op("sum", x).attr("axis", [0])) == []
    assert roots(mod, op("sum", x).attr("keepdims", False)) == ["sum"]
    assert roots(mod, op("sum", x).attr("keepdims", True)) == []
    assert roots(mod, op("multiply", add.used_once(), x)) == ["multiply"]
    assert roots(mod, op("sum", op("multiply", x, x).used_once())) == []
    assert roots(mod, op("add", 1.0, x)) == ["add"]
    assert roots(mod, op("add", 1.0, x).ordered()) == []
    assert roots(mod, op("multiply", capture("y").same_type_as("z"), capture("z"))) == []
    assert roots(mod, op("add", capture("y"), capture("y"))) == ["add"]
    assert roots(mod, op("sum", x.optional(lambda p: op("multiply", p, x)))) == ["sum"]
    assert roots(mod, add.where(lambda m: m.root.type.ndim == 1)) == ["add"]
    assert roots(mod, add.where(lambda m: [])) == []


def test_captures(mod):
    pattern = op("multiply", op("add", capture("x"), capture("one")).capture("sum"), capture("two"))
    (match,) = Matcher(pattern).find_all(mod["main"])
    assert isinstance(match, Match)
    assert sorted(match) == sorted(match.keys()) == ["one", "sum", "two", "x"] and len(match) == 4
    assert match["x"] == mod["main"].params[0] and match["one"].literal.item() == 1.0
    assert "x" in match and "y" not in match
    assert {name: str(e) for name, e in dict(match).items()}["x"] == "%x"
    with pytest.raises(KeyError, match="nothing was captured"):
        match["y"]
    with pytest.raises(TypeError, match="in the function of a rule"):
        match.emit("exp", match["x"])
    rewrite(mod, Rule("r", "multiply(%x, 2)", "add(%x, %x)"))
    with pytest.raises(af.StaleError):
        match["x"].name


def test_a_rewrite_keeps_what_a_rule_does_not_reach(mod):
    before = af.loads(TEXT)
    rules = [Rule("double", "multiply(%x, 2)", "add(%x, %x)"), Rule("none", "exp(%x)", "%x")]
    assert count_rewrites(mod["main"], rules) == {"double": 1, "none": 0}
    mod.verify()
    assert mod["g"].text() == before["g"].text() and mod != before
    assert count_rewrites(mod, rules) == {"double": 0, "none": 0}
    assert rewrite(mod, []) is mod


def test_the_right_side_as_pattern_number_and_function():
    text = "def @main(%x: float32) { let %a = exp(%x); let %b = tanh(%a); %b }"

    def after(rule):
        mod = af.loads(text)
        rewrite(mod, rule)
        mod.verify()
        return [b.op for b in mod["main"].bindings], str(mod["main"].result)

    exp = op("exp", capture("x"))
    assert after(Rule("r", exp, op("sin", capture("x"))))[0] == ["sin", "tanh"]
    assert after(Rule("r", exp, 2))[0] == ["tanh"]
    assert after(Rule("r", exp, lambda m: m.emit("sin", m.emit("cos", m["x"]))))[0][-1] == "tanh"
    assert after(Rule("r", exp, lambda m: m["x"]))[0] == ["tanh"]
    assert after(Rule("r", exp, lambda m: 2.0))[0] == ["tanh"]
    assert after(Rule("r", exp, lambda m: None))[0] == ["exp", "tanh"]
    assert after(Rule("r", exp, lambda m: m.root))[0] == ["exp", "tanh"]
    assert after(Rule("r", exp, lambda m: m["x"], where=lambda m: False))[0] == ["exp", "tanh"]
    assert after(Rule("r", "exp(%x)", "%x", where=lambda m: True))[0] == ["tanh"]


def test_a_result_of_another_type_is_not_put_in():
    mod = af.loads("def @main(%x: Tensor[(2,), float32]) { exp(%x) }")
    before = mod.text()
    assert count_rewrites(mod, Rule("r", "exp(%x)", "sum(%x)")) == {"r": 0}
    wrong = Rule("r", op("exp", capture("x")), lambda m: m.emit("sum", m["x"]))
    assert count_rewrites(mod, wrong) == {"r": 0}
    assert mod.text() == before


def test_rules_that_are_invalid(mod):
    before = mod.text()
    x = capture("x")
    for rule, message in [
        (Rule("r", "exq(%x)", "%x"), "did you mean `exp`"),
        (Rule("r", "exp(%x)", "%y"), "did you mean `%x`"),
        (Rule("r", "exp(%x", "%x"), "add `\\)`"),
        (Rule("r", "", ""), "expected a term"),
        (Rule("r", op("exq", x), x), "did you mean `exp`"),
        (Rule("r", op("exp", x), capture("y")), "did you mean `x`"),
        (Rule("r", op("exp", rest(), x), x), "rest"),
        (Rule("r", literal(3), x), "not at an atom"),
        (Rule("r", op("exp", x), any_()), "does not determine"),
        (Rule("r", op("exp", x).same_type_as("y"), x), "nothing is captured as `y`"),
        (Rule("r", op_in([], x), x), "no operator"),
        (Rule("r", call(global_("g"), x).attr("a", 1), x), "no operator for a condition"),
    ]:
        with pytest.raises(af.PatternError, match=message):
            rewrite(mod, rule)
        with pytest.raises(af.PatternError, match=message):
            rewrite(mod, [Rule("fine", "multiply(%x, 2)", "add(%x, %x)"), rule])
        assert mod.text() == before
    with pytest.raises(af.PatternError, match="did you mean .exp"):
        Matcher(op("exq", x)).find_all(mod["main"])


def test_values_of_wrong_types(mod):
    x = capture("x")
    for wrong in [
        lambda: capture(3),
        lambda: op(3),
        lambda: op("exp", "x"),
        lambda: op("exp", object()),
        lambda: op_in("exp", x),
        lambda: tuple_getitem(x, "a"),
        lambda: literal(None),
        lambda: global_(3),
        lambda: x.attr("a", object()),
        lambda: x.dtype(3),
        lambda: x.rank("x"),
        lambda: x.shape(3),
        lambda: x.shape("ab"),
        lambda: x.same_type_as(3),
        lambda: x.optional(3),
        lambda: x.optional(lambda p: "x"),
        lambda: x | "x",
        lambda: Rule("r", "exp(%x)", x),
        lambda: Rule("r", x, "%x"),
        lambda: Rule(3, "x", "y"),
        lambda: RuleSet(["x"]),
        lambda: RuleSet(None),
        lambda: rewrite(mod, 3),
        lambda: rewrite(mod, "exp(%x)"),
        lambda: rewrite(3, []),
        lambda: rewrite(mod, [Rule("r", object(), x)]),
        lambda: rewrite(mod, [Rule("r", op("multiply", x, 2), lambda m: "x")]),
        lambda: rewrite(mod, [Rule("r", op("multiply", x, 2), lambda m: {})]),
        lambda: Matcher("x").find_all(mod["main"]),
        lambda: Matcher(op("exp", x)).find_all(mod),
        lambda: Matcher(op("multiply", x, 2).where(3)).find_all(mod["main"]),
    ]:
        with pytest.raises(TypeError):
            wrong()
    for wrong in [lambda: x.dtype("flaot32"), lambda: any_of()]:
        with pytest.raises(ValueError):
            wrong()
    assert mod == af.loads(TEXT)


def test_handles_of_a_rule_end_with_it(mod):
    kept = []
    rewrite(mod, Rule("r", op("multiply", capture("x"), 2), lambda m: kept.append(m)))
    (match,) = kept
    with pytest.raises(af.StaleError):
        match["x"].name
    with pytest.raises(af.StaleError):
        match.emit("exp", match["x"])
    with pytest.raises(af.StaleError):
        match.root.op
    other = Matcher(op("multiply", capture("x"), 2)).find_all(mod["main"])[0]
    with pytest.raises(af.StaleError):
        rewrite(mod, Rule("r", op("multiply", capture("x"), 2), lambda m: other["x"]))
    assert mod == af.loads(TEXT)


def test_a_condition_may_search_meanwhile(mod):
    inner = []

    def condition(match):
        inner.append(len(Matcher(op("add", any_(), any_())).find_all(mod["main"])))
        return True

    pattern = op("multiply", capture("x"), 2).where(condition)
    assert len(Matcher(pattern).find_all(mod["main"])) == 1 and set(inner) == {2}


def test_a_rule_set_is_for_many_functions_and_threads():
    rules = RuleSet([Rule("a", "exp(%x)", "tanh(%x)"), Rule("b", "sin(%x)", "cos(%x)")])
    assert rules.names == ["a", "b"] and len(rules) == 2
    text = "def @main(%x: float32) { let %a = exp(%x); sin(%a) }"
    mods = [af.loads(text) for _ in range(8)]
    counts = []
    threads = [
        threading.Thread(target=lambda m=m: counts.append(count_rewrites(m, rules))) for m in mods
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [{"a": 1, "b": 1}] * 8
    assert len(set(mods)) == 1 and "tanh" in mods[0].text()


def test_deep_patterns_on_a_small_stack():
    depth = 2000
    text = "def @main(%x: float32) { " + "let %x = exp(%x); " * (depth + 5) + "%x }"
    mod = af.loads(text)
    found = []

    def work():
        pattern = capture("x")
        for _ in range(depth):
            pattern = op("exp", pattern)
        found.append(len(Matcher(pattern).find_all(mod["main"])))
        found.append(repr(pattern) != "")
        del pattern

    size = threading.stack_size(64 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    assert found == [6, True]


def test_rules_that_never_end_are_reported():
    mod = af.loads("def @main(%x: float32) { let %a = exp(%x); %a }")
    before = mod.text()
    try:
        counts = count_rewrites(mod, Rule("grows", "exp(%x)", "exp(exp(%x))"))
    except af.PatternError as error:
        assert "grows" in str(error)
    else:
        assert counts == {"grows": 0}
    assert mod.text() == before
