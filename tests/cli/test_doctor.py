"""doctor --json, and libraries in NVIDIA's wheels where there is no CUDA toolkit."""

import glob
import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import CLEAN, PROGRAM, CliTest, has_nvidia_driver

FAKE = os.environ.get("TE_FAKE_VERSIONS", "")
SIM = ["--device", "sim:sm_90"]
# What finds libraries, hidden: nothing of the developer's machine must be found.
NOWHERE = {"HOME": "/nonexistent", "PATH": "/nonexistent", "LD_LIBRARY_PATH": "", "PYTHONPATH": "", "VIRTUAL_ENV": "",
           "CONDA_PREFIX": "", "CUDA_HOME": "", "CUDA_PATH": ""}


class DoctorTest(CliTest):
    def doctor(self, *options, code=0, env=None):
        done = self.run_cli("doctor", "--json", *options, code=code, env=env)
        self.assertEqual(done.stderr, "")
        return json.loads(done.stdout)

    @staticmethod
    def library(found, name):
        return next(library for library in found["libraries"] if library["name"] == name)

    def needs_cuda_build(self):
        if self.doctor(*SIM)["tool"]["cuda_toolkit"] is None:
            self.skipTest("a build without CUDA looks for no libraries")

    def wheel(self, folder, place, name):
        file = self.folder / folder / place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FAKE, file)
        return os.path.realpath(file)


class Json(DoctorTest):
    def test_fits_its_schema(self):
        try:
            import jsonschema
        except ImportError:
            self.skipTest("python3-jsonschema is not installed")
        schema = json.loads(self.run_cli("schema", "doctor", code=0).stdout)
        jsonschema.Draft7Validator.check_schema(schema)
        for options in ([*SIM], [*SIM, "-q"], []):
            document = json.loads(self.run_cli("doctor", "--json", *options).stdout)
            jsonschema.validate(document, schema)
        # The schema names every member, so that none is undocumented.
        self.assertEqual(set(document), set(schema["properties"]))
        for part in ("tool", "driver", "device", "host"):
            self.assertEqual(set(document[part]), set(schema["properties"][part]["properties"]), part)
        for part in ("libraries", "variables", "findings"):
            for row in document[part]:
                self.assertEqual(set(row), set(schema["properties"][part]["items"]["properties"]), part)

    def test_says_what_the_text_says(self):
        env = {"NVIDIA_TF32_OVERRIDE": "1", "CUDA_PATH": "relative", "CUBLAS_UNHEARD_OF": "/secret/path"}
        found = self.doctor(*SIM, env=env)
        text = self.run_cli("doctor", *SIM, env=env, code=0).stdout
        self.assertEqual((found["schema"], found["verdict"]), ("te-numcheck/doctor", "usable"))
        self.assertEqual((found["device"]["name"], found["device"]["sm"], found["device"]["simulated"]),
                         ("simulated sm_90", 90, True))
        self.assertIsNone(found["device"]["uuid"])
        for finding in found["findings"]:
            self.assertRegex(text, rf"(?mi)^{finding['kind']} +{finding['subject']} +")
        self.assertEqual(text.count("\nok ") + text.count("\nnote "), len(found["findings"]))
        variables = {variable["name"]: variable for variable in found["variables"]}
        self.assertEqual(variables["NVIDIA_TF32_OVERRIDE"]["value"], "1")
        self.assertIsNone(variables["CUDA_FORCE_PTX_JIT"]["value"])
        self.assertEqual(variables["CUBLAS_UNHEARD_OF"],
                         {"name": "CUBLAS_UNHEARD_OF", "value": "(path)", "listed": False})
        self.assertIn({"variable": "CUDA_PATH", "entry": "relative"}, found["ignored_search_paths"])

    @unittest.skipIf(has_nvidia_driver(), "this machine has an NVIDIA driver")
    def test_a_device_that_cannot_be_used(self):
        found = self.doctor("--device", "cuda:0", code=3)
        self.assertEqual((found["verdict"], found["device"]["usable"], found["device"]["name"]), ("unusable", False, None))
        self.assertIn("cuda:0 cannot be used", found["device"]["problem"])
        self.assertEqual(found["driver"], {"state": "absent", "devices": 0})

    def test_hostile_values_stay_one_ascii_document(self):
        for value in (b"\xff\xfe", b"##[error]x\n::error::y", b"\x1b[2J", b'"}'):
            done = subprocess.run([PROGRAM, "doctor", "--json", *SIM], env={**os.environb, b"NVTE_UNHEARD_OF": value},
                                  capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0)
            text = done.stdout.decode("ascii")
            self.assertNotIn("\n::error", text)
            self.assertNotIn("##[", text)
            self.assertIn("NVTE_UNHEARD_OF", [variable["name"] for variable in json.loads(text)["variables"]])

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, "doctor", "--json", *SIM], env=CLEAN, stdout=full, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 3)


@unittest.skipUnless(os.path.exists(FAKE), "no stand-in for NVIDIA's libraries was built")
class Libraries(DoctorTest):
    def test_with_version_and_file(self):
        self.needs_cuda_build()
        lt = self.wheel("lib", ".", "libcublasLt.so.13")
        found = self.doctor(*SIM, "--lib-dir", self.folder / "lib")
        self.assertEqual(self.library(found, "cublaslt"), {"name": "cublaslt", "usable": True, "required": False,
                                                           "version": "13.2.3", "file": lt, "remark": None})
        text = self.run_cli("doctor", *SIM, "--lib-dir", self.folder / "lib", code=0).stdout
        self.assertIn(f"13.2.3 ({lt})", text)

    def test_that_a_folder_of_another_library_lacks(self):
        self.needs_cuda_build()
        self.wheel("lib", ".", "libcublasLt.so.13")
        usual = self.library(self.doctor(*SIM), "cudnn")
        self.assertEqual(self.library(self.doctor(*SIM, "--lib-dir", self.folder / "lib"), "cudnn"), usual)

    def test_that_a_folder_without_libraries_lacks(self):
        self.needs_cuda_build()
        missing = self.library(self.doctor(*SIM, "--lib-dir", self.folder), "cudnn")
        self.assertEqual((missing["usable"], missing["version"], missing["file"]), (False, None, None))
        self.assertIn(str(self.folder), missing["remark"])
        text = self.run_cli("doctor", *SIM, "--lib-dir", self.folder, code=0).stdout
        self.assertRegex(text, r"(?m)^note +cudnn +cudnn was not found: ")

    def test_one_that_crashes_leaves_the_others(self):
        self.needs_cuda_build()
        self.wheel("lib", ".", "libcublasLt.so.13")
        self.wheel("lib", ".", "libcudnn.so.9")
        found = self.doctor(*SIM, "--lib-dir", self.folder / "lib", env={"NUMCHECK_FAKE_CRASH": "1"})
        crashed = self.library(found, "cublaslt")
        self.assertEqual((crashed["usable"], crashed["version"]), (False, None))
        self.assertRegex(crashed["remark"], r"the process that loaded it .*(SIGABRT|signal 6|[Aa]borted)")
        self.assertEqual(self.library(found, "cudnn")["version"], "9.19.2")

    def test_that_are_no_libraries(self):
        self.needs_cuda_build()
        (self.folder / "libcublasLt.so.13").write_text("no library")
        library = self.library(self.doctor(*SIM, "--lib-dir", self.folder), "cublaslt")
        self.assertFalse(library["usable"])
        self.assertIn("libcublasLt.so.13", library["remark"])


@unittest.skipUnless(os.path.exists(FAKE), "no stand-in for NVIDIA's libraries was built")
class WithoutToolkit(DoctorTest):
    """As on a machine that has a driver and NVIDIA's wheels, but no toolkit: where there is one, it is hidden."""

    def doctor_without_toolkit(self, **env):
        toolkits = sorted({os.path.realpath(path) for path in glob.glob("/usr/local/cuda*")})
        (self.folder / "empty").mkdir(exist_ok=True)
        hide = "".join(f"mount --bind '{self.folder}/empty' '{path}' && " for path in toolkits)
        command = [PROGRAM, "doctor", "--json", *SIM]
        if toolkits:
            namespace = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
            command = [shutil.which("unshare"), *namespace[1:], "/bin/sh", "-c",
                       f"PATH=/usr/bin:/bin; {hide} PATH=/nonexistent exec \"$@\"", "sh", *command]
            if command[0] is None or subprocess.run([*command[:2], "/bin/true"], capture_output=True).returncode != 0:
                self.skipTest("this machine has a toolkit, and it cannot be hidden here")
        done = subprocess.run(command, env={**CLEAN, **NOWHERE, **env}, capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_wheels_of_a_virtual_environment(self):
        self.needs_cuda_build()
        found = self.doctor_without_toolkit()
        if self.library(found, "cublaslt")["usable"]:
            self.skipTest("cuBLASLt is installed where every program finds it")
        self.assertIn("pip", self.library(found, "cublaslt")["remark"])
        packages = pathlib.Path("venv/lib/python3.12/site-packages/nvidia")
        lt = self.wheel(packages, "cu13/lib", "libcublasLt.so.13")
        dnn = self.wheel(packages, "cudnn/lib", "libcudnn.so.9")
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            found = self.doctor_without_toolkit(**{variable: str(self.folder / "venv")})
            files = {library["name"]: (library["version"], library["file"]) for library in found["libraries"] if library["usable"]}
            self.assertEqual(files, {"cublaslt": ("13.2.3", lt), "cudnn": ("9.19.2", dnn)})


if __name__ == "__main__":
    unittest.main()
