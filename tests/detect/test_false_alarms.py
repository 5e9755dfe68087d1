"""Right results of unusual cases that gates once took for wrong ones, and faults that they must still catch there."""

import json
import unittest

from faults import PlantsFaults

SIM = "sim:sm_90"


def case(op, mode, params, inputs):
    return {"op": op, "mode": mode, "backend": "sim", "params": params, "inputs": inputs, "seed": [1, 2, 3]}


def nearly_constant(mode, spread, **params):
    """Whether all rounding errors are one is decided by the numbers, not by the name of their distribution."""
    return case("moe_unpermute", mode, {"tokens": 64, "hidden": 128, "topk": 2, **params},
                {"distribution": "large_mean", "mean": 1, "sigma": spread})


def constant_rows(op, mode, value, hidden=2**18, **params):
    """Sums of so many equal numbers drift."""
    return case(op, mode, {"rows": 2, "hidden": hidden, **params}, {"distribution": "normal",
                                                                    "x": {"distribution": "constant", "value": value}})


# The case, and a fault that must be caught in it.
ALIKE = [
    (nearly_constant("bf16", 1e-4), "last_expert_missing"),
    (nearly_constant("bf16", 1e-3, probs=False), "last_expert_missing"),
    (nearly_constant("fp16", 1e-5), "last_expert_missing"),
    (nearly_constant("fp16", 1e-2, topk=3), "last_expert_missing"),
]
CONSTANT = [
    (constant_rows("rmsnorm_fwd", "fp32", 0.1), "output_scale_1_01"),
    (constant_rows("rmsnorm_fwd", "bf16", -3, hidden=2**19), "output_scale_1_01"),
    (constant_rows("rmsnorm_bwd", "fp32", 0.1), "projection_missing"),
    (constant_rows("layernorm_fwd", "fp32", 1.7), "output_scale_1_01"),
    # gamma (x - mean) is rounded to a lattice of few numbers, whose slope is not gamma.
    (case("layernorm_fwd", "fp32", {"rows": 40, "hidden": 1000, "epsilon": 1},
          {"distribution": "uniform", "low": 0.5, "high": 0.5001}), "output_scale_1_01"),
    # 1 + epsilon is 1 in FP32, and 1 + gamma lies between two numbers: all rows go the same way.
    (case("rmsnorm_fwd", "bf16", {"rows": 64, "hidden": 64, "epsilon": 1e-9, "zero_centered_gamma": True},
          {"distribution": "normal", "x": {"distribution": "signs"}, "gamma": {"distribution": "positive"}}), "output_scale_1_01"),
    (constant_rows("layernorm_bwd", "bf16", 0.3, hidden=2**19), "mean_term_missing"),
]


# Squares overflow, so that rows are beta: codes of FP8 are those of what they are rounded from.
OVERFLOWING = [
    (case("layernorm_fwd", mode, {"rows": 64, "hidden": 256, "output": "fp8_e4m3", **params},
          {"distribution": "normal", "x": {"distribution": "normal", "sigma": 1e20}}), "nan_written")
    for mode, params in (("bf16", {}), ("fp32", {"zero_centered_gamma": True}))
]


# Errors of a product are proportional to the product: beside what does not average out, and where relu leaves the largest sums only,
# that is another number than the result.
BESIDE_ADDENDS = [
    (case("gemm", mode, {"m": 96, "n": 96, "k": 4096, "output": "fp32", **params}, {"distribution": "normal", "sigma": 0.125, **inputs}),
     fault)
    for mode in ("tf32", "bf16", "fp16")
    for params, inputs, fault in (
        ({"beta": 1}, {"c": {"distribution": "constant", "value": 4}}, "scale_1_01"),
        ({"bias": True}, {"bias": {"distribution": "large_mean", "mean": 5, "sigma": 1}}, "scale_1_01"),
        ({"bias": True, "epilogue": "relu"}, {"bias": {"distribution": "constant", "value": -1.5}}, "scale_1_01"))
]

# Below -0.75, gelu falls: truncated sums of one sign make it larger.
FALLING_GELU = [
    (case("gemm", mode, {"m": 96, "n": 96, "k": 416, "alpha": -0.02, "epilogue": "gelu", "trans_b": True, "output": output},
          {"distribution": "positive"}), fault)
    for mode, output, fault in (("fp8_e4m3", "fp16", "scale_half"), ("fp8_e4m3", "fp32", "scale_half"), ("tf32", "fp32", "scale_1_01"),
                                ("bf16", "fp32", "scale_1_01"))
]

# Products of one size are all truncated alike once partial sums are large enough.
LONG_FP8 = [
    (case("gemm", "fp8_e4m3", {"m": 32, "n": 32, "k": k, "trans_b": True, "accumulate": "fast", "output": "fp32"},
          {"distribution": "signs"}), "element_negated")
    for k in (81920, 98304)
]


def attention(op, mode, params, inputs):
    return case(op, mode, {"heads": 2, "sq": 64, "d": 8, **params}, inputs)


CONSTANT_NUMBER = {"distribution": "constant", "value": -2.7}
ATTENTION = [
    # One query, whose weights are nearly all equal: those of a head round alike, and so do rows of dv.
    ({**case("attention_bwd", "fp16", {"heads": 6, "kv_heads": 3, "sq": 1, "sk": 198, "d": 32, "dv": 41, "window_right": 70,
                                       "softmax": "learnable", "softcap": 30},
             {"distribution": "log_uniform", "low": -60, "high": 0}), "seed": 217229919}, "", False),
    # Scores of 1e8: what rounds them makes a weight larger than 1, which E4M3 does not hold.
    ({**case("attention_fwd", "fp8_e4m3", {"heads": 3, "kv_heads": 1, "sq": 16, "sk": 16, "d": 32, "mask": "causal", "layout": "sbhd"},
             {"distribution": "large_mean", "mean": -4096, "sigma": 0.0625}), "seed": 4206411369}, "", False),
    # TF32 rounds the largest FP32 numbers to infinity.
    (attention("attention_fwd", "tf32", {"sk": 64, "scale": 1}, {"distribution": "normal", "v": {"distribution": "specials",
                                                                                               "fraction": 0.002}}),
     "top_left_mask", False),
    # The log-sum-exp has all weights, whatever is dropped.
    (attention("attention_fwd", "tf32", {"sk": 200, "d": 1, "dropout": 0.99},
               {"distribution": "uniform", "low": -5, "high": -4, "q": {"distribution": "positive"}}), "lse_in_log2", True),
    # FP32 does not hold the squares of these products.
    ({**attention("attention_fwd", "tf32", {"heads": 1, "sq": 1, "sk": 6, "dv": 75, "window_left": 0, "layout": "bhsd", "max_logit": True},
                  {"distribution": "log_uniform", "low": -100, "high": 0}), "seed": 1669497118}, "", False),
    # TF32 leaves products an error that is larger than the cap.
    ({**attention("attention_fwd", "tf32", {"batches": 6, "heads": 24, "kv_heads": 3, "sq": 13, "sk": 81, "mask": "padding",
                                            "window_left": 88, "bias": "alibi", "softcap": 1, "layout": "thd",
                                            "packing": "kv_2hd", "max_logit": True},
                  {"distribution": "normal", "sigma": 512}), "seed": 873411452}, "max_logit_before_bias", True),
    # A key a million times as long as the one with the largest score: its products cancel, but their errors do not.
    ({**attention("attention_fwd", "tf32",
                  {"heads": 16, "kv_heads": 2, "sq": 7, "sk": 105, "d": 64, "dv": 48, "mask": "padding_causal",
                   "softmax": "off_by_one", "layout": "thd", "align": 16, "max_logit": True}, {"distribution": "rows"}),
      "seed": 4132153917}, "max_logit_before_bias", False),
    # All that is kept is divided by 0.9, in BF16; the sink has most of the weight, but no value.
    ({**attention("attention_bwd", "bf16",
                  {"batches": 3, "heads": 8, "kv_heads": 1, "sq": 83, "sk": 2, "d": 128, "scale": -0.1, "softmax": "learnable",
                   "layout": "bhsd", "dropout": 0.1, "dropout_mask": "drawn", "rng_seed": 101178, "statistics": "device"},
                  {"distribution": "positive"}), "seed": 585134646}, "output_scale_1_01", True),
    # ALiBi alone makes the weights: they are rounded alike for all queries.
    ({**attention("attention_fwd", "fp8_e4m3",
                  {"batches": 3, "heads": 3, "sq": 63, "sk": 63, "d": 83, "mask": "padding", "bias": "alibi",
                   "softmax": "off_by_one", "softcap": 30, "layout": "bhsd"},
                  {"distribution": "normal", "sigma": 0.00390625}), "seed": 500507643}, "output_scale_1_01", True),
    # One key each: gradients of queries and keys are nothing but their errors, and may be lost.
    ({**attention("attention_bwd", "tf32",
                  {"batches": 3, "heads": 9, "kv_heads": 3, "sq": 64, "sk": 28, "dv": 74, "scale": 0.3, "mask": "causal",
                   "window_left": 0, "softcap": 1, "statistics": "device"}, {"distribution": "uniform"}),
      "seed": 2455634765}, "", False),
    # The largest gradient of a score is off by what FP8 products lose of the score.
    ({**attention("attention_bwd", "fp8_e4m3",
                  {"batches": 2, "heads": 3, "sq": 15, "sk": 10, "scale": 0.3, "mask": "causal_bottom_right",
                   "window_left": 0, "bias": "alibi", "softmax": "learnable"},
                  {"distribution": "log_uniform", "low": -60, "high": 0}), "seed": 3300497571}, "", False),
    # One key each: sums of 8-bit numbers lie between two others, and the smallest error of a scale moves all of them one way.
    ({**attention("attention_bwd", "fp8_hybrid",
                  {"heads": 6, "kv_heads": 3, "sq": 70, "sk": 70, "d": 16, "mask": "causal", "window_left": 0, "window_right": 0,
                   "softcap": 30, "layout": "bhsd"}, {"distribution": "uniform"}), "seed": 2653524352}, "", False),
    # A key's products of 10^4 cancel, and their errors may lift it above the sink.
    ({**attention("attention_fwd", "fp8_hybrid",
                  {"heads": 16, "kv_heads": 2, "sq": 75, "sk": 2, "d": 16, "dv": 11, "scale": 1, "mask": "causal",
                   "bias": "alibi", "softmax": "off_by_one", "layout": "bhsd"},
                  {"distribution": "log_uniform", "low": -20, "high": 20}), "seed": 3917048500}, "", False),
    # Beside a value of 3e38 that meets a gradient of 1e-45.
    ({**attention("attention_bwd", "tf32",
                  {"heads": 6, "kv_heads": 2, "sq": 14, "sk": 19, "d": 32, "window_left": 86, "window_right": 0,
                   "bias": "post_scale", "softcap": 1, "statistics": "device"}, {"distribution": "specials"}),
      "seed": 3544089335}, "", False),
    # A cap saturates, and keys are multiples of one: all queries have the same weights.
    ({**attention("attention_bwd", "bf16",
                  {"batches": 3, "heads": 3, "sq": 129, "sk": 12, "d": 128, "window_left": 7, "bias": "alibi", "softcap": 1,
                   "layout": "bhsd", "statistics": "device"},
                  {"distribution": "activations", "rank": 1, "noise": 0.01, "drift": -8, "sink": 40}), "seed": 3338827269},
     "", False),
    # Weights of scores that FP32 holds to some hundred: anything from 0 to infinity.
    ({**attention("attention_bwd", "fp16",
                  {"batches": 6, "heads": 3, "kv_heads": 1, "sq": 9, "sk": 9, "d": 29, "scale": 0.3, "mask": "padding_causal",
                   "bias": "alibi", "softmax": "off_by_one", "layout": "thd", "dropout": 0.9, "dropout_mask": "drawn",
                   "rng_seed": 639711, "statistics": "device"},
                  {"distribution": "large_mean", "mean": 16384, "sigma": 0.5}), "seed": 2888392786}, "", False),
    # The key with all the weight is dropped. The others have weights of 1e-49, which FP32 does not hold, times keys of 1e26.
    ({**attention("attention_bwd", "bf16",
                  {"batches": 3, "heads": 4, "kv_heads": 2, "sq": 36, "sk": 63, "d": 64, "scale": -0.1, "window_right": 87,
                   "bias": "alibi", "layout": "bhsd", "dropout": 0.1, "statistics": "device", "dropout_mask": "drawn",
                   "rng_seed": 131940}, {"distribution": "rows", "low": -100, "high": 100}), "seed": 3895117239}, "", False),
    # Operands of TF32 that repeat are rounded by the same part: v of all keys, q and k, do of all queries.
    ({**attention("attention_bwd", "tf32", {"heads": 8, "kv_heads": 1, "sq": 400, "sk": 256, "d": 96, "scale": 1e-4, "bias": "alibi",
                                            "layout": "bhsd", "dropout": 0.9},
                  {**CONSTANT_NUMBER, "q": {"distribution": "log_uniform", "low": -3, "high": 3}, "k": {"distribution": "activations"},
                   "do": {"distribution": "uniform", "low": -0.1, "high": 1}}), "seed": 130326570}, "delta_missing", True),
    ({**attention("attention_bwd", "tf32", {"batches": 3, "heads": 6, "kv_heads": 3, "sq": 400, "sk": 100, "d": 20, "mask": "causal",
                                            "softmax": "learnable", "layout": "sbhd"},
                  {**CONSTANT_NUMBER, "v": {"distribution": "normal"}}), "seed": 1053007324}, "head_map_rotated", False),
    ({**attention("attention_bwd", "tf32", {"heads": 24, "kv_heads": 3, "sq": 1, "sk": 64, "d": 32, "mask": "causal"},
                  {"distribution": "large_mean", "mean": -5, "sigma": 0.1, "q": {"distribution": "uniform", "low": 0, "high": 2},
                   "k": {"distribution": "normal"}, "v": {"distribution": "large_mean", "mean": 4, "sigma": 0.1},
                   "do": CONSTANT_NUMBER}), "seed": 1355838965}, "delta_missing", True),
    # Gradients that are all the same, queries that are one of 16: what rounds dS is the same in all queries of a kind.
    ({**attention("attention_bwd", "bf16", {"batches": 2, "heads": 4, "sq": 2048, "sk": 16, "d": 4, "dv": 1, "softcap": 0.1,
                                            "softmax": "off_by_one", "layout": "bhsd"},
                  {"distribution": "uniform", "low": 0.9, "high": 1.1, "q": {"distribution": "signs"},
                   "k": {"distribution": "large_mean", "mean": 1, "sigma": 0.01}, "v": {"distribution": "activations"},
                   "do": {"distribution": "large_mean", "mean": 100, "sigma": 0.001}}), "seed": 609402936}, "delta_missing", True),
    # Scores at a cap: weights are two numbers, rounded alike in all rows.
    ({**attention("attention_fwd", "bf16", {"batches": 2, "heads": 4, "sq": 256, "sk": 129, "d": 4, "dv": 1, "scale": 0.1,
                                            "mask": "causal_bottom_right", "softcap": 0.01, "layout": "bhsd", "dropout": 0.1},
                  {"distribution": "uniform", "low": 0.9, "high": 1.1, "q": {"distribution": "normal"}, "k": {"distribution": "normal"}}),
      "seed": 1339248931}, "output_scale_1_01", True),
    ({**attention("attention_bwd", "bf16", {"heads": 1, "sq": 256, "sk": 512, "d": 128, "scale": 1, "softcap": 1, "layout": "bhsd",
                                            "statistics": "device"},
                  {"distribution": "activations", "rank": 64, "noise": 0.5, "outlier_every": 1000, "outlier": 5, "drift": 0.1, "sink": 16}),
      "seed": 1469958542}, "output_scale_1_01", True),
    # A cap saturates: all weights but a few are exp(-2), rounded alike, and what those have of o is 3.6 times o.
    ({**attention("attention_fwd", "fp16", {"heads": 24, "kv_heads": 3, "sq": 48, "sk": 100, "d": 32, "dv": 44, "scale": -0.1,
                                            "softcap": 1, "softmax": "off_by_one", "layout": "bhsd"},
                  {"distribution": "activations", "rank": 1, "noise": 0.01, "drift": -8, "sink": 40}), "seed": 824249209},
     "output_scale_1_01", True),
    # One value and two weights: a sum in FP32 errs by the same part of an ulp for a while.
    ({**attention("attention_fwd", "fp32", {"batches": 2, "heads": 4, "sq": 128, "sk": 100, "d": 64, "dv": 2, "scale": 1, "mask": "causal",
                                            "softcap": 0.1, "layout": "bhsd"},
                  {**CONSTANT_NUMBER, "k": {"distribution": "signs"}}), "seed": 1005662693}, "output_scale_1_01", True),
]

def beside(mean, relative=1e-7):
    return {"distribution": "large_mean", "mean": mean, "sigma": abs(mean) * relative}


NORMAL = {"distribution": "normal"}
# Numbers that are next to the same have the same rounding errors in a sum, which add up.
NEARLY_EQUAL = [
    # The first queries of a window see fewer keys than the others, whose weights are equal; so are products of do and v.
    ({**attention("attention_bwd", "fp32",
                  {"batches": 3, "sq": 90, "sk": 4, "d": 128, "dv": 28, "window_right": 68, "bias": "post_scale", "layout": "sbhd"},
                  beside(0.01)), "seed": 987118092}, "output_scale_1_01"),
    (attention("attention_bwd", "fp32", {"sq": 128, "sk": 5, "d": 32, "mask": "causal"},
               {"distribution": "constant", "value": 0.1, "k": {"distribution": "uniform", "low": 0.5, "high": 0.5001}, "v": beside(1)}),
     "mask_off_by_one"),
    # All products of queries and keys are next to the same, and so are the errors of scores.
    (attention("attention_bwd", "fp32", {"sq": 100, "sk": 40, "d": 128, "mask": "causal"},
               {**NORMAL, "q": beside(0.7), "k": beside(0.7), "do": beside(0.7)}), "queries_lost"),
    (attention("attention_bwd", "fp32", {"batches": 2, "heads": 1, "sq": 1, "sk": 90, "d": 128}, {**beside(0.7, 6e-9), "q": beside(1, 2e-9)}),
     "output_scale_1_01"),
    # With dropout, those that are kept.
    ({**attention("attention_bwd", "fp32",
                  {"batches": 2, "heads": 4, "kv_heads": 1, "sq": 300, "sk": 16, "d": 128, "softcap": 30, "dropout": 0.1},
                  {**beside(-0.001, 1.5e-8), "do": beside(-1, 1e-8), "k": beside(0.01, 2.7e-8), "q": NORMAL}), "seed": 271},
     "dropout_scale_missing"),
    # D of all queries has the same error, and dq is hardly larger.
    (attention("attention_bwd", "fp32", {"heads": 1, "sq": 1000, "sk": 4, "d": 32}, {**NORMAL, "do": beside(0.01), "v": beside(0.01)}),
     "delta_missing"),
    # TF32 rounds all values by the same part.
    ({**attention("attention_fwd", "tf32", {"heads": 4, "kv_heads": 2, "sq": 300, "sk": 1, "d": 128, "scale": -1, "bias": "alibi"},
                  {**NORMAL, "v": {"distribution": "constant", "value": 0.001}}), "seed": 2888}, "output_scale_1_01"),
]

# Rounded slices and 3.7 C add up to numbers beside the middle between two of BF16, which FP32 rounds to the middle.
BESIDE_THE_MIDDLE = {
    **case("gemm", "bf16", {"m": 12, "n": 8, "k": 2071, "trans_b": True, "beta": 3.7, "pad_d": 8},
           {"distribution": "normal", "a": {"distribution": "large_mean", "mean": 0.79345703125, "sigma": 0.396728515625},
            "b": {"distribution": "uniform", "low": 0.1480560447089374, "high": 0.15760804759338498},
            "c": {"distribution": "large_mean", "mean": -93.8597757235611, "sigma": 2.9331179913612844}}),
    "seed": 922642171, "algorithms": "all"}

# Infinite gradients meet infinities of overflows in the sums over columns, and become NaN.
INFINITE = [{**case("layernorm_bwd", "fp32", params, {"distribution": "specials", "fraction": 0.3}), "seed": seed}
            for params, seed in (({"rows": 69, "hidden": 32, "epsilon": 0.001}, 3093637783),
                                 ({"rows": 12, "hidden": 64, "epsilon": 1e-6, "zero_centered_gamma": True}, 2226712302))]


# Every sum over these rows overflows, and each of their elements asks whether any is finite. Asking that anew took minutes.
LONG_OVERFLOWS = [
    {**case("layernorm_bwd", "fp32", {"rows": 1, "hidden": 2**19, "zero_centered_gamma": True},
            {"distribution": "rows", "low": 60, "high": 100}), "seed": 3733053614, "timeout_s": 30},
    {**case("rmsnorm_bwd", "fp32", {"rows": 2, "hidden": 2**18}, {"distribution": "constant", "value": -1e38}), "seed": 1868771855,
     "timeout_s": 30}]


# 1 + erf(x / sqrt(2)) is 0 in FP32 below -5.7, which makes all of gelu's derivatives there too large, by up to 3 %.
VANISHING = [(case("activation_bwd", "bf16", {"kind": "gelu_erf", "rows": 512, "hidden": 512}, inputs), "perturb_all=1e-3")
             for inputs in ({"distribution": "normal", "sigma": 5}, {"distribution": "normal", "sigma": 8},
                            {"distribution": "uniform", "low": -10, "high": 10})]
ALL_VANISHING = case("activation_bwd", "bf16", {"kind": "gelu_erf", "rows": 512, "hidden": 512},
                     {"distribution": "uniform", "low": -12, "high": -6})


def biased_gelu(mode, k, sigma, bias, **params):
    """z around the biases: gelu is flat there, and its tanh rounds many sums alike."""
    return case("gemm", mode, {"m": 96, "n": 96, "k": k, "epilogue": "gelu", "alpha": k**-0.5, "bias": True, **params},
                {"distribution": "normal", "b": {"distribution": "normal", "sigma": sigma}, "bias": bias})


FLAT_GELU = [
    (case("gemm", "fp32", {"m": 96, "n": 96, "k": 4096, "epilogue": "gelu", "alpha": 1 / 32}, {"distribution": "normal"}), "gelu_erf"),
    (biased_gelu("fp32", 2048, 0.2, {"distribution": "normal", "sigma": 2}), "gelu_erf"),
    (biased_gelu("fp32", 512, 0.1, {"distribution": "large_mean", "mean": -5, "sigma": 0.5}), "all_seven"),
    (biased_gelu("tf32", 1024, 0.1, {"distribution": "constant", "value": -5.2}), "all_seven"),
    (biased_gelu("fp16", 512, 0.1, {"distribution": "constant", "value": -5.2}, output="fp32"), "all_seven"),
    (biased_gelu("fp16", 512, 0.1, {"distribution": "large_mean", "mean": -4.5, "sigma": 0.1}), "all_seven"),
    (biased_gelu("bf16", 1024, 0.01, {"distribution": "constant", "value": -5}), "all_seven"),
]
# Positive terms of many binades: those below half an ulp of the running sum are lost in all elements alike.
POSITIVE = {"distribution": "log_uniform", "signed": False}
LOST_TERMS = [(case("gemm", mode, {"m": 64, "n": 64, "k": k, **params}, {**POSITIVE, **inputs}), fault)
              for mode, k, params, inputs, fault in (
                  ("fp32", 256, {}, {"low": -30, "high": 0}, "perturb_all=1e-6"), ("fp32", 100, {}, {}, "perturb_all=1e-6"),
                  ("fp32_pedantic", 1024, {}, {"low": -20, "high": 8}, "perturb_all=3e-6"),
                  ("bf16x9", 512, {"beta": 1}, {"low": -30, "high": 0, "c": {"distribution": "constant", "value": 10}}, "scale_1_01"))]
LOST_TERMS.append(({**case("gemm", "fp32", {"m": 128, "n": 64, "k": 1024}, {**POSITIVE, "low": -12, "high": 4, "a": {"distribution": "positive"}}),
                    "seed": 889951}, "perturb_all=1e-6"))
# Probabilities that are all rounded alike, to the format of x.
ROUTED = [(case("moe_unpermute", mode, {"tokens": 93, "hidden": 108, "topk": 2}, {"distribution": "normal", "probs": probs}), fault)
          for mode, fault, probs in (("fp16", "perturb_all=2e-3", {"distribution": "constant", "value": 0.1}),
                                     ("fp16", "perturb_all=2e-3", {"distribution": "constant", "value": -0.1}),
                                     ("bf16", "perturb_all=1e-2", {"distribution": "large_mean", "mean": 0.3, "sigma": 1e-4}))]
# Sums that are subnormal, or nothing, before a large alpha makes them large.
SUBNORMAL_SUMS = [
    (case("gemm", "fp8_e4m3", {"m": 32, "n": 32, "k": 64, "trans_b": True, "alpha": 1e10, "output": "fp32"}, {"distribution": "normal", "sigma": 1e-21}),
     "all_seven"),
    (case("grouped_gemm", "fp8_e4m3", {"group_m": "32", "group_n": "32", "group_k": "64", "trans_b": True, "alpha": 1e10, "output": "fp32"},
          {"distribution": "normal", "sigma": 1e-21}), "all_seven"),
    ({**case("gemm", "fp32_fast16bf", {"m": 9, "n": 16, "k": 64, "trans_b": True, "alpha": 1e30},
             {"distribution": "uniform", "low": 9.265847495438243e-22, "high": 2.7797542486314726e-21}), "seed": 156}, "scale_1_01"),
    ({**case("gemm", "tf32", {"m": 22, "n": 24, "k": 64, "trans_b": True, "alpha": -3.3},
             {"distribution": "uniform", "low": 1.6577915511346715e-22, "high": 4.973374653404014e-22,
              "b": {"distribution": "uniform", "low": 6.336728435714705e-24, "high": 6.4000957200718526e-24}}), "seed": 173}, "all_seven"),
]
# Errors of FP8 products that have no random signs, beside addends: more than those of the squares of their terms.
PATTERNS = {"distribution": "patterns", "format": "fp16"}
ORDERED_FP8 = [
    (case("gemm", "fp8_hybrid", {"m": 128, "n": 16, "k": 4096, "trans_b": True, "accumulate": "fast", "beta": -1},
          {"distribution": "normal", "a": {"distribution": "constant", "value": 0.001}, "b": PATTERNS}), "sim:sm_89"),
    (case("gemm", "fp8_e4m3", {"m": 32, "n": 129, "k": 257, "trans_b": True, "accumulate": "fast", "alpha": 0.001, "bias": True},
          {"distribution": "positive", "b": {**PATTERNS, "format": "bf16"}}), "sim:sm_90"),
    # Sums with tiny scales are subnormal before alpha makes them large.
    (case("gemm", "fp8_hybrid", {"m": 32, "n": 1, "k": 1000, "trans_b": True, "alpha": 1e30, "output": "fp32", "scaling": "mxfp8"},
          {**PATTERNS, "b_scale_inv": {"distribution": "constant", "value": 1e-38}}), "sim:sm_100"),
]
# All columns of dgamma are the same sum, with the same error.
EQUAL_COLUMNS = {**case("rmsnorm_bwd", "fp32", {"rows": 5, "hidden": 257, "epsilon": 1e-30},
                        {"distribution": "normal", "x": {"distribution": "constant", "value": -424100},
                         "dz": {"distribution": "constant", "value": 8.055e-06}}), "seed": 520548333}


class FalseAlarms(PlantsFaults):
    def statuses(self, planted, fault=None, device=SIM):
        arguments = ["--inject", fault] if fault else []
        self.run_cli("run", self.plan(cases=[planted]), "--device", device, "--json", "report.json", "--no-save", "--allow-empty",
                     *arguments, code=None)
        return [(result["status"], result["reason"]) for result in json.loads((self.folder / "report.json").read_text())["cases"]]

    def check(self, table):
        for planted, fault in table:
            with self.subTest(op=planted["op"], mode=planted["mode"], params=planted["params"]):
                for status, reason in self.statuses(planted):
                    self.assertIn(status, ("pass", "inconclusive"), reason)
                for status, reason in self.statuses(planted, fault):
                    self.assertEqual(status, "fail", reason)

    def test_nearly_constant_copies(self):
        self.check(ALIKE)

    def test_attention_of_numbers_that_are_next_to_the_same(self):
        self.check(NEARLY_EQUAL)

    def test_attention_at_the_ends_of_the_range(self):
        for planted, fault, is_caught in ATTENTION:
            with self.subTest(op=planted["op"], mode=planted["mode"], params=planted["params"]):
                for status, reason in self.statuses(planted):
                    self.assertIn(status, ("pass", "inconclusive"), reason)
                for status, reason in self.statuses(planted, fault) if is_caught else []:
                    self.assertEqual(status, "fail", reason)

    def test_derivatives_that_lose_a_term_alike(self):
        self.check(VANISHING)
        self.check([(ALL_VANISHING, "all_seven")])

    def test_long_constant_rows(self):
        self.check(CONSTANT)

    def test_where_gelu_is_flat(self):
        self.check(FLAT_GELU)

    def test_fp8_products_of_ordered_operands(self):
        for planted, device in ORDERED_FP8:
            with self.subTest(params=planted["params"]):
                for status, reason in self.statuses(planted, device=device):
                    self.assertIn(status, ("pass", "inconclusive"), reason)

    def test_probabilities_that_are_rounded_alike(self):
        self.check(ROUTED)

    def test_sums_that_are_subnormal_before_alpha(self):
        self.check(SUBNORMAL_SUMS)

    def test_terms_that_are_lost_in_all_sums_alike(self):
        self.check(LOST_TERMS)

    def test_equal_columns_have_one_error(self):
        self.check([(EQUAL_COLUMNS, "all_seven")])

    def test_products_beside_addends_of_another_size(self):
        self.check(BESIDE_ADDENDS)

    def test_where_gelu_falls(self):
        self.check(FALLING_GELU)

    def test_long_fp8_sums_of_products_of_one_size(self):
        self.check(LONG_FP8)

    def test_rows_whose_squares_overflow_in_fp8(self):
        self.check(OVERFLOWING)

    def test_infinities_that_meet_overflows(self):
        for planted in INFINITE:
            ((status, reason),) = self.statuses(planted)
            self.assertIn(status, ("pass", "inconclusive"), reason)

    def test_long_rows_that_overflow_are_judged_in_time(self):
        for planted in LONG_OVERFLOWS:
            ((status, reason),) = self.statuses(planted)
            self.assertIn(status, ("pass", "inconclusive"), reason)

    def test_slices_whose_sum_with_c_is_beside_the_middle_of_two_numbers(self):
        ((status, reason),) = self.statuses(BESIDE_THE_MIDDLE, device="sim:sm_100")
        self.assertEqual(status, "warn", reason)
        ((status, reason),) = self.statuses(BESIDE_THE_MIDDLE, "beta_ignored", "sim:sm_100")
        self.assertEqual(status, "fail", reason)


if __name__ == "__main__":
    unittest.main()
