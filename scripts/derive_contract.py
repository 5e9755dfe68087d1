#!/usr/bin/env python3
"""Writes the contract of sm_80 from that of sm_90: derive_contract.py configs/contracts/sm_90.json > configs/contracts/sm_80.json

A case is promised if it ran on sm_90 with the same libraries and nothing that sm_80 lacks is in it. The tests check the
result: tests/unit/app/derived_contract_test.cpp (no FP8, no obstacle) and tests/unit/cudnn/contract_test.cpp, which asks cuDNN.
"""

import json
import re
import sys

CUDNN = ["9.14.0", "9.19.0"]  # those that were asked

# Their tensors are FP8 or MXFP8 even where the identifier does not say so.
FP8_OPS = {"quantize", "dequantize", "transpose"}

# Documented for sm_80 by the cuBLAS manual, cublasComputeType_t and the table of types of cublasLtMatmul. Not bf16x9, which the
# manual describes for Blackwell only.
PRODUCTS = {"fp32", "fp32_pedantic", "tf32", "fp32_fast16f", "fp32_fast16bf", "bf16", "fp16", "fp16_acc16"}

DERIVED = (
    "No GPU of sm_80 was at hand. A case is promised if it ran on an H200 with cuBLASLt 13.1.0 and cuDNN 9.14.0 and: backend auto or "
    "unfused, other than gemm: its kernels are te-numcheck's own FP32 ones, which are compiled for sm_80 and need nothing newer; gemm, and "
    "the products of unfused: the cuBLAS manual's table of types of cublasLtMatmul has the mode and names no newer architecture; cudnn, norms "
    "and attention: cuDNN 9.14.0 and 9.19.0 offer an engine for the case when they are asked with the device properties of an A100; cudnn, "
    "softmax: the manual names no architecture. Left out: all that has FP8 tensors, which sm_80 has no instructions for; bf16x9, which the "
    "manual describes for Blackwell only; grouped products and TransformerEngine, which cannot be asked without a GPU.")


def mode_and_backend(case):
    return case.split("/")[2:4]


def widest_head(case):
    return max((int(number) for number in re.findall(r"[/,]dv?=(\d+)", case)), default=64)


def is_promised(case):
    op = case.split("/")[0]
    mode, backend = mode_and_backend(case)
    if "fp8" in case or op in FP8_OPS or op == "grouped_gemm" or backend not in ("auto", "cudnn", "unfused"):
        return False
    if backend == "cudnn" and "layout=thd" in case:
        return False  # before 9.18.1 it needs sm_90 (cudnn-frontend 1.23, sdpa_support_surface.h), whatever the library answers
    if backend == "cudnn" and op == "attention_bwd" and widest_head(case) > 128:
        return False  # both versions refuse them: "Embedding dim per head for q and k is not less than equal to 128"
    return op != "gemm" or mode in PRODUCTS


def libraries(cases):
    backends = {case.split("/")[0] if case.startswith("gemm/") else mode_and_backend(case)[1] for case in cases}
    named = {"cublaslt": "13.1.0"} if backends & {"gemm", "unfused"} else {}
    return {**named, **({"cudnn": CUDNN} if "cudnn" in backends else {})}


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        contract = json.load(file)
    by_plan = {}
    for plan in contract["plans"]:
        by_plan.setdefault(plan["plan"], []).append(plan)
    plans = []
    for name, parts in by_plan.items():
        cases = sorted({case for part in parts for case in part["cases"] if is_promised(case)})
        plans.append({"plan": name, "digest": parts[-1]["digest"], "device": "sm_80, not seen", "libraries": libraries(cases), "cases": cases})
    lines = [f'"schema": {json.dumps(contract["schema"])}', f'"schema_version": {json.dumps(contract["schema_version"])}',
             '"architecture": "sm_80"', '"simulated": false', f'"derived": {json.dumps(DERIVED)}']
    texts = []
    for plan in plans:
        members = [f'"{key}": {json.dumps(plan[key], separators=(",", ":")) if key == "libraries" else json.dumps(plan[key])}'
                   for key in ("plan", "digest", "device", "libraries")]
        texts.append("{\n" + ",\n".join(members) + ',\n"cases": [\n' + ",\n".join(json.dumps(case) for case in plan["cases"]) + "\n]\n}")
    print("{\n" + ",\n".join(lines) + ',\n"plans": [\n' + ",\n".join(texts) + "\n]\n}")


if __name__ == "__main__":
    main()
