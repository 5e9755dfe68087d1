#!/usr/bin/env python3
"""Checks the order of layers and folders: no file includes one of a higher folder, so there are no cycles.

Also checks that each folder has one namespace, and what a layer must not include or call. Prints one line per
offence; the exit status is 1 if there is any. Run it in the root of a tree.
"""
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

# Each folder may include those to its left, but not the others in its own tuple.
LIB = ["core", "op", "machine", "data", "plan", "model", "eligibility", "metric", "tolerance", "worker", "prepare",
       "verdict", "report", "report/views", "diagnose", "run"]
KERNELS = ["contract", "harness", "cuda_support", "cublas_support",
           ("cublas", "cublaslt", "cuda", "cudnn", "sim", "transformer_engine", "unfused"), "loader"]
APP = ["", "commands"]

# The layers that a layer may include besides itself.
BELOW = {"lib": (), "reference": ("lib",), "kernels": ("lib",), "app": ("lib", "reference", "kernels")}

# <headers> that a layer must not include. Device code is C++17; its front end accepts neither these libraries nor newer
# standard headers.
FOREIGN = {
    "lib": r"Eigen/|CLI/|cuda|cublas|cudnn",
    "reference": r"CLI/|cuda|cublas|cudnn",
    "kernels": r"CLI/|Eigen/",
    "app": r"Eigen/|cuda|cublas|cudnn",
}
FOREIGN_IN_DEVICE_CODE = r"(span|concepts|source_location)$|fmt/|nlohmann|cublasLt"

# Files without a namespace of their own.
OUTSIDE = {"app/main.cpp", "app/cli_forward.hpp"}

PRINTS_OR_ENDS = re.compile(
    r"\bstd::c(out|err|log)\b|\bfmt::print\b|(?<![\w.>])(v?f?printf|f?puts|exit|abort|quick_exit) *\(")
INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.S)
NAMESPACE = re.compile(r"\b(?:inline\s+)?namespace\b\s*(?:\[\[.*?\]\]\s*)?([\w:]*)\s*(\{|=)|[{}]")
FORWARD = re.compile(r"\s*((class|struct|enum class|enum)\s+\w+(\s*:\s*[\w:]+)?\s*;\s*)+")


# (line, why)
Offences = Iterator[tuple[int, str]]


def namespace_of(folder: str) -> str:
    """The namespace of a folder: named after it, except that kernels/contract uses numcheck::kernels."""
    layer, _, rest = folder.partition("/")
    parts = [] if layer == "lib" else [layer]
    parts += [] if folder == "kernels/contract" else [part for part in rest.split("/") if part]
    return "::".join(["numcheck", *parts])


def levels() -> dict[str, tuple[str, int]]:
    """Folder -> (layer, height); folders of the same height must not include each other."""
    table = {"reference": ("reference", 0)}
    for layer, order in (("lib", LIB), ("kernels", KERNELS), ("app", APP)):
        for height, names in enumerate(order):
            for name in names if isinstance(names, tuple) else (names,):
                table["/".join(part for part in (layer, name) if part)] = (layer, height)
    return table


def check_include(path: str, target: str, table: dict[str, tuple[str, int]]) -> str:
    """Why a file must not include another of ours; empty if it may."""
    here, there = (str(PurePosixPath(p).parent) for p in (path, target))
    if here == there:
        return ""
    (layer, height), (other, other_height) = table[here], table.get(there, ("", 0))
    if not other:
        return f"{there} has no place in the order of folders"
    if layer != other:
        return "" if other in BELOW[layer] else f"{layer} must not see {other}"
    return "" if other_height < height else f"{there} is not below {here}"


def check_includes(path: str, text: str, files: set[str], table: dict[str, tuple[str, int]]) -> Offences:
    """Includes that must not be."""
    layer = table[str(PurePosixPath(path).parent)][0]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, name = match.groups()
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        roots = (name, f"lib/{name}", f"app/{name}")
        ours = next((found for found in map(posixpath.normpath, (*roots, beside)) if found in files), None)
        device_code = path.endswith((".cu", ".cuh")) and re.match(FOREIGN_IN_DEVICE_CODE, name)
        if ours:
            why = check_include(path, ours, table)
            if not why and (bracket == "<" or ours not in roots):
                why = f'our own files are included as "{ours.removeprefix("lib/").removeprefix("app/")}"'
        elif ".." in name.split("/"):
            why = "no file of the tree"
        else:
            foreign = device_code or re.match(FOREIGN[layer], name)
            why = f"not in {'device code' if device_code else layer}" if foreign else ""
        if why:
            yield number, why


def check_namespaces(path: str, code: str) -> Offences:
    """Namespaces of other folders that have more than forward declarations."""
    folder = posixpath.dirname(path)
    wanted = namespace_of(folder)
    opened: list[str | None] = []  # names of namespaces; None: another brace
    seen = False
    for match in NAMESPACE.finditer(code):
        if match[2] == "=":
            continue
        if match[0] == "}":
            if opened:
                opened.pop()
            continue
        if match[0] == "{":
            opened.append(None)
            continue
        opened.append(match[1])
        full = "::".join(name for name in opened if name)
        if full == wanted or full.startswith(wanted + "::"):
            seen = True
        elif full and not FORWARD.fullmatch(code[match.end():code.find("}", match.end())]):
            yield code.count("\n", 0, match.start()) + 1, f"files of {folder} are in namespace {wanted}"
    statements = re.sub(r"(?m)^\s*#(.*\\\n)*.*$", "", code).strip()
    if statements and not seen and path not in OUTSIDE:
        yield 1, f"nothing is in namespace {wanted}"


def check_file(path: str, files: set[str], table: dict[str, tuple[str, int]]) -> list[str]:
    folder = str(PurePosixPath(path).parent)
    if folder not in table:
        return [f"{path}: {folder} has no place in the order of folders (scripts/check_layers.py)"]
    text = Path(path).read_text(encoding="utf-8")
    lines = text.splitlines() or [""]
    # Line numbers stay.
    code = COMMENT_OR_TEXT.sub(lambda match: "\n" * match[0].count("\n"), text)
    offences = [*check_includes(path, text, files, table), *check_namespaces(path, code)]
    if table[folder][0] != "app":
        for number, line in enumerate(code.splitlines(), 1):
            if PRINTS_OR_ENDS.search(line):
                offences.append((number, f"{table[folder][0]} neither prints nor ends the program"))
    return [f"{path}:{number}: {lines[number - 1].strip()}: {why}" for number, why in sorted(offences)]


def main() -> int:
    everything = {str(path) for top in (*BELOW, "tests") for path in Path(top).rglob("*") if path.is_file()}
    ours = {path for path in everything if not path.startswith("tests/") and not path.endswith((".txt", ".json", ".css", ".js"))}
    table = levels()
    offences = [offence for path in sorted(ours) for offence in check_file(path, everything, table)]
    print("\n".join(offences), end="\n" if offences else "", file=sys.stderr)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
