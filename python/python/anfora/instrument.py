"""Instruments: objects that watch passes run, and may stop them.

A class with some of the hooks of ``PassInstrument`` is an instrument; so is what the classes below
make. A context takes them: ``PassContext(instruments=[...])``.
"""

from __future__ import annotations

import os
from abc import ABC
from typing import Any, NamedTuple, TypeVar

from . import _anfora
from ._anfora import Module, PassInfo
from ._html import Page


class PassInstrument(ABC):
    """The base class of instruments that are written in Python. All hooks do nothing by default.

    Every instrument of the toolkit, and of a class that ``pass_instrument`` decorates, is an
    instance of it.

    ``mod`` can be looked at while the hook runs. To keep it, make a copy: ``copy.copy(mod)``.
    """

    def enter_pass_ctx(self) -> None:
        """Called when the context becomes the current one."""

    def exit_pass_ctx(self) -> None:
        """Called when the context is not the current one any more."""

    def should_run(self, mod: Module, info: PassInfo) -> bool:
        """Returns whether the pass may run. Not asked for passes that the context requires."""
        return True

    def run_before_pass(self, mod: Module, info: PassInfo) -> None:
        """Called before a pass."""

    def run_after_pass(self, mod: Module, info: PassInfo) -> None:
        """Called with the result of a pass. If it raises, the pass has failed."""

    def on_error(self, mod: Module, info: PassInfo, error: Exception) -> None:
        """Called when a pass has failed and the module is as it was."""

    def on_end(self, mod: Module, info: PassInfo, outcome: Any) -> None:
        """Called last, with the outcome of the pass, or with None if it failed."""


_Class = TypeVar("_Class", bound=type)


def pass_instrument(cls: _Class) -> _Class:
    """Makes a class with some of the hooks an instrument.

    As in TVM. The decorator checks that there is a hook, and registers the class with
    ``PassInstrument``; a class needs neither the decorator nor a base class to be one.
    """
    if not isinstance(cls, type):
        raise TypeError(f"pass_instrument takes a class, not {type(cls).__name__}")
    hooks = [name for name in vars(PassInstrument) if not name.startswith("_")]
    if not any(hasattr(cls, name) for name in hooks):
        raise TypeError(f"{cls.__name__} has none of the methods {', '.join(hooks)}")
    PassInstrument.register(cls)
    return cls


@PassInstrument.register
class _Builtin:
    """An instrument of the toolkit."""

    def __init__(self, kind: str, **options: Any) -> None:
        self._builtin = _anfora._builtin_instrument(kind, options)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PassTimingInstrument(_Builtin):
    """Measures how long each pass takes, without the time of instruments."""

    def __init__(self) -> None:
        super().__init__("timing")

    def render(self) -> str:
        """Returns the times as a table."""
        return self._builtin.render()

    @property
    def total(self) -> float:
        """The number of seconds that all passes took."""
        return self._builtin.total

    def json(self) -> str:
        """Returns the times as JSON."""
        return self._builtin.json()

    def chrome_trace(self) -> str:
        """Returns the times as a trace that Chrome and Perfetto show."""
        return self._builtin.chrome_trace()


class PrintBeforeAll(_Builtin):
    """Prints the module before each pass; only some functions, if their names are given."""

    def __init__(self, functions: list[str] | None = None) -> None:
        super().__init__("print_before", functions=functions)


class PrintAfterAll(_Builtin):
    """Prints the module after each pass; only some functions, if their names are given."""

    def __init__(self, functions: list[str] | None = None) -> None:
        super().__init__("print_after", functions=functions)


class PrintChanged(_Builtin):
    """Prints what each pass changed: the changed functions, or the changed lines with ``diff``."""

    def __init__(self, diff: bool = False, functions: list[str] | None = None) -> None:
        super().__init__("print_changed", diff=diff, functions=functions)


class DumpIR(_Builtin):
    """Writes the module to a file of a folder after each pass; also after passes that changed
    nothing, unless ``unchanged`` is false. ``replace`` removes the files of an earlier run."""

    def __init__(
        self, folder: str | os.PathLike[str], *, unchanged: bool = True, replace: bool = False
    ) -> None:
        super().__init__("dump", folder=os.fspath(folder), unchanged=unchanged, replace=replace)


class WellFormedInstrument(_Builtin):
    """Verifies the module before the first pass, and after each pass that changed it."""

    def __init__(self) -> None:
        super().__init__("well_formed")


class CheckMeaning(_Builtin):
    """Interprets the module before and after each pass. A pass that changes what the module
    computes fails. Meant for tests: interpreting takes far longer than most passes."""

    def __init__(self) -> None:
        super().__init__("check_meaning")


class Bisect(_Builtin):
    """Lets only the first ``limit`` passes run, to find the one that breaks a program."""

    def __init__(self, limit: int) -> None:
        super().__init__("bisect", limit=limit)

    def runs(self) -> list[tuple[int, str, bool]]:
        """Returns the passes that were asked for: number, pass, and whether it ran."""
        return self._builtin.runs()


class BindingEvent(NamedTuple):
    """An event in the history of a binding."""

    pass_name: str
    #: ``"made"``, ``"changed"`` or ``"removed"``; ``"not kept"`` if the pass may have done one of
    #: them, but not all of its changes of the function were kept.
    kind: str
    #: The line of the binding before and after the pass.
    before: str | None
    after: str | None
    #: The rewrites of the binding, and the messages that the pass left about it.
    reasons: list[str]


class Report(_Builtin, Page):
    """Records what each pass does: times, the lines that it changed, and why.

    The report is a page that needs no server and no network: ``show()`` shows it in a notebook, and
    ``save`` writes it to a file. The passes run on one thread.
    """

    def __init__(self, title: str = "report") -> None:
        super().__init__("report")
        self.title = title

    def html(self) -> str:
        """Returns the page."""
        return self._builtin.page(self.title)

    def json(self) -> str:
        """Returns what was recorded as JSON."""
        return self._builtin.json()

    def history(self, function: str, binding: str) -> list[BindingEvent]:
        """Returns the passes that made, changed and removed a binding, in the order in which they
        ran. The names may begin with ``@`` and ``%``. A binding that no pass made was in the
        module before."""
        names = function.removeprefix("@"), binding.removeprefix("%")
        return [BindingEvent(*event) for event in self._builtin.history(*names)]


__all__ = [
    "BindingEvent",
    "Bisect",
    "CheckMeaning",
    "DumpIR",
    "PassInstrument",
    "PassTimingInstrument",
    "PrintAfterAll",
    "PrintBeforeAll",
    "PrintChanged",
    "Report",
    "WellFormedInstrument",
    "pass_instrument",
]
