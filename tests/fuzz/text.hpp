// The fuzzer's bytes as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace numcheck::fuzz {

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace numcheck::fuzz

/// What libFuzzer calls. Anything but a return is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
