"""scripts/Containerfile, as far as it can be checked without a container engine: what it copies is enough to configure the
build, what it runs exists, and its result is not run by root."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from support import SOURCE

TEXT = (SOURCE / "scripts" / "Containerfile").read_text()


def instructions():
    """(stage, instruction, arguments) of each, with continued lines joined and comments removed."""
    text = re.sub(r"\\\n", " ", re.sub(r"(?m)^#.*\n", "", TEXT))
    stage = -1
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        stage += word == "FROM"
        yield stage, word, rest.strip()


class Containerfile(unittest.TestCase):
    def setUp(self):
        self.all = list(instructions())

    def of(self, stage, word):
        return [rest for at, name, rest in self.all if at == stage and name == word]

    def test_builds_on_one_image_and_ships_on_another_of_the_same_cuda(self):
        build, final = (self.of(stage, "FROM")[0] for stage in (0, 1))
        self.assertRegex(build, r"/nvidia/cuda:\$\{CUDA\}-cudnn-devel-ubuntu\$\{UBUNTU\} AS build$")
        self.assertRegex(final, r"/nvidia/cuda:\$\{CUDA\}-cudnn-runtime-ubuntu\$\{UBUNTU\}$")
        self.assertEqual(self.of(2, "FROM"), [])

    def test_runs_the_program_and_not_as_root(self):
        user = self.of(1, "USER")[-1]
        self.assertRegex(user, r"^[1-9]\d+:[1-9]\d+$")
        program = json.loads(self.of(1, "ENTRYPOINT")[-1])
        self.assertEqual([pathlib.PurePath(program[0]).name, len(program)], ["te-numcheck", 1])
        prefix = str(pathlib.PurePath(program[0]).parents[1])
        self.assertIn(f"--prefix {prefix} ", " ".join(self.of(0, "RUN")) + " ")
        self.assertIn(f"--from=build {prefix} {prefix}", self.of(1, "COPY"))
        # The last user is the one that runs.
        self.assertGreater([name for _, name, _ in self.all].index("USER"),
                           max(at for at, (_, name, _) in enumerate(self.all) if name == "RUN"))

    def test_packages_come_from_setup_alone(self):
        runs = self.of(0, "RUN") + self.of(1, "RUN")
        self.assertNotRegex(" ".join(runs), r"apt|pip|curl|wget")
        scripts = re.findall(r"(?<!\S)(scripts/\S+)", " ".join(runs))
        self.assertEqual(scripts, ["scripts/setup.sh"])
        for script in scripts:
            self.assertTrue(os.access(SOURCE / script, os.X_OK), script)
        self.assertLess(self.all.index((0, "COPY", "scripts scripts")), self.all.index((0, "RUN", "scripts/setup.sh")))

    def test_what_it_copies_configures_and_has_everything_that_is_installed(self):
        configure = next(run for run in self.of(0, "RUN") if "cmake -S" in run).split("&&")[0].strip()
        with tempfile.TemporaryDirectory(prefix="te-numcheck-container-") as name:
            context, build = pathlib.Path(name, "source"), pathlib.Path(name, "build")
            for copy in self.of(0, "COPY"):
                *sources, target = copy.split()
                for source in sources:
                    self.assertTrue((SOURCE / source).exists(), f"COPY {source}")
                    place = context / target / (source if target == "./" else "")
                    if (SOURCE / source).is_dir():
                        shutil.copytree(SOURCE / source, place)
                    else:
                        place.parent.mkdir(parents=True, exist_ok=True)
                        shutil.copy(SOURCE / source, place)
            command = configure.replace("/build", str(build)).replace("CUDA=ON", "CUDA=OFF").replace('"${REVISION}"', "0123456789abcdef")
            done = subprocess.run(["bash", "-ec", command], cwd=context, capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for script in build.rglob("cmake_install.cmake"):
                for file in re.findall(rf'"({re.escape(str(context))}[^"]*)"', script.read_text()):
                    self.assertTrue(os.path.exists(file.rstrip("/")), f"{file} is installed, but not copied")
            done = subprocess.run(["cmake", "--build", build, "--target", "numcheck_revision"], capture_output=True, timeout=60)
            self.assertEqual(done.returncode, 0, done.stdout)
            revision = next(build.rglob("revision.inc")).read_text()
            self.assertIn('kRevision = "0123456789ab"', revision)


if __name__ == "__main__":
    unittest.main()
