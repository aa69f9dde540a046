"""Modules and reports as pages for notebooks."""

from __future__ import annotations

import html
import os
import re
from abc import ABC, abstractmethod

#: The most lines that a notebook shows.
LINES = 200

#: A text in quotes, and a name after its `%` or `@`. A dot ends a name: `%t.0` is a field of `%t`.
_STRING = r"\"(?:[^\"\\\n]|\\.)*\""
_NAME = rf"(?:{_STRING}|[A-Za-z0-9_$]+)"

_TOKEN = re.compile(
    rf"(?P<comment>//[^\n]*)|(?P<string>{_STRING})|(?P<local>%{_NAME})|(?P<function>@{_NAME})"
    r"|(?P<number>\b-?\d[\w.]*)|(?P<word>\b(?:let|def|if|else|fn|dataflow|output|private|declare|none|true|false)\b)"
)

_HEAD = re.compile(rf"\s*(?:def\s+(?:private\s+)?|declare\s+)(@{_NAME})")
_LET = re.compile(rf"\s*let\s+(%{_NAME})")
_PARAMETER = re.compile(rf"(%{_NAME}):")

_STYLE = (
    ".anfora{font-family:monospace;white-space:pre;line-height:1.35;overflow-x:auto}"
    ".anfora .comment{color:#888}.anfora .string{color:#a31515}.anfora .number{color:#098658}"
    ".anfora .word{color:#0000c0;font-weight:bold}.anfora a{color:inherit;text-decoration:none}"
    ".anfora a:target{background:#ffef9f}.anfora a:hover{text-decoration:underline}"
)

_pages = 0


def page(text: str) -> str:
    """Returns the first lines of a module as HTML: coloured, uses linked to definitions."""
    global _pages
    _pages += 1
    lines = text.splitlines()
    shown = lines[:LINES]
    defined: set[str] = set()
    function = ""
    out: list[str] = []
    for line in shown:
        head = _HEAD.match(line)
        bound = _LET.match(line)
        # The parameters of a function or of a `fn` are followed by their types.
        binders = set(_PARAMETER.findall(line)) if head or " fn (" in line else set()
        if head:
            function = head.group(1)
            binders.add(function)
        if bound:
            binders.add(bound.group(1))
        out.append(_line(line, binders, defined, function))
    more = len(lines) - len(shown)
    if more > 0:
        out.append(f'<span class="comment">... {more} more lines</span>')
    return f'<style>{_STYLE}</style><div class="anfora">' + "\n".join(out) + "</div>"


def _line(line: str, binders: set[str], defined: set[str], function: str) -> str:
    parts: list[str] = []
    at = 0
    for token in _TOKEN.finditer(line):
        parts.append(html.escape(line[at : token.start()]))
        at = token.end()
        kind, text = token.lastgroup or "", token.group()
        shown = html.escape(text)
        if kind in ("local", "function"):
            name = f"{_pages}{text}" if kind == "function" else f"{_pages}{function}{text}"
            anchor = html.escape(name, quote=True)
            if text in binders:
                binders.discard(text)
                defined.add(name)
                parts.append(f'<a id="{anchor}">{shown}</a>')
            elif name in defined or kind == "function":
                parts.append(f'<a href="#{anchor}">{shown}</a>')
            else:
                parts.append(shown)
        else:
            parts.append(f'<span class="{kind}">{shown}</span>')
    parts.append(html.escape(line[at:]))
    return "".join(parts)


class Frame:
    """A page in a frame of its own, as notebooks show it."""

    def __init__(self, page: str, title: str, height: int) -> None:
        self.page, self.title, self.height = page, title, height

    def _repr_html_(self) -> str:
        page, title = html.escape(self.page, quote=True), html.escape(self.title, quote=True)
        return (
            f'<iframe title="{title}" srcdoc="{page}" sandbox="allow-scripts" width="100%"'
            f' height="{self.height}" style="border:0"></iframe>'
        )


class Page(ABC):
    """Something that is shown as a page of its own, which needs no server and no network."""

    title: str

    @abstractmethod
    def html(self) -> str:
        """Returns the page."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())

    def show(self, height: int = 720) -> Frame:
        """Returns the page in a frame, which a notebook shows as the value of a cell's last line."""
        return Frame(self.html(), self.title, height)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()
