"""list, validate, explain, doctor, schema, completion and exec."""

import json
import os
import shutil
import subprocess
import unittest

from support import CLEAN, PROGRAM, SOURCE, CliTest, has_nvidia_driver

TOPICS = ["ops", "modes", "backends", "devices", "distributions", "faults", "causes", "variables"]


class Lists(CliTest):
    def test_text_and_json_agree(self):
        for topic in TOPICS:
            with self.subTest(topic):
                entries = json.loads(self.run_cli("list", topic, "--json", code=0).stdout)
                lines = self.run_cli("list", topic, code=0).stdout.splitlines()
                self.assertEqual([line.split()[0] for line in lines[1:]], [entry["name"] for entry in entries])
                self.assertTrue(all(entry["name"] for entry in entries))

    def test_contents(self):
        names = {topic: [e["name"] for e in json.loads(self.run_cli("list", topic, "--json", code=0).stdout)] for topic in TOPICS}
        self.assertEqual(names["ops"][0], "gemm")
        self.assertIn("rmsnorm_fwd", names["ops"])
        self.assertEqual(set(names["backends"]), {"auto", "cublas", "cublaslt", "cuda", "cudnn", "sim", "transformer_engine",
                                                   "unfused"})
        self.assertIn("fp8_hybrid", names["modes"])
        self.assertIn("normal", names["distributions"])
        self.assertIn("missing_k_tail", names["faults"])
        self.assertIn("NVIDIA_TF32_OVERRIDE", names["variables"])
        self.assertIn("sim:sm_90", names["devices"])

    def test_every_listed_fault_can_be_named(self):
        for fault in json.loads(self.run_cli("list", "faults", "--json", code=0).stdout):
            name = fault["name"] + ("=0.1" if fault["name"].startswith("perturb_") else "")
            done = self.run_cli("run", self.plan(), "--device", "sim:sm_90", "--no-save", "--inject", name)
            self.assertIn(done.returncode, (3,) if fault["name"] == "late_refusal" else (0, 1, 4), fault["name"] + done.stdout + done.stderr)

    def test_cases(self):
        plan = self.plan(case={"mode": ["fp32", "bf16"]})
        done = self.run_cli("list", "cases", plan, code=0)
        self.assertEqual(len(done.stdout.splitlines()), 3)
        self.assertEqual(done.stderr, "2 cases\n")
        done = self.run_cli("list", "cases", plan, "--mode", "bf16", code=0)
        self.assertEqual(done.stderr, "1 of 2 cases\n")

    def test_every_op_has_the_backend_auto_unless_told_otherwise(self):
        def one(value):
            return one(value[0]) if isinstance(value, list) else value

        first = {}
        for path in sorted((SOURCE / "configs" / "plans").rglob("*.json")):
            plan = json.loads(path.read_text())
            for case in plan.get("cases", []):
                merged = {**plan.get("defaults", {}), **case}
                params = {name: one(value) for name, value in one(merged.get("params", {})).items()}
                for op in merged["op"] if isinstance(merged["op"], list) else [merged["op"]]:
                    first.setdefault(op, {"op": op, "mode": one(merged["mode"]), "params": params})
        ops = {op["name"] for op in json.loads(self.run_cli("list", "ops", "--json", code=0).stdout)}
        self.assertEqual(set(first), ops)
        (self.folder / "ops.json").write_text(json.dumps({"version": 1, "name": "ops", "cases": list(first.values())}))
        cases = json.loads(self.run_cli("list", "cases", "ops.json", "--json", code=0).stdout)
        self.assertEqual({case["id"].split("/")[0] for case in cases}, ops)
        self.assertEqual({case["id"].split("/")[3] for case in cases}, {"auto"})


class Validate(CliTest):
    def test_counts(self):
        done = self.run_cli("validate", self.plan(case={"mode": ["fp32", "bf16"]}), code=0)
        self.assertIn("plan: 2 cases in one group;", done.stdout)

    def test_every_shipped_plan(self):
        plans = sorted((SOURCE / "configs" / "plans").rglob("*.json"))
        self.assertGreater(len(plans), 0)
        for plan in plans:
            self.run_cli("validate", plan, code=0)


    def test_layouts_belong_to_mxfp8_outputs_only(self):
        case = {"op": "activation_fwd", "mode": "bf16", "params": {"rows": 4, "hidden": 4, "layout": "both"}}
        done = self.run_cli("validate", self.plan(cases=[case]), code=2)
        self.assertIn("layout applies to the outputs mxfp8_e4m3 and mxfp8_e5m2 only, not to default", done.stderr)
        case["params"]["output"] = "mxfp8_e4m3"
        self.run_cli("validate", self.plan(cases=[case]), code=0)


class Explain(CliTest):
    def test_op(self):
        text = self.run_cli("explain", "gemm", code=0).stdout
        for part in ["D = f(alpha * op(A) * op(B) + beta * C + bias)", "a_scale_inv", "d_amax", "accumulate", "fp8_hybrid",
                     "log_uniform", "G2 rms", "reference:"]:
            self.assertIn(part, text)
        self.assertRegex(text, r"\nbias +input +bias = true")
        self.assertRegex(text, r"\nd_scale +scale +output = fp8_e4m3")
        text = self.run_cli("explain", "activation_fwd", code=0).stdout
        self.assertRegex(text, r"\ny_columnwise_scale_inv +output +output = mxfp8_e4m3, layout = columnwise")

    def test_case(self):
        plan = self.plan(case={"mode": "tf32", "environment": {"NVIDIA_TF32_OVERRIDE": "0"}})
        case = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)[0]
        text = self.run_cli("explain", case["digest"], plan, code=0).stdout
        self.assertIn(case["id"], text)
        self.assertIn("expected class: FP32", text, "TF32 is switched off by the case's environment")
        self.assertIn("16 x 32", text)
        self.run_cli("explain", case["id"], plan, code=0)

    def attention(self, identifier, *options, code=0):
        """What `explain` says about a case of the scenario, from the gates on."""
        plan = SOURCE / "configs/plans/scenarios/attention_refused.json"
        done = self.run_cli("explain", identifier, plan, *options, code=code)
        return done.stdout[done.stdout.find("who takes it"):] if code == 0 else done.stderr

    def test_attention_says_why_not(self):
        case = "attention_fwd/b=2,h=8,sq=256,sk=256,d=64/fp32/transformer_engine"
        self.expect_golden("explain-attention-fp32.txt", self.attention(case, "--device", "sim:sm_80"))
        wide = "attention_bwd/b=2,h=8,sq=128,sk=128,d=256,mask=causal/bf16/transformer_engine"
        self.expect_golden("explain-attention-wide.txt", self.attention(wide, "--device", "sim:sm_80"))

    def test_attention_says_where_the_pytorch_layer_ends_in_an_error(self):
        case = {"op": "attention_fwd", "mode": "bf16",
                "params": {"sq": 64, "sk": 64, "d": 60, "layout": "thd", "mask": "padding", "align": 16, "softcap": 30}}
        (named,) = json.loads(self.run_cli("list", "cases", self.plan(case=case), "--json", code=0).stdout)
        text = self.run_cli("explain", named["id"], self.plan(case=case), "--device", "sim:sm_80", code=0).stdout
        self.assertIn("UnfusedDotProductAttention refused (ragged sequences may have no padding between them): the layer ends",
                      text)
        self.assertNotIn("Attention taken", text)

    def test_attention_says_who_takes_a_softcap(self):
        text = self.run_cli("explain", "attention_fwd/sq=64,sk=64,d=64,cap=30/bf16/transformer_engine", "--device", "sim:sm_90",
                            "--cudnn", "9.14.0", code=0).stdout
        self.assertRegex(text, "(?s)FusedAttention refused.*FlashAttention taken")

    def test_attention_says_who_refuses_what_no_device_computes(self):
        text = self.run_cli("explain", "attention_fwd/sq=256,sk=256,d=64/fp8_e4m3/transformer_engine", "--device", "sim:sm_80",
                            "--cudnn", "9.14.0", code=0).stdout
        self.assertIn("no matrix instruction", text)
        self.assertIn("who takes it", text)

    def test_explain_knows_who_draws_masks(self):
        case = {"op": "attention_fwd", "mode": "bf16", "backend": "sim",
                "params": {"sq": 64, "sk": 64, "d": 64, "dropout": 0.1, "dropout_mask": "drawn", "bias": "alibi"}}
        plan = self.plan(case=case)
        listed = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)
        text = self.run_cli("explain", listed[0]["id"], plan, "--device", "sim:sm_90", code=0).stdout
        self.assertRegex(text, r"unfused +no +it draws no dropout mask")
        self.assertRegex(text, r"cudnn +no +with alibi, the mask that it draws cannot be read back")
        self.assertRegex(text, r"transformer_engine +no +with alibi")

    def test_attention_depends_on_device_and_version(self):
        wide = "attention_bwd/b=2,h=8,sq=128,sk=128,d=256,mask=causal/bf16/transformer_engine"
        self.assertRegex(self.attention(wide, "--device", "sim:sm_90"), r"\ntransformer_engine +yes")
        text = self.attention(wide, "--device", "sim:sm_90", "--cudnn", "9.10.1")
        self.assertIn("with cuDNN 9.10.1 and", text)
        self.assertRegex(text, r"\ntransformer_engine +no +cuDNN 9.10.0 and 9.10.1 are known to be wrong")
        self.assertIn("not a version", self.attention(wide, "--device", "sim:sm_90", "--cudnn", "9", code=2))

    def test_a_case_that_its_identifier_describes_needs_no_plan(self):
        name = "attention_fwd/b=2,h=8,sq=256,sk=256,d=64,s=0.25,max=1,mask=causal/fp32/transformer_engine"
        plan = self.plan(case={"op": "attention_fwd", "mode": "fp32", "backend": "transformer_engine",
                               "params": {"batches": 2, "heads": 8, "sq": 256, "sk": 256, "d": 64, "scale": 0.25, "max_logit": True,
                                          "mask": "causal"}}, seed=0)
        listed = json.loads(self.run_cli("list", "cases", plan, "--json", code=0).stdout)[0]["id"]
        arguments = ["--device", "sim:sm_80", "--cudnn", "9.14.0"]
        whole = self.run_cli("explain", listed, plan, *arguments, code=0).stdout
        self.assertEqual(self.run_cli("explain", listed, *arguments, code=0).stdout, whole)
        self.assertEqual(self.run_cli("explain", name, *arguments, code=0).stdout, whole, "in any order")
        self.assertIn("UnfusedDotProductAttention taken: 2 TF32-capable products", whole)
        self.assertIn("softmax_fwd: ", self.run_cli("explain", "softmax_fwd/sq=8,sk=8/bf16/sim", code=0).stdout)

    def test_a_case_may_leave_out_its_backend(self):
        case = "attention_fwd/sq=8,sk=8,d=64/fp32"
        told = self.run_cli("explain", case, code=0).stdout
        self.assertEqual(told, self.run_cli("explain", f"{case}/auto", code=0).stdout)
        self.assertIn("UnfusedDotProductAttention taken", told)

    def test_a_case_needs_its_plan_if_its_identifier_says_more(self):
        for name, words in [("gemm/m=1,n=1,k=1/fp32/sim/uniform", "says more than op, parameters, mode and backend, so it needs its plan"),
                            ("gemm/m=1", "is not a whole identifier: op/parameters/mode/backend"),
                            ("rope_fwd/s=1", "such as rope_fwd/"),
                            ("gem/m=1,n=1,k=1/fp32/sim", 'unknown op "gem" (did you mean gemm?)'),
                            ("gemm/m=1,n=1,kk=1/fp32/sim", 'unknown parameter of gemm "kk"'),
                            ("gemm/m=1,n=1/fp32/sim", 'gemm needs "k"'), ("gemm/m=1,n=1,k=x/fp32/sim", '"k" must be an integer'),
                            ("gemm/m=1,n=1,k=1/bf61/sim", 'unknown mode "bf61"'), ("gemm/m=1,n=1,k=1/bf16/sin", 'unknown backend "sin"'),
                            ("gemm/m=1,n=1,k/bf16/sim", '"k" must be an integer'), ("gemm//bf16/sim", 'unknown parameter of gemm ""'),
                            ("gemm/m={},n=[1],k=1/bf16/sim", '"m" must be an integer'), ("gemm/\x01/\x1b/\n", "unknown parameter of gemm"),
                            ("////////", "says more than op"), ("gemm/m=1,m=2,n=1,k=99999999999999999999/bf16/sim", '"k"')]:
            done = self.run_cli("explain", name, code=2)
            self.assertIn(words, done.stderr, name)
            self.assertNotIn("\x1b", done.stderr)
        self.assertIn("no case is named", self.run_cli("explain", "nothing", self.plan(), code=2).stderr)


class Doctor(CliTest):
    def test_simulated(self):
        text = self.run_cli("doctor", "--device", "sim:sm_100", code=0).stdout
        self.assertIn("simulated sm_100", text)
        for part in ["driver", "reference", "memory", "instruction set", "NVIDIA_TF32_OVERRIDE"]:
            self.assertIn(part, text)

    def test_variables_that_are_set(self):
        done = self.run_cli("doctor", "--device", "sim:sm_90", env={"NVIDIA_TF32_OVERRIDE": "1"}, code=0)
        self.assertRegex(done.stdout, r"NVIDIA_TF32_OVERRIDE +1\n")

    @unittest.skipIf(has_nvidia_driver(), "this machine has an NVIDIA driver")
    def test_without_driver(self):
        self.assertIn("no NVIDIA driver", self.run_cli("doctor", code=0).stdout)
        done = self.run_cli("doctor", "--device", "cuda:0", code=3)
        self.assertRegex(done.stdout, r"BAD +device cuda:0 +cuda:0 cannot be used")
        self.assertRegex(self.run_cli("doctor", "-q", "--device", "cuda:0", code=3).stdout, r"^te-numcheck .*\nBAD ")


class Schema(CliTest):
    def test_committed_copies_are_the_emitted_ones(self):
        for name in ["plan", "report", "comparison", "doctor"]:
            emitted = self.run_cli("schema", name, code=0).stdout
            committed = (SOURCE / "configs" / "schema" / f"{name}-1.schema.json").read_text()
            self.assertEqual(emitted, committed, f"te-numcheck schema {name} > configs/schema/{name}-1.schema.json")

    def undescribed(self, node, path="#"):
        """Properties without a description, and how many there are. Conditions repeat properties and need none."""
        found, count = [], 0
        for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
            if key in ("if", "then", "else", "default", "examples"):
                continue
            if key == "properties":
                count += len(value)
                found += [f"{path}/{name}" for name, rule in value.items() if not rule.get("description")]
            if key == "properties":
                inner = [self.undescribed(rule, f"{path}/{name}") for name, rule in value.items()]
            else:
                inner = [self.undescribed(value, f"{path}/{key}")]
            found += [name for names, _ in inner for name in names]
            count += sum(more for _, more in inner)
        return found, count

    def test_every_property_is_described(self):
        for name, least in {"plan": 400, "report": 500, "comparison": 25, "doctor": 50}.items():
            schema = json.loads(self.run_cli("schema", name, code=0).stdout)
            found, count = self.undescribed(schema)
            self.assertEqual(found, [], name)
            self.assertGreaterEqual(count, least, name)
            self.assertTrue(schema["$id"].endswith(f"/{name}-1.schema.json"), schema["$id"])

    def test_plan_is_the_default(self):
        self.assertEqual(self.run_cli("schema", code=0).stdout, self.run_cli("schema", "plan", code=0).stdout)


class Completion(CliTest):
    # What it completes: test_completion.py.
    def test_bash_parses_and_offers_no_hidden_option(self):
        script = self.run_cli("completion", "bash", code=0).stdout
        (self.folder / "completion.bash").write_text(script)
        subprocess.run(["bash", "-n", "completion.bash"], cwd=self.folder, check=True)
        self.assertIn("--require-supported", script)
        self.assertNotIn("--worker", script)

    def test_zsh_and_fish_name_every_option(self):
        options = [word for word in self.run_cli("run", "--help", code=0).stdout.replace("[=N]", "").split() if word.startswith("--")]
        for shell in ["zsh", "fish"]:
            script = self.run_cli("completion", shell, code=0).stdout
            for option in options:
                self.assertIn(option if shell == "zsh" else f"-l {option[2:]}", script)
            if shutil.which(shell):
                (self.folder / "script").write_text(script)
                subprocess.run([shell, "-n", "script"], cwd=self.folder, check=True)


class Exec(CliTest):
    CASE = {"op": "gemm", "mode": "fp32", "backend": "sim", "params": {"m": 8, "n": 8, "k": 16}, "seed": 3}

    def exec_lines(self, *lines, options=(), code=0):
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        done = self.run_cli("exec", "--device", "sim:sm_90", *options, stdin=text.encode(), code=code)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def test_cases_in_results_out(self):
        for options in [(), ("--in-process",)]:
            results, _ = self.exec_lines(self.CASE, "", {**self.CASE, "mode": "bf16"}, options=options)
            self.assertEqual([result["status"] for result in results], ["pass", "pass"])
            self.assertEqual(results[0]["id"], "gemm/m=8,n=8,k=16/fp32/sim")

    def test_a_record_is_a_reproducer(self):
        self.run_cli("run", self.plan(), "--device", "sim:sm_90", "--out", "out", code=0)
        record = self.report()["cases"][0]
        results, _ = self.exec_lines(record)
        self.assertEqual(results[0]["digest"], record["digest"])
        self.assertEqual(results[0]["runs"][0]["outputs"]["d"]["xxh128"], record["runs"][0]["outputs"]["d"]["xxh128"])

    def test_exit_codes(self):
        self.exec_lines(self.CASE, options=("--inject", "missing_k_tail"), code=1)
        self.exec_lines({**self.CASE, "backend": "cublaslt"}, code=4)
        self.exec_lines(code=4)

    def test_unreadable_input_is_not_empty_input(self):
        done = subprocess.run([PROGRAM, "exec", "--device", "sim:sm_90"], stdin=os.open(self.folder, os.O_RDONLY), env=CLEAN,
                              capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"cannot read standard input: Is a directory", done.stderr)

    def test_an_endless_line_is_refused(self):
        endless = subprocess.run([PROGRAM, "exec", "--device", "sim:sm_90"], stdin=open("/dev/zero", "rb"), env=CLEAN,
                                 capture_output=True, timeout=60)
        self.assertEqual(endless.returncode, 2)
        self.assertIn(b"stdin:1: this line is longer than 16 MiB", endless.stderr)

    def test_bad_lines_are_named_and_the_others_run(self):
        results, errors = self.exec_lines("{", self.CASE, {**self.CASE, "op": "gem"}, "7", '{"op": "gemm", "moed": 1}',
                                          {**self.CASE, "backend": "smi"}, "[" * 100000, code=2)
        self.assertEqual(len(results), 1)
        for place in ["stdin:1: this line is not JSON", "stdin:3: this is not a case", "stdin:4:", "stdin:5:",
                      'stdin:6: unknown backend "smi" (did you mean sim?)', "stdin:7:"]:
            self.assertIn(place, errors)


if __name__ == "__main__":
    unittest.main()
