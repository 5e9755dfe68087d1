"""te-numcheck run: which cases run and which files they leave: filters, shards, fail-fast, budget, tensors."""

import json
import math
import resource
import struct
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest

SIM = ["--device", "sim:sm_90"]
LONG_SWEEP = {"params": {"m": 8, "n": 8, "k": {"from": 2, "to": 1000, "step": 1}}}
SWEEP = {"params": {"m": 8, "n": 8, "k": {"from": 1, "to": 12, "step": 1}}}


class Selection(CliTest):
    def ids(self, plan, *arguments, code=0):
        done = self.run_cli("list", "cases", plan, "--json", *arguments, code=code)
        return [case["id"] for case in json.loads(done.stdout)]

    def test_by_name(self):
        plan = self.plan(case=SWEEP)
        self.assertEqual(len(self.ids(plan)), 12)
        self.assertEqual(self.ids(plan, "-k", "k=1/"), ["gemm/m=8,n=8,k=1/fp32/sim"])
        self.assertEqual(len(self.ids(plan, "-k", "k=1", "-k", "2/fp32")), 1, "all must match")
        self.assertEqual(len(self.ids(plan, "--exclude", "k=1")), 8)

    def test_expensive_expressions_take_bounded_time_and_stack(self):
        """Even with a stack of 64 kB: no signal and no long wait."""
        plan = self.plan(case=SWEEP)
        small_stack = lambda: resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))  # noqa: E731
        for limit in (None, small_stack):
            for expression, code, sentence in ((f"{'(' * 15820}{')' * 15820}", 2, "it has 31640 bytes"),
                                               (f"{'(' * 900}k{')' * 900}", 0, ""), ("(.+)+y", 4, ""), ("(a*)*$", 0, ""),
                                               ("((a?){1000}){1000}", 2, "too many states"), ("(.?){900}", 0, ""),
                                               ("(k)\\1", 2, "back-references"), ("(?=k)", 2, "look-ahead"),
                                               ("a|" * 900, 0, "")):
                with self.subTest(expression=expression[:30], small_stack=limit is not None):
                    done = subprocess.run([PROGRAM, "list", "cases", plan, "--filter", expression], cwd=self.folder,
                                          env=CLEAN, capture_output=True, timeout=30, preexec_fn=limit)
                    self.assertEqual(done.returncode, code, done.stderr)
                    self.assertIn(sentence, done.stderr.decode())

    def test_by_field(self):
        plan = self.plan(case={"mode": ["fp32", "bf16", "fp16"], "tags": ["smoke"]})
        self.assertEqual(len(self.ids(plan, "--mode", "bf16,fp16")), 2)
        self.assertEqual(len(self.ids(plan, "--mode", "bf16", "--mode", "fp16")), 2)
        self.assertEqual(self.ids(plan, "--backend", "cuda", code=4), [])
        self.assertEqual(len(self.ids(plan, "--tag", "smoke")), 3)
        either = self.plan(case={"backend": ["auto", "sim"]})
        self.assertEqual(self.ids(either, "--backend", "auto"), ["gemm/m=16,n=16,k=32/fp32/auto"])

    def test_one_case_by_identifier_and_digest(self):
        plan = self.plan(case=SWEEP)
        listed = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)
        wanted = listed[5]
        self.assertEqual(self.ids(plan, "--case", wanted["id"]), [wanted["id"]])
        self.assertEqual(self.ids(plan, "--case", wanted["digest"]), [wanted["id"]])

    def test_failed_in_a_report(self):
        plan = self.plan(case={"mode": ["fp32", "bf16"]})
        self.run_cli("run", plan, *SIM, "--out", "out", "--inject", "tf32_silently", code=1)
        failed = [case["id"] for case in self.report()["cases"] if case["status"] == "fail"]
        self.assertEqual(failed, ["gemm/m=16,n=16,k=32/fp32/sim"])
        self.assertEqual(self.ids(plan, "--failed-in", "out/report.json"), failed)
        other = self.plan("other.json", case={"mode": "bf16"})
        done = self.run_cli("run", other, *SIM, "--failed-in", "out/report.json", "--no-save", code=4)
        self.assertIn("note: --failed-in: 1 of 1 failed case of out/report.json is not in the plan, or not selected\n",
                      done.stderr)
        done = self.run_cli("run", plan, *SIM, "--failed-in", "out/report.json", "--no-save", code=0)
        self.assertNotIn("note: ", done.stderr)
        report = self.report()
        report["interrupted"] = True
        (self.folder / "cut.json").write_text(json.dumps(report))
        done = self.run_cli("run", plan, *SIM, "--failed-in", "cut.json", "--no-save", code=0)
        self.assertIn("note: --failed-in: the run of cut.json was interrupted; ", done.stderr)
        self.assertIn("not a report", self.run_cli("run", plan, "--failed-in", plan, code=2).stderr)
        self.assertIn("nothere", self.run_cli("run", plan, "--failed-in", "nothere.json", code=2).stderr)

    def test_a_sample_is_the_same_everywhere(self):
        plan = self.plan(case=SWEEP)
        sample = self.ids(plan, "--sample", "5")
        self.assertEqual(len(sample), 5)
        self.assertEqual(sample, self.ids(plan, "--sample", "5"))
        self.assertLess(set(self.ids(plan, "--sample", "3")), set(sample))

    def test_shards_are_a_partition(self):
        plan = self.plan(case=SWEEP)
        parts = [self.ids(plan, "--shard", f"{i}/3", code=None) for i in (1, 2, 3)]
        self.assertEqual(sorted(sum(parts, [])), sorted(self.ids(plan)))
        self.assertEqual(sum(map(len, parts)), 12)

    def test_shard_from_the_scheduler_only_when_asked(self):
        plan = self.plan(case=SWEEP)
        env = {"GTEST_SHARD_INDEX": "1", "GTEST_TOTAL_SHARDS": "3"}
        done = self.run_cli("list", "cases", plan, "--json", "--shard", "auto", env=env)
        self.assertEqual([c["id"] for c in json.loads(done.stdout)], self.ids(plan, "--shard", "2/3", code=None))
        self.assertEqual(len(json.loads(self.run_cli("list", "cases", plan, "--json", env=env, code=0).stdout)), 12)
        self.assertIn("no scheduler's variables", self.run_cli("run", plan, "--shard", "auto", code=2).stderr)
        for text in ["0/3", "4/3", "3", "a/b", "1/0", ""]:
            if text:
                self.assertIn("--shard", self.run_cli("run", plan, "--shard", text, code=2).stderr)

    def test_the_report_names_the_shard(self):
        self.run_cli("run", self.plan(case=SWEEP), *SIM, "--shard", "1/2", "--out", "out", code=0)
        shard = self.report()["plan"]["shard"]
        self.assertEqual((shard["index"], shard["count"], len(shard["places"])), (0, 2, len(self.report()["cases"])))

    def test_fail_fast(self):
        plan = self.plan(case=LONG_SWEEP)
        self.run_cli("run", plan, *SIM, "--inject", "missing_k_tail", "-x", "--out", "out", code=1)
        summary = self.report()["summary"]
        self.assertGreaterEqual(summary["fail"], 1)
        self.assertGreater(summary["skipped"], 0)
        self.assertEqual(summary["cases"], 999)


class Budget(CliTest):
    def test_cases_beyond_the_budget_are_skipped(self):
        plan = self.plan(case={"params": {"m": 8, "n": 8, "k": {"from": 2, "to": 30000, "step": 1}}})
        self.run_cli("run", plan, *SIM, "--budget", "1s", "--out", "out", code=0)
        report = self.report()
        self.assertFalse(report["interrupted"])
        self.assertGreater(report["summary"]["pass"], 0)
        self.assertGreater(report["summary"]["skipped"], 0)
        self.assertEqual(report["cases"][-1]["reason"], "not started: the budget of 1 s was used up")

    def test_cases_of_a_used_up_budget_run_when_the_run_is_resumed(self):
        plan = self.plan(case=LONG_SWEEP)
        self.run_cli("run", plan, *SIM, "--budget", "300ms", "--out", "out")
        self.run_cli("run", plan, *SIM, "--resume", "out", code=0)
        self.assertEqual(self.report()["summary"]["pass"], 999)

    def test_a_budget_is_a_time(self):
        self.assertIn("--budget", self.run_cli("run", self.plan(), *SIM, "--budget", "much", code=2).stderr)


def read_safetensors(path):
    """Metadata and tensors (format, shape, bytes), read as the format's description says."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    texts = header.pop("__metadata__")
    return texts, {name: (t["dtype"], t["shape"], data[8 + length:][slice(*t["data_offsets"])]) for name, t in header.items()}


class KeptTensors(CliTest):
    def test_a_file_has_inputs_outputs_and_expected_values(self):
        plan = self.plan(case={"params": {"m": 2, "n": 3, "k": 4, "pad_a": 5}})
        self.run_cli("run", plan, *SIM, "--keep-tensors", "kept/tensors", "--json", "report.json", code=0)
        case = self.report("report.json")["cases"][0]
        (path,) = (self.folder / "kept" / "tensors").iterdir()
        self.assertEqual(path.name, f"{case['digest'][:16]}-0.safetensors")
        texts, tensors = read_safetensors(path)
        self.assertEqual((texts["case"], texts["status"]), (case["id"], "pass"))
        self.assertEqual({name: t[:2] for name, t in tensors.items()},
                         {"a": ("F32", [2, 4]), "b": ("F32", [4, 3]), "d": ("F32", [2, 3]), "expected_d": ("F64", [2, 3])})
        a, b, d = (struct.unpack(f"<{len(tensors[name][2]) // 4}f", tensors[name][2]) for name in "abd")
        expected = struct.unpack("<6d", tensors["expected_d"][2])
        for i in range(2):
            for j in range(3):
                product = sum(a[4 * i + k] * b[3 * k + j] for k in range(4))
                self.assertAlmostEqual(expected[3 * i + j], product, delta=1e-12)
                self.assertAlmostEqual(d[3 * i + j], product, delta=1e-5)

    def test_scales_of_inputs_are_called_what_they_are(self):
        params = {"m": 16, "n": 16, "k": 32, "trans_b": True}
        for device, scaling, words in (
                ("sim:sm_90", "1x128_128x128", "b holds codes and b_scale_inv one number s for every 128 x 128 of them: value = code * s"),
                ("sim:sm_100", "mxfp8", "b holds codes and b_scale_inv one E8M0 byte e for every 1 x 32 of them: value = code * 2^(e - 127)")):
            with self.subTest(scaling):
                plan = self.plan(case={"op": "gemm", "mode": "fp8_e4m3", "params": {**params, "scaling": scaling}})
                self.run_cli("run", plan, "--device", device, "--keep-tensors", scaling, "--no-save", code=0)
                (path,) = (self.folder / scaling).iterdir()
                self.assertTrue(read_safetensors(path)[0]["scales"].endswith("; " + words), read_safetensors(path)[0]["scales"])

    def test_codes_with_scales_of_their_blocks(self):
        params = {"kind": "relu", "rows": 3, "hidden": 40, "output": "mxfp8_e4m3"}
        plan = self.plan(case={"op": "activation_fwd", "mode": "fp32", "params": params})
        self.run_cli("run", plan, *SIM, "--keep-tensors", "kept", "--no-save", code=0)
        (path,) = (self.folder / "kept").iterdir()
        texts, tensors = read_safetensors(path)
        self.assertEqual(texts["scales"], "y holds codes and y_scale_inv one E8M0 byte e for every 1 x 32 of them: "
                                          "value = code * 2^(e - 127), as in expected_y")
        codes, scales = tensors["y"][2], tensors["y_scale_inv"][2]
        expected = struct.unpack("<120d", tensors["expected_y"][2])
        for i, code in enumerate(codes):
            exponent, fraction = code >> 3 & 15, code & 7
            value = (8 + fraction) * 2.0 ** (exponent - 10) if exponent else fraction * 2.0 ** -9
            scale = 2.0 ** (scales[i // 40 * 2 + i % 40 // 32] - 127)
            self.assertEqual(value * scale * (-1 if code & 128 else 1), expected[i])

    def test_what_was_expected_follows_from_what_earlier_passes_left(self):
        params = {"sq": 3, "sk": 2, "d": 1, "scale": 1, "dropout": 0.5, "dropout_mask": "drawn", "statistics": "device"}
        plan = self.plan(case={"op": "attention_bwd", "mode": "fp32", "params": params})
        self.run_cli("run", plan, *SIM, "--keep-tensors", "kept", "--no-save")
        (path,) = (self.folder / "kept").iterdir()
        _, tensors = read_safetensors(path)
        self.assertEqual({name for name in tensors if name.startswith("expected_")},
                         {f"expected_{name}" for name in ("dropout_mask", "o", "lse", "dq", "dk", "dv")})
        q, k, do, mask = (struct.unpack(f"<{len(tensors[name][2]) // 4}f", tensors[name][2])
                          for name in ("q", "k", "do", "dropout_mask"))
        expected = struct.unpack("<2d", tensors["expected_dv"][2])
        weights = [[math.exp(q[i] * k[j]) for j in range(2)] for i in range(3)]
        for j in range(2):
            dv = sum(weights[i][j] / sum(weights[i]) * 2 * mask[2 * i + j] * do[i] for i in range(3))
            self.assertAlmostEqual(expected[j], dv, delta=1e-6)

    def test_a_file_for_every_run_of_every_case_that_ran(self):
        plan = self.plan(case={"mode": ["bf16", "fp8_e4m3"], "algorithms": "all"})
        self.run_cli("run", plan, *SIM, "--keep-tensors", "kept", "--out", "out", code=0)
        runs = sum(len(case["runs"]) for case in self.report()["cases"])
        self.assertGreater(runs, 2)
        self.assertEqual(len(list((self.folder / "kept").iterdir())), runs)
        self.run_cli("run", self.plan(case={"backend": "cublaslt"}), *SIM, "--keep-tensors", "none", "--no-save", code=4)
        self.assertEqual(list((self.folder / "none").iterdir()), [])

    def test_a_folder_that_cannot_be_created(self):
        plan = self.plan()
        self.assertRegex(self.run_cli("run", plan, *SIM, "--keep-tensors", plan, code=2).stderr,
                         f"--keep-tensors {plan}: .*{plan} is not a folder")


if __name__ == "__main__":
    unittest.main()
