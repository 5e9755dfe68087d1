// Which parts of cuDNN's error messages are shown, and the message if there is no cuDNN.
#include "kernels/cudnn/library.hpp"

#include <gtest/gtest.h>

#include "kernels/cudnn/engines.hpp"

namespace numcheck::kernels::cudnn {
namespace {

TEST(CudnnComplaint, is_the_root_of_the_first_chain) {
  const Complaint found = first_complaint(
      "{\"engineId\":1,\"smVersion\":900}\n"
      "Warning: CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE; Reason: x and dx differ at: a != b\n"
      "Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: ptr->isSupported()\n\n"
      "{\"engineId\":3}\n"
      "Warning: CUDNN_STATUS_NOT_SUPPORTED; Reason: another\n");
  EXPECT_EQ(found.status, "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE");
  EXPECT_EQ(found.reason, "x and dx differ at: a != b");
}

TEST(CudnnComplaint, other_texts_are_unchanged) {
  EXPECT_EQ(first_complaint(" no such thing.\n").reason, "no such thing");
  EXPECT_EQ(first_complaint(" no such thing.\n").status, "");
  EXPECT_EQ(first_complaint("").reason, "");
  EXPECT_EQ(first_complaint("CUDNN_STATUS_BAD_PARAM; Reason: ").status, "CUDNN_STATUS_BAD_PARAM");
}

TEST(CudnnError, says_call_and_reason_and_knows_refusals) {
  const CudnnError refusal(3001, "cudnnBackendFinalize (tensor)", "CUDNN_STATUS_X (why)",
                           std::source_location::current());
  EXPECT_TRUE(refusal.is_refusal());
  EXPECT_EQ(std::string(refusal.what()).find("cudnnBackendFinalize (tensor) failed: CUDNN_STATUS_X (why) at "), 0U);
  for (const Status other : {1001, 2000, 4001, 5001}) {
    EXPECT_FALSE(CudnnError(other, "f", "r", std::source_location::current()).is_refusal()) << other;
  }
}

TEST(CudnnLibrary, that_is_missing_says_where_it_was_looked_for) {
  try {
    const Library library("/nowhere");
    FAIL() << "loaded " << library.path();
  } catch (const core::EnvironmentError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("libcudnn.so.9 in /nowhere"), std::string::npos) << text;
    EXPECT_NE(text.find("--lib-dir"), std::string::npos) << text;
  }
}

TEST(CudnnEngines, as_many_as_the_case_asks_for) {
  using Kind = plan::AlgorithmSpec::Kind;
  EXPECT_EQ(requested_count({}), 1U);
  EXPECT_EQ(requested_count({Kind::top, 5}), 5U);
  EXPECT_EQ(requested_count({Kind::top, 1000}), 64U);
  EXPECT_EQ(requested_count({Kind::all, 1}), 64U);
}

}  // namespace
}  // namespace numcheck::kernels::cudnn
