"""Every command of the README that is marked as tested does what it says.

A block ```sh directly after a line <!-- test --> (or <!-- test: exit N -->) is run line by line by bash in a folder that
looks like the source tree; scripts/te-numcheck stands for the program that is tested. Blocks marked <!-- not tested: why -->
are left out; a block without a mark is an error."""

import os
import re
import subprocess
import unittest

from support import CLEAN, PROGRAM, SOURCE, CliTest

BLOCK = re.compile(r"(?:<!-- (?P<mark>[^\n]*?) -->\n)?```sh\n(?P<body>.*?)```", re.DOTALL)


def blocks():
    return [(match["mark"] or "", match["body"]) for match in BLOCK.finditer((SOURCE / "README.md").read_text())]


class Readme(CliTest):
    def test_every_block_is_marked(self):
        self.assertGreater(len(blocks()), 0)
        for mark, body in blocks():
            self.assertRegex(mark, r"^(test(: exit \d+)?|not tested: .+)$", body)

    def test_marked_blocks(self):
        (self.folder / "configs").symlink_to(SOURCE / "configs")
        (self.folder / "scripts").mkdir()
        (self.folder / "scripts" / "te-numcheck").symlink_to(PROGRAM)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "te-numcheck").symlink_to(PROGRAM)
        env = {**CLEAN, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"}
        for mark, body in blocks():
            if not mark.startswith("test"):
                continue
            expected = int(mark.rpartition(" ")[2]) if "exit" in mark else 0
            done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", body], cwd=self.folder, env=env, capture_output=True,
                                  text=True, stdin=subprocess.DEVNULL, timeout=300)
            self.assertEqual(done.returncode, expected, f"{body}\n{done.stdout}\n{done.stderr}")


if __name__ == "__main__":
    unittest.main()
