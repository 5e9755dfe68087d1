"""diagnose: kept tensors of padded attention whose lengths somebody has changed are refused; padding is not judged, which is
said."""

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

    def with_lengths(self, path, name, lengths):
        data = bytearray(path.read_bytes())
        size = struct.unpack("<Q", data[:8])[0]
        begin, end = json.loads(data[8 : 8 + size])[name]["data_offsets"]
        data[8 + size + begin : 8 + size + end] = struct.pack(f"<{len(lengths)}i", *lengths)
        changed = self.folder / "changed.safetensors"
        changed.write_bytes(data)
        return ["diagnose", "--tensors", changed, "--effort", "quick"]

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


if __name__ == "__main__":
    unittest.main()
