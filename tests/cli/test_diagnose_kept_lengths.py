"""diagnose: kept tensors of padded attention whose lengths somebody has changed are refused; padding is not judged, which is
said; an amax that counts it is named."""

import json
import struct
import unittest

from support import CliTest

PARAMS = {"batches": 2, "heads": 2, "sq": 33, "sk": 65, "d": 16, "mask": "padding"}


class KeptLengths(CliTest):
    def kept(self, op, layout):
        """A file of kept tensors."""
        plan = self.plan(case={"op": op, "mode": "bf16", "params": {**PARAMS, "layout": layout}})
        self.run_cli("run", plan, "--device", "sim:sm_90", "--no-save", "--keep-tensors", f"{op}-{layout}", code=0)
        return next((self.folder / f"{op}-{layout}").iterdir())

    def with_values(self, path, values):
        """The arguments for a copy in which these tensors hold other numbers of 4 bytes."""
        data = bytearray(path.read_bytes())
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])
        for name, numbers in values.items():
            begin, end = header[name]["data_offsets"]
            data[8 + size + begin : 8 + size + end] = struct.pack(f"<{len(numbers)}{'f' if header[name]['dtype'] == 'F32' else 'i'}", *numbers)
        changed = self.folder / "changed.safetensors"
        changed.write_bytes(data)
        return ["diagnose", "--tensors", changed, "--effort", "quick"]

    def with_lengths(self, path, name, lengths):
        return self.with_values(path, {name: lengths})

    def test_that_do_not_fit_are_refused(self):
        for op in ("attention_fwd", "attention_bwd"):
            for layout in ("bshd", "thd"):
                path = self.kept(op, layout)
                for name, lengths, most in (("q_lengths", (-1, 52), 33), ("q_lengths", (34, 10), 33), ("kv_lengths", (2**31 - 1, 1), 65),
                                            ("kv_lengths", (-5, 51), 65)):
                    with self.subTest(op=op, layout=layout, name=name, lengths=lengths):
                        done = self.run_cli(*self.with_lengths(path, name, lengths), code=2)
                        self.assertIn(f"{name} has {lengths[0]} at [0], where {most} positions are", done.stderr)

    def test_of_ragged_sequences_are_those_of_the_parameters(self):
        path = self.kept("attention_fwd", "thd")
        done = self.run_cli(*self.with_lengths(path, "kv_lengths", (50, 50)), code=2)
        self.assertIn("where the parameters of these tensors make the sequence 65 long", done.stderr)

    def test_of_padding_are_mentioned(self):
        text = " ".join(self.run_cli("diagnose", "--tensors", self.kept("attention_fwd", "bshd"), code=0).stdout.split())
        self.assertIn("o and lse of queries beyond q_lengths are padding", text)

    def test_an_amax_of_outputs_that_is_right_does_not_say_which_keys_padding_weighs(self):
        # As cuDNN 9.14 left them: the largest weight is padding's over 256 keys, 0.8846. The largest output does not count it; that of
        # padding over 128 keys, 0.932, is near it.
        case = {
            "op": "attention_fwd", "mode": "fp8_hybrid", "seed": 3566068641, "inputs": {"distribution": "uniform", "low": -1, "high": 1},
            "params": {"sq": 288, "sk": 300, "d": 64, "scale": 1, "layout": "bhsd", "mask": "padding"},
        }
        self.run_cli("run", self.plan(case=case), "--device", "sim:sm_90", "--no-save", "--keep-tensors", "amax", code=0)
        kept = next((self.folder / "amax").iterdir())
        done = self.run_cli(*self.with_values(kept, {"s_amax": [0.8844877], "o_amax": [0.92]}), code=1)
        self.assertIn("queries that are padding count in the amax", done.stdout)


if __name__ == "__main__":
    unittest.main()
