// Finding drivers, libraries and executors, on machines with and without a GPU.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "fake.hpp"
#include "kernels/cuda_support/driver_files.hpp"
#include "kernels/cuda_support/library.hpp"
#include "kernels/harness/harness.hpp"
#include "kernels/loader/executor.hpp"
#include "kernels/loader/probe.hpp"
#include "kernels/sim/sim.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::kernels {
namespace {

using numcheck::test::TemporaryFolder;

std::string failure_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const core::EnvironmentError& error) {
    return error.what();
  }
  return "no EnvironmentError";
}

TEST(Driver, state_agrees_with_its_traces) {
  const loader::DriverState state = loader::probe_driver();
  EXPECT_FALSE(state.sentence.empty());
  EXPECT_EQ(state.devices > 0, state.kind == loader::DriverState::Kind::works);
  EXPECT_EQ(state.kind == loader::DriverState::Kind::absent, cuda_support::driver_trace().empty()) << state.sentence;
  EXPECT_EQ(loader::cuda_devices().size(), static_cast<std::size_t>(state.devices));
}

TEST(Executor, automatic_falls_back_only_without_a_driver) {
  const loader::DriverState state = loader::probe_driver();
  if (state.kind == loader::DriverState::Kind::broken) {
    EXPECT_NE(failure_of([] { static_cast<void>(loader::make_executor({})); }).find(state.sentence), std::string::npos);
    return;
  }
  const auto executor = loader::make_executor({});
  EXPECT_EQ(executor->device().simulated, state.kind == loader::DriverState::Kind::absent);
  EXPECT_EQ(executor->libraries().empty(), executor->device().simulated);
}

TEST(Executor, dispatches_by_backend) {
  machine::DeviceChoice choice;
  choice.kind = machine::DeviceChoice::Kind::sim;
  const auto executor = loader::make_executor(choice);
  op::GemmParams params;
  params.m = params.n = params.k = 16;
  test::TestCase test(params, "tf32");
  const auto run = [&](const char* backend) {
    test.c.backend = backend;
    std::vector<worker::RunReport> reports;
    test.outcome = executor->execute(test.c, test.host, {}, [&](const auto& report) { reports.push_back(report); });
    return reports;
  };
  for (const char* backend : {"sim", "auto"}) {
    const auto reports = run(backend);
    ASSERT_EQ(test.outcome.kind, worker::Outcome::Kind::done) << test.outcome.reason;
    ASSERT_EQ(reports.size(), 1U);
    if (std::getenv("NVIDIA_TF32_OVERRIDE") == nullptr) {
      EXPECT_EQ(reports[0].observed, model::PrecisionClass::tf32_rne);
    }
    EXPECT_TRUE(reports[0].deterministic() && reports[0].guards_intact && reports[0].inputs_intact);
  }
  for (const char* backend : {"cublaslt", "cuda"}) {
    EXPECT_TRUE(run(backend).empty());
    EXPECT_EQ(test.outcome.kind, worker::Outcome::Kind::unsupported);
    EXPECT_NE(test.outcome.reason.find(backend), std::string::npos) << test.outcome.reason;
  }
}

TEST(Executor, faults_of_harness_and_simulator_have_different_names) {
  for (const FaultInfo& memory : harness::harness_faults()) {
    for (const FaultInfo& arithmetic : sim::sim_faults()) {
      EXPECT_NE(memory.name, arithmetic.name);
    }
  }
}

TEST(Executor, a_device_that_does_not_exist_is_named) {
  machine::DeviceChoice choice;
  choice.kind = machine::DeviceChoice::Kind::cuda;
  choice.index = 977;
  EXPECT_NE(failure_of([&] { static_cast<void>(loader::make_executor(choice)); }).find("cuda:977"), std::string::npos);
}

TEST(Library, a_requested_folder_is_the_only_one_searched) {
  const TemporaryFolder folder;
  const std::string text = failure_of(
      [&] { cuda_support::SharedLibrary library(cuda_support::cublaslt_library(), folder.path().string()); });
  EXPECT_NE(text.find(folder.path().string()), std::string::npos) << text;
  EXPECT_NE(text.find("libcublasLt.so.13"), std::string::npos) << text;
  EXPECT_EQ(text.find("/usr/local"), std::string::npos) << text;
}

TEST(Library, a_file_that_does_not_load_is_explained) {
  const TemporaryFolder folder;
  (void)folder.write("libcublasLt.so.13", "this is not a library");
  const std::string text = failure_of(
      [&] { cuda_support::SharedLibrary library(cuda_support::cublaslt_library(), folder.path().string()); });
  EXPECT_NE(text.find("libcublasLt.so.13: "), std::string::npos) << text;
}

TEST(Library, the_variable_is_respected) {
  const TemporaryFolder folder;
  ASSERT_EQ(setenv("TE_NUMCHECK_LIB_DIR", folder.path().c_str(), 1), 0);
  const std::string text = failure_of([&] { cuda_support::SharedLibrary library(cuda_support::cudnn_library(), ""); });
  unsetenv("TE_NUMCHECK_LIB_DIR");
  EXPECT_NE(text.find(folder.path().string()), std::string::npos) << text;
}

TEST(Library, a_missing_function_is_named) {
  static constexpr std::array kFiles = {"libm.so.6"};
  const cuda_support::SharedLibrary math(cuda_support::LibraryName{"math", kFiles}, "");
  EXPECT_FALSE(math.path().empty());
  EXPECT_EQ(math.symbol<double (*)(double)>("cos")(0.0), 1.0);
  EXPECT_NE(failure_of([&] { static_cast<void>(math.symbol<void*>("no_such_function")); }).find("no_such_function"),
            std::string::npos);
}

}  // namespace
}  // namespace numcheck::kernels
