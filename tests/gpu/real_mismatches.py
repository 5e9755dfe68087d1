#!/usr/bin/env python3
"""Mismatches that people meet, made with PyTorch on a GPU, each with a known cause, and what te-numcheck diagnose says of them.

    tests/gpu/real_mismatches.py --program build/app/te-numcheck

Prints a line per mismatch and the share that is named right. Exit code 1 if less than 95 % is, or if a right result is not
called correct. Needs PyTorch with CUDA."""

import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import torch
from torch.nn import functional

import more_mismatches as more

FORMATS = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}
LEAST = 0.95


def save(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().cpu().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": FORMATS[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def draw(*shape, scale=1.0):
    return torch.randn(*shape, device="cuda") * scale


def changed(tensor, change):
    """A copy that `change` has changed in place."""
    copy = tensor.clone()
    change(copy)
    return copy


def exchange(tensor, i, j):
    tensor[i], tensor[j] = tensor[j].clone(), tensor[i].clone()


def clear_tile(tensor):
    tensor[64:128, 64:128] = 0


def repeat_tile(tensor):
    tensor[64:128, 64:128] = tensor[0:64, 0:64].clone()


def products(m, n, k):
    """(name, tensors, options, what the first cause, or another of the same rank, must be)"""
    linear = functional.linear
    a, b, bias = draw(m, k), draw(n, k), draw(n)
    torch.backends.cuda.matmul.allow_tf32 = False
    d = linear(a, b)
    yield "right", {"a": a, "b": b, "bias": bias, "d": linear(a, b, bias)}, (), "correct"
    yield "no bias", {"a": a, "b": b, "bias": bias, "d": d}, (), "bias=false"
    half = linear(a.bfloat16().float(), b.bfloat16().float())
    yield "BF16 operands", {"a": a, "b": b, "d": half}, (), "operands_in_bf16"
    yield "FP16 weight", {"a": a, "b": b, "d": linear(a, b.half().float())}, (), "b_in_fp16|b_in_tf32"
    yield "scaled by 1/sqrt(k)", {"a": a, "b": b, "d": d * k**-0.5}, (), "alpha=.*|output_scaled=.*"
    yield "relu", {"a": a, "b": b, "d": functional.relu(d)}, (), "epilogue=relu"
    eighth = ("--param", "alpha=0.125")
    yield "gelu", {"a": a, "b": b, "d": functional.gelu(d / 8, approximate="tanh")}, eighth, "epilogue=gelu"
    yield "gelu by erf", {"a": a, "b": b, "d": functional.gelu(d / 8)}, (*eighth, "--param", "epilogue=gelu"), "gelu_erf"
    yield "tail of k", {"a": a, "b": b, "d": linear(a[:, :-5], b[:, :-5])}, (), "terms_left_out"
    yield "half of k", {"a": a, "b": b, "d": linear(a[:, : k // 2], b[:, : k // 2])}, (), "terms_left_out"
    yield "rows exchanged", {"a": a, "b": b, "d": changed(d, lambda t: exchange(t, 3, 77))}, (), "rows_moved"
    yield "columns rolled", {"a": a, "b": b, "d": d.roll(16, 1)}, (), "columns_moved"
    yield "tile of zeros", {"a": a, "b": b, "d": changed(d, clear_tile)}, (), "elements_all_0"
    yield "stale tile", {"a": a, "b": b, "d": changed(d, repeat_tile)}, (), "some_elements_wrong"
    torch.backends.cuda.matmul.allow_tf32 = True
    yield "TF32", {"a": a, "b": b, "d": linear(a, b)}, (), "operands_in_tf32"
    yield "TF32 and bias", {"a": a, "b": b, "bias": bias, "d": linear(a, b, bias)}, (), "operands_in_tf32"
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype in (torch.bfloat16, torch.float16):
        x, w = a.to(dtype), b.to(dtype)
        name = FORMATS[dtype]
        yield f"{name}, right", {"a": x, "b": w, "d": linear(x, w)}, (), "correct"
        yield f"{name}, doubled", {"a": x, "b": w, "d": linear(x, w) * 2}, (), "alpha=2|output_scaled=2"
        yield f"{name}, rows rolled", {"a": x, "b": w, "d": linear(x, w).roll(1, 0)}, (), "rows_moved"


def layernorms(rows, hidden):
    x, gamma, beta = draw(rows, hidden, scale=0.1), 1 + draw(hidden, scale=0.1), draw(hidden, scale=0.1)

    def norm(values, weight=gamma, shift=beta, epsilon=1e-5):
        return functional.layer_norm(values, (hidden,), weight, shift, epsilon)

    inputs = {"x": x, "gamma": gamma, "beta": beta}
    yield "right", {**inputs, "y": norm(x)}, (), "correct"
    yield "epsilon 1e-6", {**inputs, "y": norm(x, epsilon=1e-6)}, (), "epsilon=1e-06"
    yield "epsilon 1e-3", {**inputs, "y": norm(x, epsilon=1e-3)}, (), "epsilon=0.001"
    yield "gamma + 1", {**inputs, "gamma": gamma - 1, "y": norm(x)}, (), "zero_centered_gamma=true"
    yield "no beta", {**inputs, "y": norm(x, shift=None)}, (), "beta_as_zeros"
    yield "no gamma", {**inputs, "y": norm(x, weight=None)}, (), "gamma_as_ones"
    yield "exchanged", {"x": x, "gamma": beta, "beta": gamma, "y": norm(x)}, (), "gamma_and_beta_exchanged"
    deviation = torch.sqrt(x.var(1, keepdim=True) + 1e-5)
    yield "n - 1", {**inputs, "y": (x - x.mean(1, True)) / deviation * gamma + beta}, (), "bessel"
    yield "x in BF16", {**inputs, "y": norm(x.bfloat16().float())}, (), "x_in_bf16"
    yield "y in BF16", {**inputs, "y": norm(x).bfloat16().float()}, ("--mode", "fp32"), "output_in_bf16"


def rmsnorms(rows, hidden):
    x, gamma = draw(rows, hidden, scale=0.1).bfloat16(), (1 + draw(hidden, scale=0.1)).bfloat16()
    wide, weight = x.float(), gamma.float()

    def normalised(epsilon=1e-5):
        return wide * torch.rsqrt((wide * wide).mean(1, True) + epsilon)

    inputs = {"x": x, "gamma": gamma}
    yield "right", {**inputs, "y": (normalised() * weight).bfloat16()}, (), "correct"
    yield "rounded before gamma", {**inputs, "y": gamma * normalised().bfloat16()}, (), "gamma_order=hf"
    yield "epsilon 1e-6", {**inputs, "y": (normalised(1e-6) * weight).bfloat16()}, (), "epsilon=1e-06"
    yield "1 + gamma", {**inputs, "y": (normalised() * (1 + weight)).bfloat16()}, (), "zero_centered_gamma=true"


def softmaxes(rows, columns):
    x = draw(4 * rows, columns)
    options = ("--param", "heads=4", "--param", "scale=0.125")
    yield "right", {"x": x, "y": torch.softmax(x * 0.125, -1)}, options, "correct"
    yield "no scale", {"x": x, "y": torch.softmax(x, -1)}, options, "scale=1"
    yield "another scale", {"x": x, "y": torch.softmax(x * 96**-0.5, -1)}, options, "scale=0.1020.*"


def diagnosed(program, path, op, options):
    """The verdict if it is "correct", or the names of causes of equal rank."""
    command = [program, "diagnose", op, "--tensors", path, "--json", "-", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return [done.stderr.strip()]
    found = json.loads(done.stdout)
    return ["correct"] if found["verdict"] == "correct" else [cause["name"] for cause in found["causes"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--keep", help="folder for the tensors of those that are not named right, NUMBER.safetensors")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # PyTorch needs memory, too
    made = [("gemm", products, shape) for shape in ((256, 192, 1024), (128, 320, 777))]
    made += [("layernorm_fwd", layernorms, shape) for shape in ((64, 1024), (33, 768))]
    made += [("rmsnorm_fwd", rmsnorms, shape) for shape in ((64, 1024), (33, 768))]
    made += [("softmax_fwd", softmaxes, shape) for shape in ((64, 1024), (33, 768))]
    made += [("gemm", more.more_products, shape) for shape in ((256, 192, 1024), (128, 320, 768))]
    made += [("gemm", more.products_of_jax, (256, 192, 1024)), ("softmax_fwd", more.more_softmaxes, (33, 768))]
    made += [("attention_fwd", more.attentions, shape) for shape in ((2, 8, 8, 128, 192, 64), (2, 8, 2, 100, 150, 128))]
    made += [("activation_fwd", more.activations, (64, 512)), ("rope_fwd", more.ropes, (64, 4, 64))]
    made += [("layernorm_bwd", more.gradients_of_layernorm, (64, 1024))]
    right = count = 0
    false_alarm = False
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "mismatch.safetensors")
        for op, cases, shape in made:
            for name, tensors, options, wanted in cases(*shape):
                save(path, tensors)
                found = diagnosed(arguments.program, path, op, [str(word) for word in options])
                ok = any(re.fullmatch(wanted, cause) for cause in found)
                right, count = right + ok, count + 1
                false_alarm = false_alarm or (wanted == "correct" and not ok)
                if not ok and arguments.keep:
                    shutil.copy(path, pathlib.Path(arguments.keep, f"{count}.safetensors"))
                print(f"{'right' if ok else 'WRONG'}  {op} {shape} {name}: {', '.join(found) or 'not explained'}", flush=True)
    print(f"{right} of {count} named right")
    sys.exit(1 if false_alarm or right < LEAST * count else 0)


if __name__ == "__main__":
    main()
