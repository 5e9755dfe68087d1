"""The report's opinions of PyTorch and NumPy against PyTorch and NumPy themselves: on every output of quick.json, and on
pairs of numbers around the limit. Without a GPU, outputs come from a simulated device, and the one operation that differs
on tensors of the CPU (see cuda_close) is done as on a GPU.

Environment: TE_NUMCHECK, TE_NUMCHECK_SOURCE and TE_OPINION_COUNTS (tests/gpu/opinion_counts.cpp)."""

import json
import math
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    import ml_dtypes
    import numpy as np
    import torch
except ImportError as missing:
    print(f"{missing}: nothing was compared")
    sys.exit(0)

PROGRAM = os.environ["TE_NUMCHECK"]
QUICK = pathlib.Path(os.environ["TE_NUMCHECK_SOURCE"]) / "configs/plans/quick.json"
# By safetensors name: the names in te-numcheck, PyTorch and NumPy.
FORMATS = {"F32": ("fp32", torch.float32, np.float32), "BF16": ("bf16", torch.bfloat16, ml_dtypes.bfloat16),
           "F16": ("fp16", torch.float16, np.float16), "F8_E4M3": ("fp8_e4m3", torch.float8_e4m3fn, ml_dtypes.float8_e4m3fn),
           "F8_E5M2": ("fp8_e5m2", torch.float8_e5m2, ml_dtypes.float8_e5m2), "U8": ("uint8", torch.uint8, np.uint8),
           "I32": ("int32", torch.int32, np.int32)}
ON_GPU = torch.cuda.is_available()


def has_device():
    done = subprocess.run([PROGRAM, "list", "devices", "--json"], capture_output=True, text=True)
    return '"cuda:0"' in done.stdout


def cuda_close(got, y, rtol, atol):
    """torch.isclose of FP16 and BF16 on a GPU, which adds atol in FP32. For CPU tensors, PyTorch adds it in their format."""
    error = (got - y).abs()
    relative = (rtol * y).abs()
    here = (got == y) | (torch.isfinite(error) & (error <= atol + relative))
    assert torch.equal(here, torch.isclose(got, y, rtol=rtol, atol=atol)), "torch.isclose is not what it was"
    limit = (relative.float() + torch.tensor(atol, dtype=torch.float32)).to(y.dtype)
    return (got == y) | (torch.isfinite(error) & (error <= limit))


def torch_close(got, y, dtype):
    """Which elements assert_close accepts, from raw bytes and doubles."""
    got = torch.frombuffer(bytearray(got), dtype=dtype)
    y = torch.from_numpy(y).to(dtype)
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    if not ON_GPU and dtype in (torch.float16, torch.bfloat16):
        return cuda_close(got, y, rtol, atol).numpy()
    if ON_GPU:
        got, y = got.cuda(), y.cuda()
    close = torch.isclose(got, y, rtol=rtol, atol=atol).cpu().numpy()
    try:
        torch.testing.assert_close(got, y)
        mismatches = 0
    except AssertionError as error:
        mismatches = int(re.search(r"Mismatched elements: (\d+) /", str(error))[1])
    assert mismatches == np.count_nonzero(~close), "assert_close is not torch.isclose"
    return close


def numpy_close(got, y, dtype):
    """Which elements assert_allclose accepts. It counts them only if NaN and infinities are in the same places."""
    got = np.frombuffer(got, dtype=dtype)
    with np.errstate(all="ignore"):
        close = np.isclose(got, y, rtol=1e-7, atol=0, equal_nan=True)
        try:
            np.testing.assert_allclose(got, y)
            mismatches = 0
        except AssertionError as error:
            found = re.search(r"Mismatched elements: (\d+) /", str(error))
            mismatches = int(found[1]) if found else None
    assert mismatches in (None, np.count_nonzero(~close)), "assert_allclose is not isclose"
    return close


def saturated(y, dtype):
    """Only FP8 outputs saturate."""
    if dtype not in (torch.float8_e4m3fn, torch.float8_e5m2):
        return y
    most = torch.finfo(dtype).max
    return np.where(np.isnan(y), y, np.clip(y, -most, most))


def read_safetensors(path):
    raw = path.read_bytes()
    length, = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    texts = header.pop("__metadata__")
    cut = {name: (entry["dtype"], entry["shape"], raw[8 + length:][slice(*entry["data_offsets"])])
           for name, entry in header.items()}
    return cut, texts


def doubles(tensor):
    return np.frombuffer(tensor[2], dtype=np.float64)


class Kept:
    """Tensors of one run, as the program compares them."""

    def __init__(self, path):
        self.tensors, self.texts = read_safetensors(path)
        holds = re.findall(r"(\w+) holds codes and (\w+) one E8M0 byte e for every (\d+) x (\d+)",
                           self.texts.get("scales", ""))
        self.codes = {codes: (scales, int(rows), int(cols)) for codes, scales, rows, cols in holds}
        self.scales = {scales for scales, _, _ in self.codes.values()}

    def power_of(self, name):
        _, shape, raw = self.tensors[name]
        exponent = np.frombuffer(raw, dtype=np.uint8).astype(np.int64).reshape(shape)
        return np.where(exponent == 255, np.nan, np.ldexp(1.0, exponent - 127))

    def got(self, name):
        """Its format and bytes. Scales, and codes times their scales, are compared in FP32."""
        form, shape, raw = self.tensors[name]
        if name in self.scales:
            return "F32", self.power_of(name).astype(np.float32).tobytes()
        if name in self.codes:
            scales, rows, cols = self.codes[name]
            power = np.repeat(np.repeat(self.power_of(scales), rows, axis=0), cols, axis=1)[:shape[0], :shape[1]]
            values = np.frombuffer(raw, dtype=FORMATS[form][2]).astype(np.float64).reshape(shape) * power
            return "F32", values.astype(np.float32).tobytes()
        return form, raw

    def expected(self, name):
        if f"expected_{name}" in self.tensors:
            scale = self.tensors.get(f"{name}_scale", (0, 0, struct.pack("<f", 1)))[2]
            return doubles(self.tensors[f"expected_{name}"]) * struct.unpack("<f", scale)[0]
        whole = doubles(self.tensors["expected_" + name.removesuffix("_amax")])
        return np.array([np.fmax.reduce(np.abs(whole))])


class Opinions(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="te-numcheck-opinions-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_quick(self):
        report_path, tensors = self.folder / "report.json", self.folder / "tensors"
        device = [] if has_device() else ["--device", "sim:sm_90"]
        done = subprocess.run([PROGRAM, "run", QUICK, *device, "--no-save", "--json", report_path, "--keep-tensors", tensors],
                              cwd=self.folder, timeout=500, capture_output=True, text=True)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        cases = {case["digest"]: case for case in json.loads(report_path.read_text())["cases"]}
        outputs = mismatches = 0
        for path in sorted(tensors.iterdir()):
            kept = Kept(path)
            case = cases[kept.texts["digest"]]
            run = case["runs"][int(path.stem.rsplit("-")[-1])]
            self.assertEqual(run["implementation"], kept.texts["run"])
            for name, output in run["outputs"].items():
                form, got = kept.got(name)
                if not got:
                    continue
                y = saturated(kept.expected(name), FORMATS[form][1])
                wanted = {"torch_assert_close": int(np.count_nonzero(~torch_close(got, y, FORMATS[form][1]))),
                          "numpy_assert_allclose": int(np.count_nonzero(~numpy_close(got, y, FORMATS[form][2])))}
                with self.subTest(case=case["id"], run=run["implementation"], output=name):
                    self.assertEqual({tool: output["opinions"][tool]["mismatches"] for tool in wanted}, wanted)
                    outputs += 1
                    mismatches += wanted["torch_assert_close"]
        print(f"{outputs} outputs with the counts of PyTorch {torch.__version__} on {'a GPU' if ON_GPU else 'the CPU'} "
              f"({mismatches} mismatches) and NumPy {np.__version__}", file=sys.stderr)
        self.assertGreater(outputs, 250)

    def count(self, form, got, y, elements):
        """Mismatches of PyTorch and NumPy in each run of `elements`, by instruction set."""
        (self.folder / "got").write_bytes(got)
        (self.folder / "expected").write_bytes(y.tobytes())
        done = subprocess.run([os.environ["TE_OPINION_COUNTS"], FORMATS[form][0], "got", "expected", str(elements)],
                              cwd=self.folder, capture_output=True, text=True, check=True)
        rows = [line.split() for line in done.stdout.splitlines()]
        return {isa: np.array([[int(row[1]), int(row[2])] for row in rows if row[0] == isa])
                for isa in dict.fromkeys(row[0] for row in rows)}

    def pairs(self, form, count, generator):
        """Numbers and outputs whose difference is at or within a few steps of the limit, and some special values."""
        dtype = FORMATS[form][1]
        most, least = torch.finfo(dtype).max, torch.finfo(dtype).smallest_normal
        low, high = max(math.log2(least) - 12, -60), min(math.log2(most), 60)
        y = np.exp2(generator.uniform(low, high, count)) * generator.choice([-1.0, 1.0], count)
        whole = torch.from_numpy(y).to(dtype).double().numpy()
        kind = generator.integers(0, 4, count)
        step = whole * torch.finfo(dtype).eps / 2
        y = np.select([kind == 0, kind == 1], [whole, whole + step * (1 + 2.0**-30 * generator.integers(-1, 2, count))], y)
        edges = np.array([0.0, -0.0, least, least / 2, most, -most, np.inf, -np.inf, np.nan, most * (1 + torch.finfo(dtype).eps / 4),
                          most * (1 + torch.finfo(dtype).eps / 4) * (1 - 2.0**-40), 1e300, 1e-5, 1e-300])
        y[:len(edges)] = edges
        y = saturated(y, dtype)
        rtol, atol = torch.testing._comparison.default_tolerances(dtype)
        stored = torch.from_numpy(y).to(dtype)
        limit = atol + rtol * stored.double().abs()
        got = (stored.double() + limit * torch.from_numpy(generator.choice([-1.0, 1.0], count))).to(dtype)
        integers = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[dtype.itemsize]
        bits = got.view(integers) + torch.from_numpy(generator.integers(-2, 3, count)).to(integers)
        got = torch.where(torch.from_numpy(generator.integers(0, 9, count)) == 0, -stored.float(), bits.view(dtype).float())
        special = torch.tensor([0.0, -0.0, math.inf, -math.inf, math.nan, most, -most]).repeat(20)
        got[:len(special)] = special
        y[:len(special)] = saturated(np.resize(edges, len(special)), dtype)
        return got.to(dtype).view(torch.uint8).numpy().tobytes(), y

    def test_pairs_at_the_limit(self):
        for form in ("F32", "BF16", "F16", "F8_E4M3", "F8_E5M2"):
            with self.subTest(form):
                generator = np.random.default_rng(7)
                got, y = self.pairs(form, 4000, generator)
                right = np.stack([torch_close(got, y, FORMATS[form][1]), numpy_close(got, y, FORMATS[form][2])], axis=1)
                if not form.startswith("F8"):
                    self.assertGreater(np.count_nonzero(right[:, 0]), 1000)
                self.assertGreater(np.count_nonzero(~right[:, 0]), 1000)
                for isa, counts in self.count(form, got, y, 1).items():
                    wrong = np.flatnonzero((counts != ~right).any(axis=1))
                    self.assertEqual(wrong.tolist(), [], f"{isa}: {y[wrong[:5]]}")
                self.compare_scattered(form, got, y)

    def compare_scattered(self, form, got, y):
        """One pair among every 64 elements; the others are equal, so nothing else makes the comparison look closely."""
        dtype, size = FORMATS[form][1], FORMATS[form][1].itemsize
        finite = np.isfinite(y) & np.isfinite(torch.frombuffer(bytearray(got), dtype=dtype).double().numpy())
        cells = np.frombuffer(got, dtype=f"V{size}")[finite]
        clean = torch.linspace(1, 2, 64, dtype=torch.float64).to(dtype)
        many_y = np.tile(clean.double().numpy(), (len(cells), 1))
        many = np.frombuffer(clean.view(torch.uint8).numpy().tobytes() * len(cells), dtype=f"V{size}").reshape(-1, 64).copy()
        places = np.arange(len(cells)) * 7 % 64
        many[np.arange(len(cells)), places] = cells
        many_y[np.arange(len(cells)), places] = y[finite]
        wanted = [np.count_nonzero(~torch_close(many.tobytes(), many_y.ravel(), dtype)),
                  np.count_nonzero(~numpy_close(many.tobytes(), many_y.ravel(), FORMATS[form][2]))]
        for isa, counts in self.count(form, many.tobytes(), many_y, many.size).items():
            self.assertEqual(counts.tolist(), [wanted], isa)


if __name__ == "__main__":
    unittest.main()
