"""Draws random clean cases: shapes and inputs that suit every op. What concerns a single op is in its file in ops/.
Nothing here knows what a result should be."""

import collections.abc
import dataclasses
import random

MOST_ELEMENTS = 12000

FP8 = ["fp8_e4m3", "fp8_e5m2"]
DISTRIBUTIONS = ["normal"] * 3 + ["positive", "uniform", "constant", "large_mean", "log_uniform", "outliers", "exact"]
DISTRIBUTIONS += ["ties", "specials", "structured", "rows", "activations"]


@dataclasses.dataclass(frozen=True)
class Clean:
    """How the clean cases of an op are drawn."""

    # (rng, shape, mode) -> parameters; shape(rng) gives (rows, columns)
    params: collections.abc.Callable
    # (case, rng): changes a case, in place, so that TransformerEngine accepts it. The limits are those in the backend's
    # `unsupported` sentences; without this, a sweep of N cases would judge far fewer than N results.
    te_limits: collections.abc.Callable = None
    # (inputs, backend, mode) -> whether the backend is right with such inputs; others are drawn again
    takes: collections.abc.Callable = None
    modes: tuple = ("fp32", "bf16", "fp16")
    # the same for cuDNN
    cudnn_limits: collections.abc.Callable = None
    # the same for products with kernels in between
    unfused_limits: collections.abc.Callable = None
    # Backends whose warnings are no false alarms: the library rounds early, and declares it.
    may_warn: tuple = ()
    # The limits are also those of cases that a library accepts and gets wrong.
    accept_too_much: bool = False

    def case(self, rng, op, backend, borders=False):
        mode = rng.choice(self.modes)
        case = {
            "op": op,
            "mode": mode,
            "backend": backend,
            "params": self.params(rng, border_shape if borders else random_shape, mode),
            "inputs": self.inputs(rng, backend, mode),
            "seed": rng.randint(0, 2**32),
        }
        # Some stay as drawn, to see that the backend refuses them and does not fail.
        limits = self.limits(backend)
        if limits and (rng.random() < 0.95 or self.accept_too_much):
            limits(case, rng)
        return case

    def limits(self, backend):
        if backend.startswith("transformer_engine"):
            return self.te_limits
        return {"cudnn": self.cudnn_limits, "unfused": self.unfused_limits}.get(backend)

    def inputs(self, rng, backend, mode):
        inputs = distribution(rng)
        while self.takes and not self.takes(inputs, backend, mode):
            inputs = distribution(rng)
        return inputs

    def cases(self, op, backend, count, seed, borders=False):
        """`count` cases of the op; the same for the same arguments, whatever other ops are drawn."""
        rng = random.Random(f"{op} {seed} {borders}")
        return [self.case(rng, op, backend, borders) for _ in range(count)]


@dataclasses.dataclass(frozen=True)
class DrawnBy:
    """Clean cases drawn by a program of the build: PROGRAM BACKEND CASES SEED prints them. It draws no border shapes."""

    program: str
    # Backends whose warnings are no false alarms: the library rounds early, and declares or shows it.
    may_warn: tuple = ()


def distribution(rng):
    name = rng.choice(DISTRIBUTIONS)
    inputs = {"distribution": name}
    if name in ("normal", "large_mean"):
        inputs["sigma"] = 2.0 ** rng.randint(-10, 10)
    if name == "large_mean":
        inputs["mean"] = rng.choice([-1, 1]) * 2.0 ** rng.randint(0, 14)
    if name == "log_uniform":
        inputs["low"], inputs["high"] = rng.choice([(-8, 8), (-60, 0), (-149, 127), (-20, 20)])
    if name == "constant":
        inputs["value"] = rng.choice([1, 0.1, -3, round(rng.uniform(-6, 6), 3)])
    if name == "activations":
        inputs["rank"], inputs["noise"] = rng.choice([(8, 0.25), (1, 0.01), (2, 0), (64, 0.5)])
        inputs["outlier_every"], inputs["outlier"] = rng.choice([(64, 20), (64, 20), (7, 100), (1000, 5)])
        inputs["drift"], inputs["sink"] = rng.choice([(0.5, 4), (0.5, 4), (-8, 40), (0, 0), (0.1, 16)])
    if name == "specials":
        inputs["fraction"] = rng.choice([0.01, 0.3])
    return inputs


def random_shape(rng):
    """Rows and columns: small, medium, long rows, powers of two."""
    cols = rng.choice([rng.randint(1, 40), rng.randint(1, 300), rng.randint(300, 5000), 2 ** rng.randint(0, 12)])
    most = max(1, MOST_ELEMENTS // cols)
    return rng.choice([rng.randint(1, min(40, most)), rng.randint(1, most)]), cols


def border_shape(rng):
    """Rows and columns at 2^k - 1, 2^k and 2^k + 1: where tiles, warps and vectors end."""

    def border(most):
        size = 2 ** rng.randint(0, max(0, most.bit_length() - 1)) + rng.randint(-1, 1)
        return min(max(1, size), most)

    cols = border(8193)
    return border(max(1, 8 * MOST_ELEMENTS // cols)), cols


def multiple(value, of):
    return max(of, value // of * of)


def sixteen_bit(case, rng):
    """For ops that TransformerEngine only has in 16-bit formats."""
    if case["mode"] == "fp32":
        case["mode"] = rng.choice(["bf16", "fp16"])
