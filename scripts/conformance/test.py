"""Runs the examples in the documentation of the comparisons: what compares has to be right itself."""

import doctest
import sys

import compare
import gradients
import report
import signatures
import steps

if __name__ == "__main__":
    results = [doctest.testmod(module) for module in [compare, gradients, report, signatures, steps]]
    sys.exit(1 if any(r.failed for r in results) or not all(r.attempted for r in results) else 0)
