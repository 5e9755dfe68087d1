#include "machine/device.hpp"

#include <string>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "machine/build_info.hpp"

namespace numcheck::machine {
namespace {

TEST(Device, parses_and_prints) {
  for (const char* text : {"auto", "cuda:0", "cuda:7", "sim:sm_80", "sim:sm_89", "sim:sm_90", "sim:sm_100"}) {
    EXPECT_EQ(parse_device(text).text(), text);
  }
  EXPECT_EQ(parse_device("cuda").text(), "cuda:0");
  EXPECT_EQ(parse_device("3").text(), "cuda:3");
  EXPECT_EQ(parse_device("sim").text(), "sim:sm_90");
  EXPECT_EQ(parse_device("auto").kind, DeviceChoice::Kind::automatic);
}

TEST(Device, refuses_everything_else_with_the_alternatives) {
  for (const char* text :
       {"",        "gpu",    "cuda:",    "cuda:x",  "cuda:-1",   "cuda:1 ",    "cuda:99999999999999999999",
        "cuda:+1", "sim:",   "sim:90",   "sim:sm_", "sim:sm_91", "sim:sm_90a", "sim:sm_-80",
        "Auto",    "auto:1", "cuda:0x1", "-1",      "1.5",       "cuda:0:1"}) {
    try {
      (void)parse_device(text);
      ADD_FAILURE() << text;
    } catch (const core::UsageError& error) {
      const std::string message = error.what();
      EXPECT_NE(message.find(text), std::string::npos) << message;
      EXPECT_NE(message.find("sim:sm_100"), std::string::npos) << message;
    }
  }
}

TEST(BuildInfo, names_version_revision_and_compiler) {
  const BuildInfo& info = build_info();
  EXPECT_NE(info.version.find('.'), std::string::npos);
  EXPECT_FALSE(info.compiler.empty());
  const bool hex =
      info.revision.size() == 12 && info.revision.find_first_not_of("0123456789abcdef") == std::string::npos;
  EXPECT_TRUE(hex || info.revision == "unknown") << info.revision;
  EXPECT_EQ(version_text().find(info.version), 0U);
}

}  // namespace
}  // namespace numcheck::machine
