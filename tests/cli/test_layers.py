"""scripts/check_layers.py: the tree keeps the order of its folders, and every kind of offence is reported."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ["TE_NUMCHECK_SOURCE"])


def check(root):
    return subprocess.run([sys.executable, "-B", SOURCE / "scripts/check_layers.py"], cwd=root, capture_output=True,
                          text=True, timeout=60)


class Layers(unittest.TestCase):
    def offences(self, files):
        """The messages about a tree of these files."""
        with tempfile.TemporaryDirectory(prefix="te-numcheck-layers-") as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            done = check(root)
        self.assertEqual(done.returncode, 1 if done.stderr else 0, done.stderr)
        return done.stderr

    def test_this_tree(self):
        done = check(SOURCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_folder_sees_those_below_it(self):
        lower = {"lib/core/a.hpp": "", "kernels/contract/b.hpp": ""}
        self.assertEqual(self.offences({**lower, "lib/run/x.cpp": '#include "core/a.hpp"\n'}), "")
        self.assertEqual(self.offences({**lower, "kernels/sim/x.cpp": '#include "kernels/contract/b.hpp"\n'}), "")
        self.assertEqual(self.offences({**lower, "app/x.cpp": '#include "kernels/contract/b.hpp"\n'}), "")

    def test_an_include_upwards(self):
        messages = self.offences({"lib/run/a.hpp": "", "lib/metric/x.cpp": '\n#include "run/a.hpp"\n'})
        self.assertIn('lib/metric/x.cpp:2: #include "run/a.hpp": lib/run is not below lib/metric', messages)
        messages = self.offences({"kernels/loader/a.hpp": "", "kernels/cuda/x.cu": '#include "kernels/loader/a.hpp"\n'})
        self.assertIn("kernels/loader is not below kernels/cuda", messages)
        self.assertIn("is not below", self.offences({"app/commands/a.hpp": "", "app/x.cpp": '#include "commands/a.hpp"\n'}))

    def test_an_include_in_other_forms(self):
        above = {"lib/run/a.hpp": ""}
        for line in ("#include <run/a.hpp>", '#include "../run/a.hpp"', '# include "run/a.hpp"', '#  include  "run/a.hpp"',
                     '#if 0\n  #include "run/a.hpp"\n#endif', '#include"run/a.hpp"', '#include "./../run/a.hpp"'):
            for name in ("x.cpp", "x.hpp", "x.cuh", "x.h", "x.inc", "x.cpp.in"):
                messages = self.offences({**above, f"lib/core/{name}": line + "\n"})
                self.assertIn("lib/run is not below lib/core", messages, line)

    def test_an_include_that_is_allowed_has_one_form(self):
        lower = {"lib/core/a.hpp": ""}
        for line in ("#include <core/a.hpp>", '#include "../core/a.hpp"', '#include "lib/run/../core/a.hpp"'):
            messages = self.offences({**lower, "lib/run/x.cpp": line + "\n"})
            self.assertIn("core/a.hpp", messages, line)
        self.assertIn("no file of the tree", self.offences({"lib/run/x.cpp": '#include "../../outside.hpp"\n'}))

    def test_tests_and_new_folders(self):
        messages = self.offences({"tests/reference/a.hpp": "", "lib/run/x.cpp": '#include "tests/reference/a.hpp"\n'})
        self.assertIn("tests/reference has no place in the order", messages)
        messages = self.offences({"lib/attic/a.hpp": "", "lib/run/x.cpp": '#include "attic/a.hpp"\n#include <Eigen/Core>\n'})
        self.assertIn("lib/run/x.cpp:1", messages)
        self.assertIn("lib/run/x.cpp:2", messages)

    def test_backends_do_not_see_each_other(self):
        messages = self.offences({"kernels/cuda/a.hpp": "", "kernels/cudnn/x.cpp": '#include "kernels/cuda/a.hpp"\n'})
        self.assertIn("kernels/cuda is not below kernels/cudnn", messages)

    def test_a_layer_above(self):
        messages = self.offences({"kernels/sim/a.hpp": "", "lib/run/x.cpp": '#include "kernels/sim/a.hpp"\n'})
        self.assertIn("lib must not see kernels", messages)
        messages = self.offences({"reference/a.hpp": "", "kernels/sim/x.cpp": '#include "reference/a.hpp"\n'})
        self.assertIn("kernels must not see reference", messages)

    def test_foreign_headers(self):
        self.assertIn("not in lib", self.offences({"lib/core/x.cpp": "#include <Eigen/Core>\n"}))
        self.assertIn("not in reference", self.offences({"reference/x.cpp": "#include <cuda_runtime_api.h>\n"}))
        self.assertIn("not in device code", self.offences({"kernels/cuda/x.cu": "#include <span>\n"}))
        self.assertEqual(self.offences({"kernels/cuda/x.cpp": "#include <span>\n"}), "")

    def test_a_library_that_prints_or_ends_the_program(self):
        for line in ('std::cout << "x"', 'std::printf("x")', 'printf ("x")', 'fmt::print("x")', "std::abort()", "exit(1)"):
            for name in ("lib/core/x.hpp", "reference/x.cpp", "kernels/sim/x.cpp"):
                body = f"namespace {{\nvoid f() {{ {line}; }}\n}}\n"
                self.assertIn("neither prints", self.offences({name: body}), line)

    def test_the_namespace_of_another_folder(self):
        messages = self.offences({"lib/worker/x.cpp": "namespace numcheck::run {\n}\n"})
        self.assertIn("files of lib/worker are in namespace numcheck::worker", messages)
        for text in ("namespace numcheck::run\n{\nint f();\n}\n", "inline namespace numcheck::run { int f(); }\n",
                     "namespace numcheck { namespace run { int f(); } }\n", "namespace foo {\nint f();\n}\n",
                     "namespace numcheck::run {\nint f() { return 3; }\n}\n"):
            self.assertIn("are in namespace numcheck::worker", self.offences({"lib/worker/x.cpp": text}), text)
        self.assertIn("nothing is in namespace numcheck::worker", self.offences({"lib/worker/x.cpp": "int f();\n"}))
        self.assertEqual(self.offences({"lib/worker/x.cpp": "namespace numcheck::worker::fields {\n}\n"}), "")
        self.assertEqual(self.offences({"kernels/contract/x.hpp": "namespace numcheck::kernels {\n}\n"}), "")
        forward = "namespace numcheck::core {\nenum class D : int;\n}\nnamespace numcheck::kernels::sim {\nint f();\n}\n"
        self.assertEqual(self.offences({"kernels/sim/x.hpp": forward}), "")

    def test_a_folder_without_a_place(self):
        self.assertIn("lib/attic has no place in the order", self.offences({"lib/attic/x.cpp": ""}))


if __name__ == "__main__":
    unittest.main()
