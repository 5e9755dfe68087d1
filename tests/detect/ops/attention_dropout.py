"""The dropout mask that a backend draws for attention."""

from attention_drawing import attention, library_limits
from drawing import Clean
from families import Row


def drawn(mode="bf16", **rest):
    params = {"batches": 2, "heads": 4, "sq": 40, "sk": 60, "d": 32, "dropout": 0.2, "dropout_mask": "drawn", **rest}
    return {"op": "attention_dropout", "mode": mode, "backend": "sim", "params": params}


FOUR_QUERIES = "each draw of the mask is used for 4 queries that are 2 apart"
RAGGED = {"mask": "padding_causal", "layout": "thd", "batches": 5}

FAULTS = [
    ("nothing_dropped", drawn(), ["dropped share"]),
    ("nothing_dropped", drawn(**RAGGED), ["dropped share"]),
    ("share_half", drawn("fp32"), ["dropped share"]),
    ("last_row_stale", drawn(sq=256, sk=256, dropout=0.5), ["dropped share of a row"]),
    ("last_row_stale", drawn("fp16", sq=256, sk=256, dropout=0.1), ["dropped share of a query", "dropped share of a row"]),
    ("tile_dropped", drawn(sq=256, sk=256, dropout=0.5), ["dropped share of a tile"]),
    ("mask_inverted", drawn("fp16"), ["dropped share"]),
    ("mask_scaled", drawn(), ["neither 0 nor 1"]),
    ("nan_written", drawn(), ["neither 0 nor 1"]),
    ("inf_written", drawn(mask="causal"), ["neither 0 nor 1"]),
    ("all_zero", drawn(), ["dropped share"]),
    ("all_seven", drawn("fp32"), ["neither 0 nor 1"]),
    ("signs_flipped", drawn("fp16"), ["neither 0 nor 1"]),
    ("heads_alike", drawn(mask="causal"), ["dropped heads"]),
    ("sequences_alike", drawn(), ["dropped sequences"]),
    ("queries_alike", drawn(), ["dropped queries"]),
    ("key_pairs_alike", drawn(**RAGGED), ["dropped keys"]),
    ("draws_restart", drawn(), ["repeated draws"]),
    ("draws_restart", drawn("fp16", dropout=0.9, mask="causal"), ["repeated draws"]),
    ("draws_used_twice", drawn("fp32"), ["repeated draws"]),
    ("draws_used_twice", drawn(**RAGGED, dropout=0.02, sq=200, sk=200), ["repeated draws"]),
    ("draws_used_twice", drawn(sq=1024, sk=1024, mask="causal", window_left=40), ["repeated draws"]),
    Row("draws_used_four_times", drawn(), ["repeated draws"], named=FOUR_QUERIES),
    Row("draws_used_four_times", drawn(**RAGGED), ["repeated draws"], named=FOUR_QUERIES),
    Row("draws_used_four_times", drawn(dropout=0.9, mask="causal", window_left=9), ["repeated draws"], named=FOUR_QUERIES),
    ("row_repeated", drawn(sq=256, sk=256), ["copied draws"]),
    ("row_repeated", drawn("fp16", sq=200, sk=300, dropout=0.5, mask="causal_bottom_right"), ["copied draws"]),
    ("row_repeated", drawn(sq=100, sk=2048, dropout=0.02), ["copied draws"]),
    ("row_repeated", drawn(sq=512, sk=512, dropout=0.9, mask="causal", window_left=250), ["copied draws"]),
    ("tile_repeated", drawn(sq=256, sk=256), ["copied draws"]),
    ("tile_repeated", drawn("fp32", sq=300, sk=200, dropout=0.01), ["copied draws"]),
    ("tile_repeated", drawn(sq=512, sk=512, mask="causal"), ["copied draws"]),
    ("tile_repeated", drawn(batches=1, heads=1, sq=256, sk=2048, dropout=0.5), ["copied draws"]),
    ("head_transposed", drawn(sq=256, sk=256), ["copied draws"]),
    ("head_transposed", drawn("fp16", sq=100, sk=100, dropout=0.5, layout="bhsd"), ["copied draws"]),
    # Where the last queries see nothing, or do not exist.
    ("draws_used_twice", drawn(batches=1, heads=1, sq=4096, sk=512, mask="causal", window_left=40), ["repeated draws"]),
    ("draws_used_twice", drawn(batches=1, heads=1, sq=1024, sk=1024, mask="padding"), ["repeated draws"]),
]

REFUSED = [
    ("heads_alike", drawn(heads=1), "there is one head"),
    ("sequences_alike", drawn(batches=1), "there is one sequence"),
    ("queries_alike", drawn(sq=1), "there is one query"),
    ("key_pairs_alike", drawn(sk=1), "there is one key"),
    ("draws_restart", drawn(sq=10, sk=10), "within so few weights"),
    ("draws_used_twice", drawn(sk=8), "no keys are eight apart"),
    ("draws_used_four_times", drawn(sq=2), "no queries are two apart"),
    ("tile_dropped", drawn(sq=15), "there are no 16 queries and 16 keys"),
    ("row_repeated", drawn(batches=1, heads=1), "there is one head"),
    ("tile_repeated", drawn(sq=63), "there are no 64 queries and 64 keys"),
    ("tile_repeated", drawn(batches=1, heads=1, sq=100, sk=100), "there is one tile of 64 queries and 64 keys"),
    ("head_transposed", drawn(), "there are not as many queries as keys"),
    ("head_transposed", drawn(batches=1, heads=1, sq=60), "there is one head"),
]


def masks(rng, shape, mode):
    params = attention(rng, shape, mode)
    return {**params, "dropout": rng.choice([0.01, 0.1, 0.5, 0.99]), "dropout_mask": "drawn",
            "rng_seed": rng.randint(0, 10**6)}


CLEAN = {"attention_dropout": Clean(masks, te_limits=library_limits, cudnn_limits=library_limits, accept_too_much=True,
                                    modes=("fp32", "bf16", "fp16"))}

PATHS = [
    {"op": "attention_dropout",
     "params": {"batches": [1, 3], "heads": 3, "sq": [1, 30], "sk": [1, 61], "d": 8, "dropout": 0.3,
                "dropout_mask": "drawn", "mask": ["none", "padding"]}},
]
