"""The exceptions of the package, and the messages that they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Location(NamedTuple):
    """A place in a text: file, line and column, both from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass
class Diagnostic:
    """One message: what is wrong, where, and what to do about it."""

    severity: str
    message: str
    help: str | None = None
    function: str | None = None
    binding: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    pass_name: str | None = None

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: " if self.line is not None else ""
        place = ""
        if self.function is not None:
            at = f", at %{self.binding}" if self.binding is not None else ""
            place = f" (in @{self.function}{at})"
        advice = f"; {self.help}" if self.help else ""
        return f"{where}{self.severity}: {self.message}{place}{advice}"


class AnforaError(Exception):
    """An error of the toolkit. Its text is what the command line prints."""

    def __init__(self, message: str = "", diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(message)
        self.diagnostics: list[Diagnostic] = list(diagnostics or [])
        #: The name of the pass that failed, if it was one.
        self.pass_name: str | None = None

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ParseError(AnforaError):
    """A text is no program, or no type."""


class VerifyError(AnforaError):
    """A program breaks a rule, or the parts of an expression do not fit together."""


class OnnxError(AnforaError):
    """A model cannot be read or written."""


class ConfigError(AnforaError, KeyError):
    """There is no such pass, option or setting, or it does not take the value."""


class PatternError(AnforaError):
    """A pattern or a rule is invalid, or what a rule made cannot stand in the program."""


class PassError(AnforaError):
    """A pass failed. The module is as it was; ``__cause__`` is the exception of the pass itself."""


class StaleError(AnforaError):
    """A handle was used after the function that it belongs to had changed."""
