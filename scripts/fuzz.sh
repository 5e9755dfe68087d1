#!/usr/bin/env bash
# Builds the fuzz targets (clang 19, address and undefined-behaviour sanitizers) and runs each for a while, two at a time.
#
#   scripts/fuzz.sh             60 seconds each
#   scripts/fuzz.sh 600         longer
#   scripts/fuzz.sh 600 plan    one of: plan protocol report journal npy safetensors
#
# An input that breaks something is printed in base64 and kept in build/fuzz/findings; the run then fails. To repeat it:
# build/fuzz/tests/fuzz/fuzz_TARGET FILE.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/common.sh
. scripts/common.sh

seconds=${1:-60}
[[ $seconds =~ ^[1-9][0-9]*$ ]] || die "fuzz.sh SECONDS [TARGET...]: \"$seconds\" is not a number of seconds"
shift || true
targets=("$@")
[ "${#targets[@]}" -gt 0 ] || targets=(plan protocol report journal npy safetensors)

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)"

build=build/fuzz
findings=$build/findings
rm -rf "$findings"

# fuzz TARGET: its own copy of the seeds grows; what it finds is left in findings/TARGET.
fuzz() {
  local corpus=$build/corpus/$1
  mkdir -p "$corpus" "$findings/$1"
  UBSAN_OPTIONS=print_stacktrace=1 "$build/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -max_len=16384 -print_final_stats=1 -artifact_prefix="$findings/$1/" "$corpus" "tests/fuzz/seeds/$1" >"$build/$1.log" 2>&1
}

status=0
# finish TARGET PROCESS: waits for it and prints its result.
finish() {
  if wait "$2"; then
    say "$1: $(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$1.log") inputs, nothing found"
    return
  fi
  status=1
  say "$1: FAILED"
  tail -n 40 "$build/$1.log" >&2
  local finding
  for finding in "$findings/$1"/*; do
    [ ! -f "$finding" ] || { say "$finding in base64:"; base64 "$finding"; }
  done
}

for ((i = 0; i < ${#targets[@]}; i += 2)); do
  fuzz "${targets[i]}" &
  first=$!
  if [ $((i + 1)) -lt "${#targets[@]}" ]; then
    fuzz "${targets[i + 1]}" &
    finish "${targets[i + 1]}" $!
  fi
  finish "${targets[i]}" "$first"
done
exit "$status"
