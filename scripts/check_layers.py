#!/usr/bin/env python3
"""Checks the order of layers and folders: no file includes one of a higher folder, so there are no cycles.

Also checks that each folder has one namespace, and what a layer must not include or call. Prints one line per
offence; the exit status is 1 if there is any. Run it in the root of a tree.
"""
import re
import sys
from pathlib import Path, PurePosixPath

# Each folder may include those to its left, but not the others in its own tuple.
LIB = ["core", "op", "machine", "data", "plan", "model", "metric", "tolerance", "worker", "prepare", "verdict", "report",
       "report/views", "diagnose", "run"]
KERNELS = ["contract", "harness", "cuda_support", ("cublaslt", "cublas", "cuda", "cudnn", "sim", "transformer_engine"),
           "loader"]
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

PRINTS_OR_ENDS = re.compile(r"\b(std::cout|std::cerr|printf|std::exit|std::abort)\b *[(<]")


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
    (layer, height), (other, other_height) = table[here], table[there]
    if layer != other:
        return "" if other in BELOW[layer] else f"{layer} must not see {other}"
    return "" if other_height < height else f"{there} is not below {here}"


def check_file(path: str, files: set[str], table: dict[str, tuple[str, int]]) -> list[str]:
    folder = str(PurePosixPath(path).parent)
    if folder not in table:
        return [f"{path}: {folder} has no place in the order of folders (scripts/check_layers.py)"]
    layer = table[folder][0]
    offences = []
    with open(path, encoding="utf-8") as stream:
        lines = stream.read().splitlines()
    for number, line in enumerate(lines, 1):
        why = ""
        if match := re.match(r'#include "([^"]+)"', line):
            candidates = (match[1], f"lib/{match[1]}", f"app/{match[1]}")
            target = next((name for name in candidates if name in files), None)
            why = check_include(path, target, table) if target else ""
        elif match := re.match(r"#include <([^>]+)>", line):
            device_code = path.endswith((".cu", ".cuh")) and re.match(FOREIGN_IN_DEVICE_CODE, match[1])
            if device_code or re.match(FOREIGN[layer], match[1]):
                why = f"not in {'device code' if device_code else layer}"
        elif layer in ("lib", "reference") and path.endswith(".cpp") and PRINTS_OR_ENDS.search(line):
            why = f"{layer} neither prints nor ends the program"
        elif match := re.match(r"namespace (numcheck[\w:]*) \{", line):
            wanted = namespace_of(folder)
            forward_declares = lines[number + 1 : number + 2] == ["}"] and lines[number].endswith(";")
            if match[1] != wanted and not match[1].startswith(wanted + "::") and not forward_declares:
                why = f"files of {folder} are in namespace {wanted}"
        if why:
            offences.append(f"{path}:{number}: {line.strip()}: {why}")
    return offences


def main() -> int:
    files = {str(path) for layer in BELOW for path in Path(layer).rglob("*")
             if path.suffix in (".hpp", ".cpp", ".cu", ".cuh")}
    table = levels()
    offences = [offence for path in sorted(files) for offence in check_file(path, files, table)]
    print("\n".join(offences), end="\n" if offences else "", file=sys.stderr)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
