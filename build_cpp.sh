#!/bin/sh
# Builds the small compiler in cpp/ into cpp/build/<preset>.
#   ./build_cpp.sh [Debug|Release|Sanitize] [--test]
set -eu

usage() {
  echo "usage: $0 [Debug|Release|Sanitize] [--test]" >&2
  exit 2
}

preset=release
test=no
for argument in "$@"; do
  case "$argument" in
    Debug | debug) preset=debug ;;
    Release | release) preset=release ;;
    Sanitize | sanitize) preset=sanitize ;;
    --test) test=yes ;;
    *) usage ;;
  esac
done

if ! command -v cmake >/dev/null 2>&1; then
  echo "CMake is missing. Install it (apt install cmake, brew install cmake, pip install cmake)." >&2
  exit 1
fi

cd "$(dirname "$0")/cpp"
cmake --preset "$preset"
# Make without a number would start every compiler at once.
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
cmake --build --preset "$preset" --parallel "$jobs"
if [ "$test" = yes ]; then
  ctest --preset "$preset"
fi
echo "Built in cpp/build/$preset. To see it work: cpp/build/$preset/demo"
