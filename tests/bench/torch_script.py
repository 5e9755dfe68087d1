#!/usr/bin/env python3
"""What one writes with PyTorch to check the 46 cases of configs/plans/bench_ops.json: draw inputs, run the op on the GPU, compute it
in float64 on the CPU, norms of the error, allclose with PyTorch's tolerances. The measure for the time that te-numcheck takes.

torch_script.py [--threads N]

Prints seconds per case and stage, then their sums and the wall time. Gates nothing: exit code 0."""

import argparse
import collections
import resource
import time

import torch

FORMATS = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
PRODUCTS = [(1024, 1024, 1024), (2048, 2048, 2048), (4096, 1024, 4096), (4096, 4096, 4096)]
NORM_ROWS = [(8192, 1024), (16384, 4096), (65536, 2048)]
ROWS = NORM_ROWS[1:]
E4M3 = torch.float8_e4m3fn
LARGEST_CODE = 448.0


class Watch:
    """Seconds by stage."""

    def __init__(self):
        self.seconds = collections.Counter()
        self.began = time.perf_counter()

    def lap(self, stage):
        torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[stage] += now - self.began
        self.began = now


def scaled(x):
    scale = LARGEST_CODE / x.abs().max()
    return (x * scale).to(E4M3), (1 / scale).reshape(1)


def product(m, n, k, mode):
    """(inputs on the CPU, run on the GPU, reference of the inputs in double)"""
    a, b = torch.randn(m, k), torch.randn(n, k)
    if mode.startswith("fp8"):
        (qa, sa), (qb, sb) = scaled(a), scaled(b)

        def run(qa, qb, sa, sb):
            return torch._scaled_mm(qa, qb.T, sa, sb, out_dtype=torch.bfloat16, use_fast_accum=mode == "fp8_fast")

        return [qa, qb, sa, sb], run, lambda qa, qb, sa, sb: (qa.double() * sa.double()) @ (qb.double() * sb.double()).T

    def multiply(a, b):
        torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
        return a @ b.T

    return [x.to(FORMATS[mode]) for x in (a, b)], multiply, lambda a, b: a.double() @ b.double().T


def layernorm(rows, hidden, mode):
    inputs = [x.to(FORMATS[mode]) for x in (torch.randn(rows, hidden), torch.randn(hidden), torch.randn(hidden))]
    apply = torch.nn.functional.layer_norm
    return (inputs, lambda x, gamma, beta: apply(x, x.shape[-1:], gamma, beta, 1e-5),
            lambda x, gamma, beta: apply(x.double(), x.shape[-1:], gamma.double(), beta.double(), 1e-5))


def rmsnorm(rows, hidden, mode):
    inputs = [x.to(FORMATS[mode]) for x in (torch.randn(rows, hidden), torch.randn(hidden))]
    apply = torch.nn.functional.rms_norm
    return (inputs, lambda x, gamma: apply(x, x.shape[-1:], gamma, 1e-5),
            lambda x, gamma: apply(x.double(), x.shape[-1:], gamma.double(), 1e-5))


def softmax(rows, columns, mode):
    return [torch.randn(rows, columns).to(FORMATS[mode])], lambda x: x.softmax(-1), lambda x: x.double().softmax(-1)


def gelu(rows, columns, mode):
    apply = torch.nn.functional.gelu
    return ([torch.randn(rows, columns).to(FORMATS[mode])], lambda x: apply(x, approximate="tanh"),
            lambda x: apply(x.double(), approximate="tanh"))


def quantize(rows, columns, mode):
    x = torch.randn(rows, columns).to(FORMATS[mode])

    def run(x):
        return (x.float() * (LARGEST_CODE / x.abs().max().float())).clamp(-LARGEST_CODE, LARGEST_CODE).to(E4M3)

    return [x], run, lambda x: x.double() * (LARGEST_CODE / x.abs().max().double())


def cases():
    """(name, function of no arguments that draws the case)"""
    for mode in ("fp32", "tf32", "bf16", "fp16", "fp8_fast", "fp8_split"):
        for shape in PRODUCTS:
            yield f"gemm {mode} {'x'.join(map(str, shape))}", lambda shape=shape, mode=mode: product(*shape, mode)
    for name, make, shapes in (("layernorm", layernorm, NORM_ROWS), ("rmsnorm", rmsnorm, NORM_ROWS), ("softmax", softmax, ROWS),
                               ("gelu", gelu, ROWS), ("quantize", quantize, ROWS[1:])):
        for shape in shapes:
            for mode in ("fp32", "bf16"):
                yield (f"{name} {mode} {'x'.join(map(str, shape))}",
                       lambda make=make, shape=shape, mode=mode: make(*shape, mode))


def norms(got, expected):
    error = got - expected
    return {"max": error.abs().max().item(), "rel_l2": (error.norm() / expected.norm()).item(), "mean": error.mean().item()}


def is_close(got, expected):
    try:
        torch.testing.assert_close(got, expected.to(got.dtype))
    except AssertionError:
        return False
    return True


def check(make, watch):
    inputs, run, reference = make()
    watch.lap("generate")
    got = run(*(x.cuda() for x in inputs)).cpu()
    watch.lap("run")
    expected = reference(*inputs)
    watch.lap("reference")
    found = norms(got.double(), expected)
    close = is_close(got.float() if got.dtype == E4M3 else got, expected)
    watch.lap("compare")
    return found, close


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, help="of PyTorch on the CPU; default: all")
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    torch.zeros(1, device="cuda")
    began = time.perf_counter()
    sums = collections.Counter()
    for name, make in cases():
        watch = Watch()
        found, close = check(make, watch)
        sums.update(watch.seconds)
        stages = "  ".join(f"{stage} {seconds:.2f}" for stage, seconds in watch.seconds.items())
        print(f"{name:34}{stages}  rel_l2 {found['rel_l2']:.3g}  close {close}", flush=True)
    print("sums", {stage: round(seconds, 2) for stage, seconds in sums.items()})
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{time.perf_counter() - began:.2f} s, {peak:.1f} GiB at most, {torch.get_num_threads()} threads, PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
