"""diagnose: products of several sizes that somebody saved, each group's tensors under their own names."""

import json
import math
import struct
import unittest

from support import CliTest

SIZES = {"group_m": "24+0+40", "group_n": "32+8+16", "group_k": "48+16+33"}


class Groups(CliTest):
    def saved(self, **params):
        """The tensors of a run, as somebody else would have saved them: header and data, without what a run adds."""
        case = {"op": "grouped_gemm", "mode": "fp32", "params": {**SIZES, "trans_b": True, **params}}
        self.run_cli("run", self.plan(case=case), "--device", "sim:sm_90", "--no-save", "--keep-tensors", "kept", code=0)
        data = next((self.folder / "kept").iterdir()).read_bytes()
        size = struct.unpack("<Q", data[:8])[0]
        header = json.loads(data[8 : 8 + size])
        return {name: (tensor, data[8 + size + tensor["data_offsets"][0] : 8 + size + tensor["data_offsets"][1]])
                for name, tensor in header.items() if name != "__metadata__" and not name.startswith("expected_")}

    def diagnose(self, tensors, *options, code):
        header, data = {}, b""
        for name, (tensor, numbers) in tensors.items():
            header[name] = {**tensor, "data_offsets": [len(data), len(data) + len(numbers)]}
            data += numbers
        text = json.dumps(header).encode()
        path = self.folder / "saved.safetensors"
        path.write_bytes(struct.pack("<Q", len(text)) + text + data)
        return self.run_cli("diagnose", "grouped_gemm", "--tensors", path, "--effort", "quick", *options, code=code)

    def test_sizes_come_from_the_tensors_of_each_group(self):
        done = self.diagnose(self.saved(), code=0)
        text = " ".join(done.stdout.split())
        self.assertIn("d0 is correct", text)
        self.assertIn("d2 is correct", text)
        self.assertIn("group_m = 24+0+40", text)
        self.assertIn("trans_b = true", text)

    def test_a_group_that_does_not_fit_is_named(self):
        tensors = self.saved()
        b2 = tensors["b2"]
        tensors["b2"] = ({**b2[0], "shape": [33, 16]}, b2[1])
        self.assertIn("group 2: ", self.diagnose(tensors, "--param", "trans_b=true", code=2).stderr)

    def test_another_gelu_of_a_group_is_named(self):
        tensors = self.saved()
        for name in ("d0", "d2"):
            tensor, numbers = tensors[name]
            sums = struct.unpack(f"<{len(numbers) // 4}f", numbers)
            tensors[name] = (tensor, struct.pack(f"<{len(sums)}f", *[z / 2 * math.erfc(-z / math.sqrt(2)) for z in sums]))
        self.assertIn("erf", self.diagnose(tensors, "--param", "epilogue=gelu", code=1).stdout)


if __name__ == "__main__":
    unittest.main()
