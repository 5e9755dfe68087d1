#!/usr/bin/env python3
"""The three stories of the README: makes their tensors with PyTorch on a GPU, and prints what te-numcheck diagnose says.

    tests/gpu/diagnose_stories.py --program build/app/te-numcheck

Needs PyTorch with CUDA."""

import argparse
import pathlib
import subprocess
import tempfile

import torch

from real_mismatches import save


def weight_gradient(folder):
    """FP32 is declared, and TF32 runs."""
    x, dy = torch.randn(4096, 1024, device="cuda"), torch.randn(4096, 1024, device="cuda")
    torch.backends.cuda.matmul.allow_tf32 = True
    fast = dy.t() @ x
    torch.backends.cuda.matmul.allow_tf32 = False
    print("largest difference", (fast - dy.t() @ x).abs().max().item())
    save(folder / "wgrad.safetensors", {"a": dy, "b": x, "d": fast})
    return ["gemm", "--mode", "fp32", "--tensors", "wgrad.safetensors", "--param", "trans_a=true"]


def grouped_product(folder):
    """Nothing is wrong but the tolerance."""
    a, b = torch.randn(8, 256, 1024, device="cuda").half(), torch.randn(8, 1024, 512, device="cuda").half()
    grouped = torch.bmm(a, b)
    single = torch.stack([(a[i].float() @ b[i].float()).half() for i in range(len(a))])
    print("torch.allclose", torch.allclose(grouped, single))
    save(folder / "grouped.safetensors", {"a": a, "b": b, "d": grouped})
    save(folder / "single.safetensors", {"d": single})
    return ["gemm", "--mode", "fp16", "--tensors", "grouped.safetensors", "--against", "single.safetensors"]


def rms_norm(folder):
    """Hugging Face rounds x rsigma before gamma is applied."""
    x, gamma = torch.randn(512, 2048, device="cuda").bfloat16(), (1 + 0.3 * torch.randn(2048, device="cuda")).bfloat16()
    wide = x.float()
    y = gamma * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).bfloat16()
    differing = (y != torch.nn.functional.rms_norm(x, (2048,), gamma, 1e-6)).float().mean().item()
    print("elements that differ", differing)
    save(folder / "norm.safetensors", {"x": x, "gamma": gamma, "y": y})
    return ["rmsnorm_fwd", "--mode", "bf16", "--tensors", "norm.safetensors", "--param", "epsilon=1e-6"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", type=pathlib.Path, required=True)
    program = parser.parse_args().program.resolve()
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as name:
        for story in (weight_gradient, grouped_product, rms_norm):
            arguments = story(pathlib.Path(name))
            print("te-numcheck diagnose", *arguments, flush=True)
            subprocess.run([program, "diagnose", *arguments], cwd=name, check=False)


if __name__ == "__main__":
    main()
