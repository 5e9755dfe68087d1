#!/usr/bin/env bash
# Everything that a reviewer would look for and a machine can find. Prints one line per check; fails if any does.
#
#   scripts/check.sh                all checks
#   scripts/check.sh format tidy    some of them: format, length, layers, headers, spelling, shell, schema, tidy
#
# clang-tidy looks at the files that differ from TE_NUMCHECK_BASE (default: all), newest first, for at most
# TE_NUMCHECK_TIDY_SECONDS (default 900); it says how many files it did not reach.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$root"
scripts/setup.sh --quiet --checks

readonly kSoftLength=300 kHardLength=500
failed=()

# Tracked files, and new ones that are not ignored.
sources() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do [ -f "$f" ] && echo "$f"; done; }

check_format() {
  local files
  mapfile -t files < <(sources '*.cpp' '*.hpp' '*.cu' '*.cuh' '*.h')
  clang-format-19 --dry-run --Werror "${files[@]}" || { say "scripts/format.sh mends it"; return 1; }
}

check_length() {
  local file lines status=0
  while IFS= read -r file; do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt "$kHardLength" ]; then
      say "$file: $lines lines; the limit is $kHardLength"
      status=1
    elif [ "$lines" -gt "$kSoftLength" ]; then
      say "note: $file has $lines lines; more than $kSoftLength wants splitting"
    fi
  done < <(sources '*.cpp' '*.hpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake')
  return "$status"
}

# What a layer must not include (links are PRIVATE, so this is only the quicker answer).
check_layers() {
  local status=0
  ! grep -nE '#include [<"](Eigen|CLI|cuda|cublas|cudnn|kernels|reference|app)[/_.A-Za-z]*' -r lib || status=1
  ! grep -nE '#include [<"](CLI|cuda|cublas|cudnn|kernels|app)[/_.A-Za-z]*' -r reference || status=1
  ! grep -nE '#include [<"](CLI|Eigen|reference|app)[/_.A-Za-z]*' -r kernels || status=1
  ! grep -nE '#include <(span|concepts|source_location|fmt/|nlohmann|cublasLt)' -r kernels --include='*.cu' --include='*.cuh' ||
    status=1
  ! grep -nE '\b(std::cout|std::cerr|printf|std::exit|std::abort)\b *[(<]' -r lib reference --include='*.cpp' || status=1
  return "$status"
}

# Every header compiles alone.
check_headers() {
  # shellcheck disable=SC2016  # $1 is for the inner shell
  sources 'lib/*.hpp' 'reference/*.hpp' 'kernels/*.hpp' 'app/*.hpp' | xargs -P "$(jobs)" -I{} bash -c '
    "${CXX:-g++}" -std=c++20 -fsyntax-only -I lib -I . -I app -x c++ -include "$1" /dev/null ||
      { echo "$1 does not compile alone" >&2; exit 1; }' header {}
}

check_spelling() {
  local files
  mapfile -t files < <(sources '*.cpp' '*.hpp' '*.cu' '*.md' '*.sh' '*.cmake' '*CMakeLists.txt' '*.json' '*.py')
  codespell --ignore-words-list=te,nd,kinf,arithmetics "${files[@]}"
}

check_shell() {
  local files
  mapfile -t files < <(sources 'scripts/*.sh' scripts/te-numcheck .ci/run)
  shellcheck --external-sources "${files[@]}"
}

# The committed schemas are those that the program emits.
check_schema() {
  local which file status=0
  for which in plan report; do
    file=configs/schema/$which-1.schema.json
    if [ ! -f "$file" ]; then
      say "$file is missing; scripts/te-numcheck schema $which > $file"
      status=1
    elif ! scripts/te-numcheck schema "$which" | diff -u "$file" - >&2; then
      say "$file is stale; scripts/te-numcheck schema $which > $file"
      status=1
    fi
  done
  return "$status"
}

# Host files that clang-tidy reads in seconds: those with the JSON or command-line headers take half a minute each.
tidy_files() {
  local base=${TE_NUMCHECK_BASE:-} file
  { if [ -n "$base" ]; then git diff --name-only "$base" -- '*.cpp'; else sources '*.cpp'; fi; } |
    grep -E '^(lib|reference|kernels|app)/' | while read -r file; do
    [ -f "$file" ] && ! grep -qE 'nlohmann/json.hpp|CLI/CLI.hpp|Eigen/' "$file" &&
      grep -qF "\"$root/$file\"" "$build/compile_commands.json" && echo "$file"
  done | xargs -r ls -t
}

tidy_one() {
  [ "$(date +%s)" -lt "$TIDY_DEADLINE" ] || { echo "$1" >>"$TIDY_UNREACHED"; return 0; }
  clang-tidy-19 -p "$build" --quiet --warnings-as-errors='*' "$1" 2>&1 |
    { grep -vE '^[0-9]+ warnings? generated|^Suppressed|^Use -' || true; } && [ "${PIPESTATUS[0]}" -eq 0 ]
}

check_tidy() {
  local files status=0
  configure -DTE_NUMCHECK_TESTS=ON
  mapfile -t files < <(tidy_files)
  [ "${#files[@]}" -gt 0 ] || return 0
  TIDY_DEADLINE=$(($(date +%s) + ${TE_NUMCHECK_TIDY_SECONDS:-900}))
  TIDY_UNREACHED=$(mktemp)
  export -f tidy_one
  export TIDY_DEADLINE TIDY_UNREACHED build
  # shellcheck disable=SC2016  # $1 is for the inner shell
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(jobs)" bash -c 'tidy_one "$1"' tidy || status=1
  say "clang-tidy: ${#files[@]} files, $(wc -l <"$TIDY_UNREACHED") not reached in time"
  rm -f "$TIDY_UNREACHED"
  return "$status"
}

checks=("$@")
[ "${#checks[@]}" -gt 0 ] || checks=(format length layers headers spelling shell schema tidy)
for check in "${checks[@]}"; do
  declare -F "check_$check" >/dev/null || die "no check \"$check\"; there are format, length, layers, headers, spelling, shell, schema, tidy"
  if "check_$check"; then
    say "ok      $check"
  else
    say "FAILED  $check"
    failed+=("$check")
  fi
done
[ "${#failed[@]}" -eq 0 ] || { say "failed: ${failed[*]}"; exit 1; }
