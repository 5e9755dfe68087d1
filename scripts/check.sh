#!/usr/bin/env bash
# All checks that a machine can do for a reviewer. Prints one line per check; fails if any does.
#
#   scripts/check.sh                all checks
#   scripts/check.sh format tidy    some of them, by the names in kChecks below
#
# clang-tidy checks the files that differ from the commit TE_NUMCHECK_BASE (default: all files), for at most
# TE_NUMCHECK_TIDY_SECONDS (default 2100). If files are left by then, they are listed and the check fails.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
cd "$root"
scripts/setup.sh --quiet --checks

readonly kChecks=(format length layers headers spelling shell schema tidy)
readonly kSoftLength=350 kHardLength=500
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
      say "note: $file has $lines lines; split files of more than $kSoftLength"
    fi
  done < <(sources '*.cpp' '*.hpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake')
  return "$status"
}

# The order of layers and folders (private links enforce the layers, too; this check is only faster).
check_layers() {
  python3 -B scripts/check_layers.py
}

# Headers that no source proves to compile alone: the build does for those that their source includes first.
unproven_headers() {
  local header source
  sources 'lib/*.hpp' 'reference/*.hpp' 'kernels/*.hpp' 'app/*.hpp' | while IFS= read -r header; do
    source=${header%.hpp}.cpp
    if [ ! -f "$source" ] || ! grep -m1 '^#include' "$source" | grep -q "/${header##*/}\"\|\"${header##*/}\""; then
      echo "$header"
    fi
  done
}

# Every header compiles alone.
check_headers() {
  # shellcheck disable=SC2016  # $1 is for the inner shell
  unproven_headers | xargs -P "$(jobs)" -I{} bash -c '
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
  mapfile -t files < <(sources 'scripts/*.sh' scripts/te-numcheck .ci/run 'configs/ci/*.sh')
  shellcheck --external-sources "${files[@]}"
}

# The committed schemas equal those that the program emits.
check_schema() {
  local which file status=0
  for which in plan report comparison contract doctor; do
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

# What this build compiles, the most recently changed files first, because their findings matter most.
tidy_files() {
  local base=${TE_NUMCHECK_BASE:-} file
  {
    if [ -n "$base" ]; then
      git diff --name-only "$base" -- '*.cpp'
      git ls-files --others --exclude-standard -- '*.cpp'
    else
      sources '*.cpp'
    fi
  } |
    grep -E '^(lib|reference|kernels|app)/' | while read -r file; do
    [ -f "$file" ] && grep -qF "\"$root/$file\"" "$build/compile_commands.json" && echo "$file"
  done | xargs -r ls -t
}

# tidy_one FILE: prints its findings and fails if there are any; if TIDY_DEADLINE comes first, adds it to TIDY_LEFT.
tidy_one() {
  local left=$((TIDY_DEADLINE - $(date +%s))) findings status=0
  if [ "$left" -gt 0 ]; then
    findings=$(timeout "$left" clang-tidy-19 -p "$build" --quiet --warnings-as-errors='*' "$1" 2>&1) || status=$?
  fi
  if [ "$left" -le 0 ] || [ "$status" -eq 124 ]; then
    echo "$1" >>"$TIDY_LEFT"
    return 0
  fi
  [ "$status" -eq 0 ] || grep -vE '^[0-9]+ warnings? (generated|treated)|^Suppressed|^Use -' <<<"$findings" >&2
  return "$status"
}

check_tidy() {
  local files seconds=${TE_NUMCHECK_TIDY_SECONDS:-2100} start status=0
  lock_build
  configure -DTE_NUMCHECK_TESTS=ON
  # A generated file that a source includes.
  cmake --build "$build" --target numcheck_revision >/dev/null || return 1
  exec 9>&-
  mapfile -t files < <(tidy_files)
  [ "${#files[@]}" -gt 0 ] || { say "clang-tidy: no files to check"; return 0; }
  say "clang-tidy: ${#files[@]} files, for at most $seconds s"
  start=$(date +%s)
  TIDY_DEADLINE=$((start + seconds))
  TIDY_LEFT=$(mktemp)
  export -f tidy_one
  export TIDY_DEADLINE TIDY_LEFT build
  # shellcheck disable=SC2016  # $1 is for the inner shell
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(jobs)" bash -c 'tidy_one "$1"' tidy || status=1
  if [ -s "$TIDY_LEFT" ]; then
    status=1
    say "clang-tidy ran out of time: $(wc -l <"$TIDY_LEFT") of ${#files[@]} files were not checked within $seconds s:"
    sed 's/^/  /' "$TIDY_LEFT" >&2
    say "TE_NUMCHECK_TIDY_SECONDS allows more, TE_NUMCHECK_BASE=COMMIT asks about fewer files"
  else
    say "clang-tidy: done in $(($(date +%s) - start)) s"
  fi
  rm -f "$TIDY_LEFT"
  return "$status"
}

checks=("$@")
[ "${#checks[@]}" -gt 0 ] || checks=("${kChecks[@]}")
for check in "${checks[@]}"; do
  declare -F "check_$check" >/dev/null || die "no check \"$check\"; choose from ${kChecks[*]}"
  if "check_$check"; then
    say "ok      $check"
  else
    say "FAILED  $check"
    failed+=("$check")
  fi
done
[ "${#failed[@]}" -eq 0 ] || { say "failed: ${failed[*]}"; exit 1; }
