"""Runs the examples in the documentation of the comparison: what reads the peers' reports has to be right itself."""

import doctest
import sys

import bridge
import crates
import figures
import llvm
import mixed_precision
import mlir
import optimizers
import process
import table

if __name__ == "__main__":
    results = [doctest.testmod(module) for module in [bridge, crates, figures, llvm, mixed_precision, mlir, optimizers, process, table]]
    sys.exit(1 if any(r.failed for r in results) or not all(r.attempted for r in results) else 0)
