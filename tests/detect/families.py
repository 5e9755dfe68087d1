"""The files in ops/: one for each family of ops, found by walking the folder. Each has

FAULTS   the planted faults: tuples (fault, case, gates), or a Row where more is to be said
CLEAN    by op, how its clean cases are drawn (drawing.Clean)
PATHS    plan entries that take every path through the op's own kernels (own_kernel_paths.py)
REFUSED  if need be: tuples (fault, case, reason) of faults that would change nothing in a case, and why"""

import importlib
import pathlib
import typing

FOLDER = pathlib.Path(__file__).parent / "ops"

# Gates that catch a wrong result; any of them may come first.
SEEN = ["G1 bound", "G2 rms", "G2 q999", "G2 max"]


class Row(typing.NamedTuple):
    """A planted fault, and how it must be caught."""

    fault: str
    case: dict  # in which it shows
    gates: list  # of which one must be the first to fail
    also: str = ""  # a gate that must fail as well
    blind_to: str = ""  # a gate that does not count: the others must see the fault without it
    device: str = "sim:sm_90"
    named: str = ""  # the cause that the diagnosis must name


def names():
    return sorted(path.stem for path in FOLDER.glob("*.py"))


def load(name):
    return importlib.import_module(f"ops.{name}")


def rows(name):
    return [Row(*row) for row in load(name).FAULTS]


def every_row():
    return [row for name in names() for row in rows(name)]


def clean_cases(chosen=()):
    """By op, how the clean cases of these families (default: all) are drawn."""
    return {op: clean for name in chosen or names() for op, clean in load(name).CLEAN.items()}
