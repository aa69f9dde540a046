"""The tables that scripts write into the README.

Each is between two comments, of which the first names the command that makes it.
"""

import pathlib

README = pathlib.Path(__file__).resolve().parents[2] / "README.md"


class Table:
    """The table between two lines of the README."""

    def __init__(self, begin, end):
        self.begin, self.end = f"{begin}\n", end

    def _parts(self):
        """Returns the text before the table, the table, and the text after it."""
        before, begin, rest = README.read_text(encoding="utf-8").partition(self.begin)
        table, end, after = rest.partition(self.end)
        if not begin or not end:
            raise ValueError(f"README.md has no table after `{self.begin.strip()}`")
        return before + begin, table, end + after

    def read(self):
        """Returns the table as lists of cells, without its head."""
        lines = self._parts()[1].splitlines()[2:]
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]

    def write(self, table):
        """Puts a table in Markdown in place of the old one."""
        before, _, after = self._parts()
        README.write_text(before + table + after, encoding="utf-8")
