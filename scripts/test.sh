#!/usr/bin/env bash
# Sets up, builds everything with its tests and runs them. Arguments go to ctest:
#
#   scripts/test.sh                 all tests
#   scripts/test.sh -L unit         one tier: unit, reference, conformance, cli, detect, gpu
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

"$root/scripts/setup.sh" --tests
lock_build
configure -DTE_NUMCHECK_TESTS=ON
say "building te-numcheck and its tests in $build"
cmake --build "$build" --parallel "$(jobs)" >&2
exec 9>&-
exec ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$(jobs)" "$@"
