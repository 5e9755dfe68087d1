#!/usr/bin/env bash
# Formats every C++ and CUDA file of the tree, or those named.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"

cd "$root"
if [ $# -gt 0 ]; then
  files=("$@")
else
  mapfile -t files < <(git ls-files --cached --others --exclude-standard -- '*.cpp' '*.hpp' '*.cu' '*.cuh' '*.h')
fi
[ "${#files[@]}" -eq 0 ] || clang-format-19 -i "${files[@]}"
