"""The differences of modules, and the rewrites that nearly applied."""

import json

import pytest

import anfora as af
from anfora import instrument, transform

TEXT = """def @main(%x: Tensor[(8,), float32], %y: Tensor[(8,), float32]) {
  let %a = add(%x, %y);
  let %b = multiply(%a, 2f);
  %b
}"""


def test_equal_modules_have_no_differences():
    found = af.diff(af.loads(TEXT), af.loads(TEXT.replace("%a", "%p")))
    assert not found and len(found) == 0 and str(found) == "" and found.functions == []


def test_differences_are_text_and_dicts():
    found = af.diff(af.loads(TEXT), af.loads(TEXT.replace("2f", "2.5f").replace("add", "subtract")))
    assert str(found) == (
        "@main %a: operator add -> subtract\n@main %b: operand 1 2f -> 2.5f\n"
    )
    assert len(found) == 2 and repr(found) == "<Differences: 2>"
    (function,) = found.functions
    assert [item["left"] for item in function["items"]] == ["a", "b"]
    assert function["items"][1]["changes"][0] == {"part": "operand", "index": 1, "left": "2f", "right": "2.5f"}
    assert found.module == []


def test_differences_are_a_page(tmp_path):
    found = af.diff(af.loads(TEXT), af.loads(TEXT.replace("2f", "2.5f")), names=("old", "<new>"))
    page = found.html()
    assert "<title>old → &#60;new&#62; – anfora</title>" in page and '"right":"2.5f"' in page
    found.save(tmp_path / "diff.html")
    assert (tmp_path / "diff.html").read_text(encoding="utf-8") == page
    assert 'title="old → &lt;new&gt;"' in found._repr_html_() and "sandbox" in found.show(300)._repr_html_()


def test_near_misses_are_objects():
    with transform.PassContext(why_not=["FoldConstant@%b"]) as context:
        transform.FoldConstant()(af.loads(TEXT))
        (miss,) = context.take_near_misses()
    assert (miss.pass_name, miss.function, miss.binding, miss.what) == ("FoldConstant", "main", "b", "FoldConstant")
    assert miss.why == "%a is not constant"
    assert str(miss) == "why not FoldConstant at @main %b: %a is not constant"


def test_near_misses_of_rules_and_of_fusion_are_objects():
    mod = af.loads("def @main(%x: Tensor[(8,), float32]) { let %a = exp(%x); let %b = multiply(%a, 2f); %b }")
    with transform.PassContext(opt_level=3, why_not=["multiply(%x, 1) => %x@%b", "FuseOps"]) as context:
        transform.SimplifyExpr()(mod)
        (miss,) = context.take_near_misses()
        assert (miss.pass_name, miss.binding, miss.what) == ("SimplifyExpr", "b", "multiply(%x, 1) => %x")
        assert "is the constant 1" in miss.why
        transform.FuseOps()(mod)
        misses = context.take_near_misses()
    assert [(miss.what, miss.binding) for miss in misses] == [("FuseOps", "a"), ("FuseOps", "b")]
    assert all("ConvertToDataflow" in miss.why for miss in misses)


def test_reports_take_no_near_misses_away():
    reports = [instrument.Report(), instrument.Report()]
    with transform.PassContext(why_not=["FoldConstant@%b"], instruments=reports) as context:
        transform.FoldConstant()(af.loads(TEXT))
        assert [miss.binding for miss in context.take_near_misses()] == ["b"]
        assert context.take_near_misses() == []
    for report in reports:
        (run,) = json.loads(report.json())["runs"]
        assert ["FoldConstant", "main", "%b", "%a is not constant"] in run["near_misses"]


def test_near_misses_of_unknown_rules_are_warned_about():
    with transform.PassContext(why_not=["FoldConstnat", "FuseOps"]) as context:
        transform.FoldConstant()(af.loads(TEXT))
        with pytest.warns(UserWarning, match="unknown pass or rule `FoldConstnat`; did you mean `FoldConstant`"):
            assert context.take_near_misses() == []
