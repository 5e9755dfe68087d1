#!/usr/bin/env python3
"""How long `te-numcheck diagnose` takes for products, computed by PyTorch: right, wrong for a known cause, and for none.

diagnosis_times.py --program PROGRAM [--size N ...] [--cpus LIST]
"""

import argparse
import pathlib
import subprocess
import tempfile
import time

import torch
from safetensors.torch import save_file


def products(n):
    """(name, tensors)"""
    torch.manual_seed(1)
    a, b, bias = torch.randn(n, n, device="cuda"), torch.randn(n, n, device="cuda"), torch.randn(n, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = False
    yield "FP32, right", {"a": a, "b": b, "d": a @ b.T}
    torch.backends.cuda.matmul.allow_tf32 = True
    yield "TF32", {"a": a, "b": b, "d": a @ b.T}
    yield "TF32, and no bias", {"a": a, "b": b, "bias": bias, "d": a @ b.T}
    torch.backends.cuda.matmul.allow_tf32 = False
    x, w = a.bfloat16(), b.bfloat16()
    d = x @ w.T
    yield "BF16, right", {"a": x, "b": w, "d": d}
    tail, tile = max(n // 64, 1), min(n // 2, 64)
    yield "BF16, tail of k", {"a": x, "b": w, "d": x[:, :-tail] @ w[:, :-tail].T}
    stale = d.clone()
    stale[tile:2 * tile, tile:2 * tile] = d[:tile, :tile]
    yield "BF16, stale tile", {"a": x, "b": w, "d": stale}
    noise = 1 + 0.05 * torch.randn(n, n, device="cuda")
    yield "BF16, noise", {"a": x, "b": w, "d": (d.float() * noise).bfloat16()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--size", type=int, nargs="+", default=[128, 4096], help="rows, columns and k of the products")
    parser.add_argument("--cpus", default="0-15", help="processors that diagnose may use, as taskset has them")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for size, (name, tensors) in ((size, product) for size in options.size for product in products(size)):
            path = pathlib.Path(folder) / "t.safetensors"
            save_file({port: x.contiguous().cpu() for port, x in tensors.items()}, path)
            started = time.monotonic()
            done = subprocess.run(["taskset", "-c", options.cpus, options.program, "diagnose", "gemm", "--tensors", path, "--param",
                                   "trans_b=true"], capture_output=True, text=True, check=False)
            seconds = time.monotonic() - started
            said = [line for line in done.stdout.split("\n") if line.startswith(("cause", "verdict"))]
            print(f"{size:5} {name:20}{seconds:6.2f} s  {said[-1] if said else done.stderr.strip()}", flush=True)


if __name__ == "__main__":
    main()
