#!/usr/bin/env python3
"""Writes the stubs of a new op: descriptor, reference, simulated and CUDA bindings.

    scripts/new_op.py l2norm_fwd "rows divided by their Euclidean norm"

The stubs compile but do not compute: the reference and the simulated kernel throw until they are written, and cases on
our own CUDA kernel are unsupported. catalog_test fails until the op has documentation, ports that its reference produces
and a quick case, test_fault_tables.py until it has faults. Existing files are never overwritten. It ends with the lines to add to lib/op/ops.hpp and app/catalog.cpp.
"""
import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

DESCRIPTOR_HPP = """// @summary@.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"
#include "op/op.hpp"

namespace numcheck::op {

/// Parameters of `@op@`:
///
///   FORMULA with the names of the ports, shapes, units, and its source.
struct @Type@Params {
  std::int64_t rows = 0;
  std::int64_t hidden = 0;

  template <class V>
  void describe(V& v) {
    constexpr double kMaxDim = 1 << 24;
    v.integer("rows", "r", rows, {.minimum = 0, .maximum = kMaxDim, .required = true, .doc = "rows of x"});
    v.integer("hidden", "h", hidden, {.minimum = 1, .maximum = kMaxDim, .required = true, .doc = "columns of x"});
  }
};

/// The descriptor of `@op@`.
[[nodiscard]] const Op& @op@();

}  // namespace numcheck::op
"""

DESCRIPTOR_CPP = """#include "op/@op@.hpp"

#include "op/output_format.hpp"

namespace numcheck::op {
namespace {

std::vector<Port> ports(const Params& values, const Mode& mode) {
  const auto p = from_params<@Type@Params>(values);
  return {dense_port("x", Role::input, mode.first, p.rows, p.hidden, "input"),
          dense_port("y", Role::output, mode.output, p.rows, p.hidden, "result")};
}

}  // namespace

const Op& @op@() {
  static const Op op{
      .name = "@op@",
      .summary = "@summary@",
      .formula = "",
      .source = "",
      .fields = &fields_of<@Type@Params>,
      .modes = storage_modes(),
      .ports = &ports,
      .check = [](const Params&, const Mode&) { return std::vector<std::string>(); },
      .exact_plan = [](const Params&, const Mode&) { return no_exact_leg("@op@ has no exact leg yet"); },
      .flops =
          [](const Params& values) {
            const auto p = from_params<@Type@Params>(values);
            return static_cast<double>(p.rows) * static_cast<double>(p.hidden);
          },
  };
  return op;
}

}  // namespace numcheck::op
"""

REFERENCE_CPP = """#include "op/@op@.hpp"

#include "core/error.hpp"
#include "reference/references.hpp"
#include "reference/tracked_output.hpp"
#include "tolerance/tracked.hpp"

namespace numcheck::reference {
namespace {

op::Values values(const op::ReferenceRequest&) {
  throw core::InternalError("the reference of @op@ is not written yet");
}

}  // namespace

op::Reference @op@_reference() {
  op::Reference reference;
  reference.values = &values;
  reference.version = "@op@-1";
  return reference;
}

}  // namespace numcheck::reference
"""

SIM_CPP = """#include "op/@op@.hpp"

#include <array>

#include "core/error.hpp"
#include "kernels/sim/bindings.hpp"
#include "kernels/sim/fp32_op.hpp"

namespace numcheck::kernels::sim {
namespace {

constexpr std::array<OpFault, 0> kFaults = {};

void run(const op::@Type@Params&, std::span<const PortMemory>, const std::string&) {
  throw core::InternalError("@op@ is not written yet on the simulated device");
}

}  // namespace

const Binding& @op@() {
  return fp32_op<op::@Type@Params, kFaults, &run>("@op@");
}

}  // namespace numcheck::kernels::sim
"""

CUDA_CPP = """#include "kernels/cuda/binding.hpp"
#include "kernels/cuda/bindings.hpp"

namespace numcheck::kernels::cuda {
namespace {

std::string obstacle(const Call&) {
  return "our own kernel of @op@ is not written yet";
}

Algorithm algorithm(cuda_support::CudaDevice&, const Call&) {
  return {};
}

}  // namespace

const Binding& @op@() {
  static const CudaBinding binding{{"cuda", "@op@"}, &obstacle, &algorithm};
  return binding;
}

}  // namespace numcheck::kernels::cuda
"""

ROW = "      {{OP({op}), &tolerance::tracked_error_model, {{CUDA({op}), SIM({op})}}}},"

NAME = "  X({op})"

KEYWORDS = set("auto bool break case catch char class concept const continue default delete do double else enum export extern "
               "false float for friend goto if inline int long mutable namespace new operator private protected public "
               "register requires return short signed sizeof static struct switch template this throw true try typedef "
               "typename union unsigned using virtual void volatile while".split())

FILES = {
    "lib/op/{op}.hpp": DESCRIPTOR_HPP,
    "lib/op/{op}.cpp": DESCRIPTOR_CPP,
    "reference/{op}.cpp": REFERENCE_CPP,
    "kernels/sim/{op}.cpp": SIM_CPP,
    "kernels/cuda/{op}.cpp": CUDA_CPP,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", help="snake_case name, as plans will spell it")
    parser.add_argument("summary", help="one line, without a full stop")
    parser.add_argument("--root", type=pathlib.Path, default=ROOT, help="where to write (default: this repository)")
    options = parser.parse_args()
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", options.op):
        print(f'"{options.op}" is not a snake_case name such as l2norm_fwd', file=sys.stderr)
        return 2
    names = set(re.findall(r"X\((\w+)\)", (ROOT / "lib/op/ops.hpp").read_text(encoding="utf-8")))
    if options.op in names | KEYWORDS:
        what = "is an op already" if options.op in names else "is a keyword of C++"
        print(f'"{options.op}" {what}', file=sys.stderr)
        return 2
    if '"' in options.summary or "\\" in options.summary or "\n" in options.summary:
        print("the summary becomes a C++ string: use no quotes, backslashes or line breaks", file=sys.stderr)
        return 2
    targets = {options.root / path.format(op=options.op): text for path, text in FILES.items()}
    taken = [str(path) for path in targets if path.exists()]
    if taken:
        print("nothing was written, because these files exist:\n  " + "\n  ".join(taken), file=sys.stderr)
        return 2
    words = {"op": options.op, "Type": options.op.title().replace("_", ""), "summary": options.summary}
    for path, text in targets.items():
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(options.root))
    print(f"\nthe line for lib/op/ops.hpp, which declares its bindings and its reference:\n{NAME.format(op=options.op)}")
    print(f'\nthe row for app/catalog.cpp, with #include "op/{options.op}.hpp":\n{ROW.format(op=options.op)}')
    return 0


if __name__ == "__main__":
    sys.exit(main())
