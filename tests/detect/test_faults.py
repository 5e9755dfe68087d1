"""Every planted fault of the families in ops/ is caught. Arguments: names of families (default: all)."""

import sys
import unittest

import families
from faults import Faults


def suite(chosen):
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    return unittest.TestSuite(load(type(f"Faults_{name}", (Faults,), {"family": name})) for name in chosen)


if __name__ == "__main__":
    outcome = unittest.TextTestRunner(verbosity=2).run(suite(sys.argv[1:] or families.names()))
    sys.exit(not outcome.wasSuccessful())
