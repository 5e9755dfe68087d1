"""Draws random clean cases: shapes and inputs that suit every op. What concerns a single op is in its file in ops/.
Nothing here knows what a result should be."""

import collections.abc
import copy
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
    # the same for cuBLAS, and for cuBLASLt
    cublas_limits: collections.abc.Callable = None
    cublaslt_limits: collections.abc.Callable = None
    # (case): changes a case of a library, in place, so that it is none that libraries accept and get wrong
    avoid: collections.abc.Callable = None
    # Backends whose warnings are no false alarms: the library rounds early, and declares it.
    may_warn: tuple = ()
    # The limits are also those of cases that a library accepts and gets wrong.
    accept_too_much: bool = False
    # (case, rng): gives a case, in place, parameters and inputs that hardly any plan has
    unusual: collections.abc.Callable = None

    def case(self, rng, op, backend, borders=False, unusual=False):
        mode = rng.choice(self.modes)
        if unusual:
            return self.unusual_case(rng, op, backend, mode)
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
        if limits and self.avoid:
            self.avoid(case)
        return case

    def unusual_case(self, rng, op, backend, mode):
        case = {
            "op": op,
            "mode": mode,
            "backend": backend,
            "params": self.params(rng, unusual_shape, mode),
            "inputs": unusual_inputs(rng),
            "seed": rng.randint(0, 2**32),
        }
        if self.unusual:
            self.unusual(case, rng)
        return case

    def limits(self, backend):
        if backend.startswith("transformer_engine"):
            return self.te_limits
        return {"cudnn": self.cudnn_limits, "unfused": self.unfused_limits, "cublas": self.cublas_limits,
                "cublaslt": self.cublaslt_limits}.get(backend)

    def inputs(self, rng, backend, mode):
        inputs = distribution(rng)
        while self.takes and not self.takes(inputs, backend, mode):
            inputs = distribution(rng)
        return inputs

    def with_other_data(self, case, rng):
        """The same shape with another seed, and with other inputs if the backend takes these."""
        other = copy.deepcopy(case)
        other |= {"inputs": self.inputs(rng, case["backend"], case["mode"]), "seed": rng.randint(0, 2**32)}
        if limits := self.limits(case["backend"]):
            limits(other, rng)
            if self.avoid:
                self.avoid(other)
        return other if other["params"] == case["params"] else {**case, "seed": other["seed"]}

    def cases(self, op, backend, count, seed, borders=False, unusual=False, data=1):
        """`count` cases of the op, each shape with `data` different inputs, one after another; the same for the same
        arguments, whatever other ops are drawn."""
        rng = random.Random(f"{op} {seed} {borders}" + (" unusual" if unusual else ""))
        cases = []
        while len(cases) < count:
            first = self.case(rng, op, backend, borders, unusual)
            cases += [first, *(self.with_other_data(first, rng) for _ in range(data - 1))]
        return cases[:count]


@dataclasses.dataclass(frozen=True)
class DrawnBy:
    """Clean cases drawn by a program of the build: PROGRAM BACKEND CASES SEED prints them. It draws no border shapes."""

    program: str
    # Backends whose warnings are no false alarms: the library rounds early, and declares or shows it.
    may_warn: tuple = ()
    # (rng) -> mode, parameters and inputs that hardly any plan has; they are drawn here, not by the program
    unusual: collections.abc.Callable = None

    def unusual_cases(self, op, backend, count, seed):
        rng = random.Random(f"{op} {seed} unusual")
        return [{"op": op, "backend": backend, **self.unusual(rng), "seed": rng.randint(0, 2**32)} for _ in range(count)]


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


def unusual_shape(rng):
    """One row, one column, very long rows."""
    cols = rng.choice([1, 1, 2, rng.randint(1, 64), rng.randint(1000, 20000), 2 ** rng.randint(14, 20)])
    if cols > MOST_ELEMENTS:
        return rng.choice([1, 1, 2]), cols
    most = max(1, MOST_ELEMENTS // cols)
    return rng.choice([1, 1, 2, rng.randint(1, min(40, most)), rng.randint(1, most)]), cols


def unusual_values(rng):
    """Equal or nearly equal numbers, subnormals, numbers near the ends of the range, rows of very different scales."""
    name = rng.choice(["constant", "constant", "large_mean", "large_mean", "log_uniform", "rows", "normal", "positive",
                       "structured", "specials", "uniform"])
    values = {"distribution": name}
    if name == "constant":
        values["value"] = rng.choice([0, 1, 0.1, -3, 1e-40, -1e-45, 1e30, -1e38, round(rng.uniform(-6, 6), 3)])
    if name == "large_mean":
        values["mean"] = rng.choice([-1, 1]) * 10.0 ** rng.randint(-6, 6)
        values["sigma"] = max(1e-30, abs(values["mean"]) * 10.0 ** rng.randint(-7, 0))
    if name == "log_uniform":
        values["low"], values["high"] = rng.choice([(-149, -126), (-149, 127), (-60, 0), (100, 127), (-100, 0)])
    if name == "rows":
        values["low"], values["high"] = rng.choice([(-100, 100), (-50, 50), (-100, -90), (60, 100)])
    if name == "normal":
        values["sigma"] = 10.0 ** rng.choice([-30, -20, -10, -5, 5, 10, 20])
    if name == "uniform":
        values["low"] = 10.0 ** rng.randint(-3, 3)
        values["high"] = values["low"] * (1 + 2.0 ** -rng.randint(0, 12))
    if name == "structured":
        values["period"] = rng.choice([1, 7, 4096, 10**6])
    return values


def unusual_inputs(rng):
    return unusual_values(rng)


def multiple(value, of):
    return max(of, value // of * of)


def sixteen_bit(case, rng):
    """For ops that TransformerEngine only has in 16-bit formats."""
    if case["mode"] == "fp32":
        case["mode"] = rng.choice(["bf16", "fp16"])
