"""te-numcheck diagnose on the tensors that a run kept: answers that depend on nothing but these."""

import json
import math
import os
import struct
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ("--device", "sim:sm_90")


def in_fp16(number):
    return struct.unpack("<e", struct.pack("<e", number))[0]


class DiagnoseKept(CliTest):
    def kept(self, fault, case):
        """The file of a run's tensors with that fault."""
        plan = self.plan(cases=[{"backend": "sim", "seed": 1, **case}])
        self.run_cli("run", plan, *SIM, "--no-save", "--inject", fault, "--keep-tensors", "kept", code=1)
        return next((self.folder / "kept").iterdir())

    def test_the_number_of_threads_changes_nothing(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor")
        file = self.kept("softmax_scale_1_01", {"op": "softmax_fwd", "mode": "bf16", "params": {"sq": 16, "sk": 48, "scale": 0.13}})
        one = {min(os.sched_getaffinity(0))}
        answers = [subprocess.run([PROGRAM, "diagnose", "--tensors", file, *SIM, "--json", "-"], cwd=self.folder, env=CLEAN,
                                  capture_output=True, text=True, check=False, preexec_fn=pinned).stdout
                   for pinned in (None, lambda: os.sched_setaffinity(0, one))]
        self.assertIn('"causes"', answers[0])
        self.assertEqual(*answers)

    def test_why_elements_are_nan_says_more_than_that_they_are(self):
        def tensors(name, **params):
            case = {"op": "gemm", "mode": "fp16", "params": {"m": 48, "n": 40, "k": 64, **params}, "inputs": {"distribution": "normal", "sigma": 128}}
            self.run_cli("run", self.plan(case=case), *SIM, "--no-save", "--keep-tensors", name)
            path = next((self.folder / name).iterdir())
            data = path.read_bytes()
            size = struct.unpack("<Q", data[:8])[0]
            begin, end = json.loads(data[8 : 8 + size])["d"]["data_offsets"]
            return path, data, 8 + size + begin, 8 + size + end

        _, data, begin, end = tensors("sums", output="fp32")
        sums = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
        path, data, begin, end = tensors("gelu", epilogue="gelu")
        stored = struct.unpack(f"<{(end - begin) // 2}H", data[begin:end])
        stored = [0x7FFF if z < -65520 else bits for z, bits in zip(sums, stored)]
        self.assertGreater(stored.count(0x7FFF), 100)
        path.write_bytes(data[:begin] + struct.pack(f"<{len(stored)}H", *stored) + data[end:])
        done = self.run_cli("diagnose", "--tensors", path, "--effort", "quick", code=1)
        self.assertIn("sums below the smallest fp16 number become NaN in gelu", done.stdout)

    def test_a_share_is_said_though_no_bits_are_equal(self):
        file = self.kept("tf32_silently", {"op": "gemm", "mode": "fp32", "params": {"m": 8, "n": 4, "k": 4096}})
        done = self.run_cli("diagnose", "--tensors", file, *SIM, code=1)
        self.assertRegex(done.stdout, r"every gate passes then; it explains 99\.\d* %")

    def kept_of_plan(self, case):
        """The files of its runs, by their numbers."""
        self.run_cli("run", self.plan(cases=[case]), *SIM, "--no-save", "--keep-tensors", "kept", code=0)
        return sorted((self.folder / "kept").iterdir(), key=lambda file: int(file.stem.rsplit("-", 1)[1]))

    def test_what_a_library_declares_is_known(self):
        inputs = {"distribution": "normal", "a": {"distribution": "large_mean", "mean": 0.285872220993042, "sigma": 0.0714680552482605},
                  "b": {"distribution": "constant", "value": 3.018308639526367},
                  "c": {"distribution": "constant", "value": 27.81749424179393}}
        params = {"m": 40, "n": 12, "k": 878, "trans_a": True, "alpha": 0.1, "beta": 1, "epilogue": "relu"}
        files = self.kept_of_plan({"op": "gemm", "mode": "bf16", "backend": "sim", "params": params, "inputs": inputs,
                                   "seed": 912436435, "algorithms": "all"})
        answers = [self.run_cli("diagnose", "--tensors", file, *SIM, code=0).stdout for file in files]
        declared = [answer for answer in answers if "as the library declares" in answer]
        self.assertTrue(declared)
        for answer in declared:
            self.assertIn("d is correct", answer)
            self.assertIn("allow_bf16_reduced_precision_reduction", answer)
            self.assertNotIn("the run that left these tensors failed", answer)

    def test_what_ran_and_was_drawn_is_known(self):
        params = {"m": 2, "n": 1, "k": 64, "beta": 1, "epilogue": "relu"}
        file, *_ = self.kept_of_plan({"op": "gemm", "mode": "fp32_fast16bf", "backend": "sim", "params": params,
                                      "inputs": {"distribution": "positive"}})
        self.run_cli("diagnose", "--tensors", file, *SIM, code=0)
        self.assertIn("undecided", self.run_cli("diagnose", "--tensors", self.with_ran(file, None), *SIM, code=4).stdout)

    def test_groups_that_are_not_given_are_named_unless_they_are_empty(self):
        (file,) = self.kept_of_plan({"op": "grouped_gemm", "mode": "fp32", "backend": "sim",
                                     "params": {"group_m": "8+16+0", "group_n": 8, "group_k": "8"}})

        def drop(*names):  # their bytes stay, under names that no port has
            return self.changed(file, lambda header: header.update({f"other_{name}": header.pop(name) for name in names}))

        self.assertNotIn("not judged", self.run_cli("diagnose", "--tensors", drop("a2", "d2"), *SIM, code=0).stdout)
        done = self.run_cli("diagnose", "--tensors", drop("d1"), *SIM, code=0)
        self.assertIn("not given, and not judged: d1\n", done.stdout)
        self.assertIn("a1", self.run_cli("diagnose", "--tensors", drop("a1"), *SIM, code=2).stderr)

    def test_parameters_are_in_their_ranges(self):
        (file,) = self.kept_of_plan({"op": "grouped_gemm", "mode": "fp32", "backend": "sim", "params": {"group_m": "8+16"}})
        for groups in ("65", "-1"):
            done = self.run_cli("diagnose", "grouped_gemm", "--tensors", file, *SIM, "--param", f"groups={groups}", code=2)
            self.assertIn(f"--param groups: {groups} must be between 0 and 64", done.stderr)

    def with_ran(self, file, text):
        """A copy of the file that says that of its run; None: nothing."""

        def say(header):
            header["__metadata__"].pop("ran")
            if text is not None:
                header["__metadata__"]["ran"] = text

        return self.changed(file, say)

    def changed(self, file, change):
        """A copy of the file with another header."""
        whole = file.read_bytes()
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8 : 8 + size])
        change(header)
        packed = json.dumps(header).encode()
        changed = self.folder / "changed.safetensors"
        changed.write_bytes(len(packed).to_bytes(8, "little") + packed + whole[8 + size :])
        return changed

    def test_what_says_nothing_of_a_run_is_refused(self):
        file, *_ = self.kept_of_plan({"op": "gemm", "mode": "bf16", "backend": "sim", "seed": 1, "params": {"m": 4, "n": 4, "k": 32}})
        rounding = {"slices": 0, "in_place": False, "bias": False, "gelu": False, "attention": {}}
        for text in ("", "{", "[]", "{}", "null", '{"rounding": 1}', json.dumps({"rounding": rounding})):
            with self.subTest(text=text):
                done = self.run_cli("diagnose", "--tensors", self.with_ran(file, text), *SIM, code=2)
                self.assertIn('the file\'s text "ran" is not', done.stderr)

    def test_each_file_says_what_its_own_run_declares(self):
        case = {"op": "gemm", "mode": "bf16", "backend": "sim", "params": {"m": 96, "n": 128, "k": 2048}, "seed": 9,
                "algorithms": "all"}
        unsplit, *_, sliced = self.kept_of_plan(case)
        stripped = self.with_ran(sliced, None)
        self.run_cli("diagnose", "--tensors", unsplit, "--against", sliced, *SIM, code=0)
        for arguments in (("--tensors", sliced, "--against", stripped), ("--tensors", unsplit, "--against", stripped),
                          ("--tensors", stripped)):
            done = self.run_cli("diagnose", *arguments, *SIM, code=1)
            self.assertIn("k was split into", done.stdout)
            self.assertNotIn("perhaps: k was split", done.stdout)
            self.assertRegex(done.stdout, r"computed again so, (\d+) of \1\s+elements have the same bits")

    def test_slices_of_eight_products_are_found(self):
        for params in ({}, {"epilogue": "gelu"}):
            with self.subTest(params=params):
                m, n, k = 32, 34, 29
                case = {"op": "gemm", "mode": "fp16", "backend": "sim", "seed": 3, "params": {"m": m, "n": n, "k": k, **params}}
                stripped = self.with_ran(self.kept_of_plan(case)[0], None)
                whole = bytearray(stripped.read_bytes())
                start = 8 + int.from_bytes(whole[:8], "little")
                header = json.loads(whole[8:start])
                places = {port: [start + at for at in header[port]["data_offsets"]] for port in "abd"}
                a, b = (struct.unpack(f"<{(end - begin) // 2}e", whole[begin:end])
                        for begin, end in (places["a"], places["b"]))
                numbers = []
                for row in range(m):
                    for column in range(n):
                        slices = [sum(a[row * k + i] * b[i * n + column] for i in range(first, min(first + 8, k)))
                                  for first in range(0, k, 8)]
                        number = in_fp16(sum(map(in_fp16, slices)))
                        inner = math.sqrt(2 / math.pi) * (number + 0.044715 * number**3)
                        numbers.append(number / 2 * (1 + math.tanh(inner)) if params else number)
                whole[slice(*places["d"])] = struct.pack(f"<{m * n}e", *numbers)
                stripped.write_bytes(whole)
                done = self.run_cli("diagnose", "--tensors", stripped, *SIM, code=1)
                self.assertIn("cause     k was split into 4 slices, and their sums were rounded to fp16", done.stdout)
                self.assertRegex(done.stdout, r"computed again so, \d+ of 1088\s+elements have the same bits")
                number = max(numbers)
                numbers[numbers.index(number)] = 1.02 * number
                whole[slice(*places["d"])] = struct.pack(f"<{m * n}e", *numbers)
                stripped.write_bytes(whole)
                done = self.run_cli("diagnose", "--tensors", stripped, *SIM, code=1)
                self.assertNotIn("cause     k was split", done.stdout, "no slices make one number 2 % larger")

    def test_an_exact_leg_is_one_of_small_integers(self):
        case = {"op": "gemm", "mode": "bf16", "backend": "sim", "params": {"m": 96, "n": 128, "k": 1024}, "seed": 9}
        normal = next(iter(self.kept_of_plan(case)))
        exact = next(iter(sorted(set(self.kept_of_plan({**case, "inputs": {"distribution": "exact"}})) - {normal})))
        self.run_cli("diagnose", "--tensors", exact, "--against", normal, *SIM, code=0)
        whole, other = normal.read_bytes(), exact.read_bytes()
        header, texts = (json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")]) for file in (whole, other))
        packed = json.dumps({**header, "__metadata__": texts["__metadata__"]}).encode()
        (self.folder / "mixed.safetensors").write_bytes(
            len(packed).to_bytes(8, "little") + packed + whole[8 + int.from_bytes(whole[:8], "little") :])
        self.run_cli("diagnose", "--tensors", "mixed.safetensors", *SIM, code=0)

    def test_a_run_that_failed_otherwise_is_mentioned(self):
        file = self.kept("race", {"op": "gemm", "mode": "bf16", "params": {"m": 64, "n": 64, "k": 64}})
        for quiet in ((), ("-q",)):
            self.assertIn("repeated runs give different bits", self.run_cli("diagnose", "--tensors", file, *SIM, *quiet, code=0).stdout)

    def test_slices_that_overflow_come_first(self):
        case = {"op": "gemm", "mode": "fp16", "backend": "sim", "params": {"m": 64, "n": 96, "k": 1024}, "seed": 7,
                "algorithms": "all", "inputs": {"distribution": "normal", "sigma": 1000}}
        plan = self.plan(cases=[case])
        self.run_cli("run", plan, *SIM, "--no-save", "--keep-tensors", "kept", code=1)
        files = sorted((self.folder / "kept").iterdir(), key=lambda file: int(file.stem.rsplit("-", 1)[1]))
        for file in files[3:]:
            done = self.run_cli("diagnose", "--tensors", file, *SIM, code=1)
            self.assertIn("cause     sums of slices of k overflow in fp16", done.stdout)

    def test_elements_that_no_draw_leaves_are_named(self):
        params = {"batches": 1, "heads": 2, "sq": 40, "sk": 60, "d": 32, "dropout": 0.2, "dropout_mask": "drawn"}
        file = self.kept("nan_written", {"op": "attention_dropout", "mode": "bf16", "params": params})
        done = self.run_cli("diagnose", "--tensors", file, *SIM, code=1)
        self.assertIn("1 of 4800 elements wrong", done.stdout)
        self.assertIn("every gate passes then\n", done.stdout)

    def test_a_draw_without_its_mask_is_refused(self):
        case = {"backend": "sim", "seed": 1, "op": "dropout_fwd", "mode": "fp32", "params": {"elements": 4096, "p": 0.25}}
        self.run_cli("run", self.plan(cases=[case]), *SIM, "--no-save", "--keep-tensors", "kept", code=0)
        kept = next((self.folder / "kept").iterdir()).read_bytes()
        size = int.from_bytes(kept[:8], "little")
        told = ["--param", "p=0.25", "--param", "elements=4096", "--mode", "fp32"]
        for port, other in (("y", "mask"), ("mask", "y")):
            with self.subTest(given=port):
                header = kept[8 : 8 + size].replace(f'"{other}":'.encode(), b'"unused":')
                (self.folder / "t.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + kept[8 + size :])
                done = self.run_cli("diagnose", "dropout_fwd", "--tensors", "t.safetensors", *told, *SIM, code=2)
                self.assertIn(f"{port} is judged together with {other}, because both are drawn: give {other} as well", done.stderr)


if __name__ == "__main__":
    unittest.main()
