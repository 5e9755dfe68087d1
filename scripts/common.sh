# shellcheck shell=bash
# Sourced by the scripts in this folder: where things are, and what this machine has.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${TE_NUMCHECK_BUILD:-$root/build}
# shellcheck disable=SC2034  # used by the scripts that source this file
binary=$build/app/te-numcheck

# Messages go to stderr: stdout belongs to the program that the scripts start.
say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 3
}

# at_least WANTED FOUND: version comparison, true if FOUND >= WANTED.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

# first_existing PATTERN...: the first path that exists, patterns expanded; fails if there is none.
first_existing() {
  local path
  for path in "$@"; do
    if [ -e "$path" ]; then
      printf '%s\n' "$path"
      return 0
    fi
  done
  return 1
}

# The folders "nvidia" of NVIDIA's Python wheels (nvidia/cu13, nvidia/cudnn, ...), one per line.
wheel_folders() {
  command -v python3 >/dev/null || return 0
  python3 - <<'PYTHON' 2>/dev/null || true
import os, site, sys
seen = set()
for folder in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
    nvidia = os.path.join(folder, "nvidia")
    if folder and os.path.isdir(nvidia) and nvidia not in seen:
        seen.add(nvidia)
        print(nvidia)
PYTHON
}

# The toolkit's folder, which has bin/nvcc: from variables, else from PATH, else from the usual places, newest first.
find_cuda() {
  local candidates=() wheel nvcc path
  for path in "${CUDAToolkit_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}"; do
    [ -n "$path" ] && candidates+=("$path")
  done
  nvcc=$(command -v nvcc || true)
  [ -n "$nvcc" ] && candidates+=("$(dirname "$(dirname "$(readlink -f "$nvcc")")")")
  candidates+=(/usr/local/cuda)
  while IFS= read -r path; do candidates+=("$path"); done < <(compgen -G '/usr/local/cuda-*' | sort -Vr)
  candidates+=(/opt/cuda /usr/lib/nvidia-cuda-toolkit /usr/lib/cuda /usr)
  while IFS= read -r wheel; do
    candidates+=("$wheel/cu13" "$wheel/cu12" "$wheel/cuda_nvcc")
  done < <(wheel_folders)
  for path in "${candidates[@]}"; do
    if [ -x "$path/bin/nvcc" ]; then
      printf '%s\n' "$path"
      return 0
    fi
  done
  return 1
}

# cuda_version FOLDER: "13.0".
cuda_version() { "$1/bin/nvcc" --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p'; }

# The cuDNN library that the program would load.
find_cudnn() {
  local cuda wheel candidates=()
  [ -n "${CUDNN_PATH:-}" ] && candidates+=("$CUDNN_PATH"/lib/libcudnn.so.9 "$CUDNN_PATH"/lib64/libcudnn.so.9)
  if cuda=$(find_cuda); then
    candidates+=("$cuda"/lib64/libcudnn.so.9 "$cuda"/lib/libcudnn.so.9)
  fi
  candidates+=(/usr/lib/{x86_64-linux-gnu,aarch64-linux-gnu}/libcudnn.so.9 /usr/lib64/libcudnn.so.9
    /usr/local/cuda/lib64/libcudnn.so.9)
  while IFS= read -r wheel; do candidates+=("$wheel/cudnn/lib/libcudnn.so.9"); done < <(wheel_folders)
  first_existing "${candidates[@]}"
}

# Architectures to compile for: those of the GPUs in this machine, or the two that CI builds if there is none.
cuda_architectures() {
  local capabilities
  capabilities=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | grep -E '^[0-9]+$' |
    sort -un | sed 's/$/-real/' | paste -sd ';' -) || true
  printf '%s\n' "${capabilities:-80-real;90-real}"
}

# Only one build at a time per folder; the lock is released when the shell ends.
lock_build() {
  mkdir -p "$build"
  if command -v flock >/dev/null; then
    exec 9>"$build/.lock"
    flock -n 9 || {
      say "waiting for another build in $build"
      flock 9
    }
  fi
}

# configure ARGUMENT...: CMake in $build, quiet unless it fails. TE_NUMCHECK_CMAKE_ARGS adds arguments.
configure() {
  local arguments=(-S "$root" -B "$build") extra=() log cuda
  if [ ! -f "$build/CMakeCache.txt" ]; then
    command -v ninja >/dev/null && arguments+=(-G Ninja)
    command -v ccache >/dev/null &&
      arguments+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_CUDA_COMPILER_LAUNCHER=ccache)
    arguments+=(-DCMAKE_BUILD_TYPE=Release)
    if cuda=$(find_cuda); then
      arguments+=("-DCUDAToolkit_ROOT=$cuda" "-DCMAKE_CUDA_ARCHITECTURES=$(cuda_architectures)")
    fi
  fi
  read -r -a extra <<<"${TE_NUMCHECK_CMAKE_ARGS:-}"
  mkdir -p "$build"
  log=$build/configure.log
  if ! cmake "${arguments[@]}" "$@" "${extra[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    die "CMake could not configure the build (above, and in $log)"
  fi
  grep -h '^-- te-numcheck:' "$log" | sed 's/^-- //' >&2 || true
}

jobs() { nproc 2>/dev/null || echo 2; }
