#include "machine/build_info.hpp"

#include <fmt/format.h>

namespace numcheck::machine {
namespace {
#include "revision.inc"
}  // namespace

const BuildInfo& build_info() {
  static const BuildInfo info{NUMCHECK_VERSION,     kRevision, kDate, kDirty, NUMCHECK_COMPILER, NUMCHECK_BUILD_TYPE,
                              NUMCHECK_CUDA_TOOLKIT};
  return info;
}

std::string version_text() {
  const BuildInfo& info = build_info();
  return fmt::format("{} ({}{})", info.version, info.revision, info.dirty ? ", with local changes" : "");
}

}  // namespace numcheck::machine
