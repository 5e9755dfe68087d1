// Obstacles of TransformerEngine's bindings, asked of the fake library.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/transformer_engine/binding.hpp"
#include "kernels/transformer_engine/bindings.hpp"

namespace numcheck::kernels::transformer_engine {

/// The obstacle of a case for the fake library, as one of this version.
template <class Params>
std::string obstacle_of(const Binding& binding, const op::Op& op, const Params& params, std::string_view mode,
                        const char* version = "2.20.2", int sm = 90) {
  const Library library({TE_FAKE_LIBRARY, parse_version(version)}, "");
  plan::Case c;
  c.op = &op;
  c.params = op::to_params(params);
  c.mode = op::find_mode(mode);
  const std::vector<op::Port> ports = op.ports(c.params, *c.mode);
  const Call call{&c, ports, ""};
  return static_cast<const TeBinding&>(binding).obstacle({library, nullptr, {.sm = sm}}, call);
}

/// True if the text contains the phrase; otherwise the test's message shows the text.
inline ::testing::AssertionResult says(const std::string& text, std::string_view phrase) {
  return text.find(phrase) != std::string::npos ? ::testing::AssertionSuccess()
                                                : ::testing::AssertionFailure() << "it says: \"" << text << '"';
}

}  // namespace numcheck::kernels::transformer_engine
