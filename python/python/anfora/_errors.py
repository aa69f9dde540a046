"""The exceptions of the package, and the messages that they carry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Location(NamedTuple):
    """A place in a text: the file, the line and the column. Lines and columns count from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass
class Diagnostic:
    """A message with its severity, its place in the program and the source, and a suggestion."""

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
    """An error of the toolkit. Its text is the text that the command line prints for this error."""

    def __init__(self, message: str = "", diagnostics: list[Diagnostic] | None = None) -> None:
        super().__init__(message)
        self.diagnostics: list[Diagnostic] = list(diagnostics or [])
        #: The name of the pass that failed; ``None`` if the error is not from a pass.
        self.pass_name: str | None = None

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ParseError(AnforaError):
    """A text is not a valid program or type."""


class VerifyError(AnforaError):
    """A program breaks a rule, or operands do not fit an operator."""


class OnnxError(AnforaError):
    """A model cannot be read or written."""


class ConfigError(AnforaError, KeyError):
    """A pass, option or setting does not exist, or does not take the value."""


class PatternError(AnforaError):
    """A pattern or a rule is invalid, or the result of a rule does not fit the program."""


class PassError(AnforaError):
    """A pass failed, and its changes were rolled back.

    If the pass raised an exception, ``__cause__`` is that exception. If a sequence edits a module
    in place, the changes of the passes before the failed one stay.
    """


class RunError(AnforaError):
    """The interpreter cannot run a program: an argument does not fit, an operator fails, or a function
    has neither a body nor code."""


class SurgeryError(AnforaError):
    """An edit by name does not fit the program. The program is as it was."""


class StaleError(AnforaError):
    """A handle was used after its function had changed, or after the callback that received the
    handle had ended."""
