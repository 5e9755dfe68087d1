"""Random clean cases: what a sweep draws."""

import unittest

import families


class Drawing(unittest.TestCase):
    clean = families.clean_cases(families.names())

    def cases(self, op, backend, count, data):
        return self.clean[op].cases(op, backend, count, seed=5, data=data)

    def test_a_shape_comes_with_as_many_inputs_as_asked_for(self):
        for op, backend in (("layernorm_bwd", "cudnn"), ("attention_fwd", "cudnn"), ("attention_bwd", "cuda"), ("rmsnorm_fwd", "sim")):
            with self.subTest(op=op, backend=backend):
                cases = self.cases(op, backend, 90, 4)
                self.assertEqual(len(cases), 90)
                self.assertEqual(len({case["seed"] for case in cases}), 90)
                for first in range(0, 90, 4):
                    one = cases[first]
                    for other in cases[first + 1 : first + 4]:
                        self.assertEqual((other["params"], other["mode"]), (one["params"], one["mode"]))
                self.assertGreater(len({str(case["inputs"]) for case in cases}), 23, "more than one of each shape")

    def test_what_is_drawn_first_does_not_depend_on_how_many_inputs_there_are(self):
        self.assertEqual(self.cases("softmax_fwd", "cudnn", 4, 4)[0], self.cases("softmax_fwd", "cudnn", 1, 1)[0])


if __name__ == "__main__":
    unittest.main()
