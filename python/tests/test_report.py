"""Reports: what each pass did, as a page, as JSON, and as the history of a binding."""

from __future__ import annotations

import html
import json
import re

import anfora as af
from anfora import instrument as I
from anfora import transform as T

PROGRAM = """
def @main(%x: Tensor[(4,), float32]) {
  let %a = add(2f, 3f);
  let %b = multiply(%x, %a);
  let %c = multiply(%x, %a);
  let %unused = tanh(%b);
  add(%b, %c)
}
"""


def recorded() -> I.Report:
    report = I.Report("a <program>")
    with T.PassContext(instruments=[report]):
        T.Sequential([T.FoldConstant(), T.EliminateCommonSubexpr(), T.DeadCodeElimination()])(af.loads(PROGRAM))
    return report


def test_a_binding_has_a_history():
    report = recorded()
    [first, second] = report.history("@main", "%c")
    assert (first.pass_name, first.kind) == ("FoldConstant", "changed")
    assert (first.before, first.after) == ("let %c = multiply(%x, %a);", "let %c = multiply(%x, 5f);")
    assert first.reasons == ["%a: it follows from constants and types"]
    assert (second.pass_name, second.kind, second.after) == ("EliminateCommonSubexpr", "removed", None)
    assert second.reasons
    [event] = report.history("main", "unused")
    assert (event.pass_name, event.kind) == ("DeadCodeElimination", "removed")
    assert report.history("main", "x") == report.history("nothing", "c") == []


def test_a_report_is_json():
    data = json.loads(recorded().json())
    runs = [(run["name"], run["outcome"]) for run in data["runs"] if run["kind"] != "sequence"]
    assert runs == [
        ("FoldConstant", "changed"), ("EliminateCommonSubexpr", "changed"), ("DeadCodeElimination", "changed")
    ]
    assert data["operators"] == {"add": 2, "multiply": 2, "tanh": 1}


def test_a_report_is_a_page(tmp_path):
    report = recorded()
    page = report.html()
    assert "<title>a &#60;program&#62; – anfora</title>" in page or "<title>a &lt;program&gt; – anfora</title>" in page
    assert not re.search(r"""(?:src|href)="?(?:https?:|//)|url\((?!#)""", page)
    assert '"pipeline":"FoldConstant,EliminateCommonSubexpr,DeadCodeElimination"' in page
    # A notebook shows the page itself, as the document of a frame.
    frame = html.unescape(report.show()._repr_html_())
    assert frame.startswith("<iframe ") and page in frame
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page


def test_a_notebook_shows_a_report_in_a_frame():
    report = recorded()
    frame = report.show(height=300)._repr_html_()
    assert frame.startswith("<iframe") and 'height="300"' in frame
    [source] = re.findall(r'srcdoc="([^"]*)"', frame)
    assert html.unescape(source) == report.html()
    assert report._repr_html_().startswith("<iframe")
