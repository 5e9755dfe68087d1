#include "tensor_folder.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "core/strings.hpp"
#include "data/safetensors.hpp"
#include "diagnose/subject_of_run.hpp"
#include "machine/build_info.hpp"
#include "plan/case.hpp"

namespace numcheck::app {
namespace {

using data::StoredTensor;

/// The reference's values, in the shape of their ports; for a sample, a list with the elements' indices.
void add_expected(std::vector<StoredTensor>& tensors, const run::RunTensors& run) {
  for (const op::OutputValues* values : run.expected) {
    StoredTensor tensor{fmt::format("expected_{}", values->port), "F64", {}, std::as_bytes(values->value.span())};
    if (run.sample->all()) {
      tensor.shape = std::ranges::find(tensors, values->port, &StoredTensor::name)->shape;
    } else {
      const std::span<const std::int64_t> indices = run.sample->indices;
      tensor.shape = {static_cast<std::int64_t>(indices.size())};
      tensors.push_back({tensor.name + "_index", "I64", tensor.shape, std::as_bytes(indices)});
    }
    tensors.push_back(std::move(tensor));
  }
}

struct ScaleText {
  std::string_view what, value;
};

ScaleText scale_text(core::Dtype format) {
  switch (format) {
    case core::Dtype::e8m0:
      return {"E8M0 byte e", "2^(e - 127)"};
    case core::Dtype::fp8_e4m3:
      return {"E4M3 number s", "s * the tensor's amax / 2688"};
    default:
      return {"number s", "s"};
  }
}

/// What the bytes of block-scaled tensors stand for; empty if there are none.
std::string scales_text(const run::RunTensors& run) {
  std::string text;
  for (const worker::HostPort& host : run.ports) {
    const op::Port& port = *host.port;
    const auto scales =
        std::ranges::find_if(run.ports, [&](const auto& other) { return other.port->name == port.scaled_by; });
    if (port.scaled_by.empty() || scales == run.ports.end()) {
      continue;
    }
    const bool is_expected =
        std::ranges::any_of(run.expected, [&](const auto* values) { return values->port == port.name; });
    const auto [what, value] = scale_text(scales->port->dtype);
    text +=
        fmt::format("{}{} holds codes and {} one {} for every {} x {} of them: value = code * {}",
                    text.empty() ? "" : "; ", port.name, port.scaled_by, what, port.block_rows, port.block_cols, value);
    text += is_expected ? fmt::format(", as in expected_{}", port.name) : "";
  }
  return text;
}

KeepLimits parse_keep_limits(const std::string& only, const std::string& bytes) {
  KeepLimits limits;
  if (!only.empty()) {
    require_known(only, "value of --keep-only", {"all", "failed"});
    limits.only_failed = only == "failed";
  }
  if (!bytes.empty()) {
    limits.bytes = core::parse_bytes(bytes, "--keep-bytes");
  }
  return limits;
}

}  // namespace

TensorFolder::TensorFolder(const OutputOptions& options)
    : folder_(options.keep_tensors), limits_(parse_keep_limits(options.keep_only, options.keep_bytes)) {
  std::error_code failure;
  std::filesystem::create_directories(folder_, failure);
  if (failure || !std::filesystem::is_directory(folder_)) {
    throw core::UsageError(fmt::format("--keep-tensors {}: this folder cannot be created{}", folder_.string(),
                                       failure ? ": " + failure.message() : ""));
  }
}

bool TensorFolder::takes(const run::RunTensors& run) {
  if (limits_.only_failed && run.result->status != verdict::Status::fail) {
    return false;
  }
  std::uint64_t bytes = 0;
  for (const worker::HostPort& port : run.ports) {
    bytes += static_cast<std::uint64_t>(port.port->elements()) * core::dtype_info(port.port->dtype).storage_bytes;
  }
  for (const op::OutputValues* values : run.expected) {
    bytes += values->value.size() * sizeof(double);
  }
  const std::lock_guard lock(mutex_);
  const bool fits = bytes <= limits_.bytes - std::min(bytes_, limits_.bytes);
  bytes_ += fits ? bytes : 0;
  left_out_ += fits ? 0 : 1;
  return fits;
}

void TensorFolder::keep(const run::RunTensors& run) {
  constexpr std::size_t kDigits = 16;
  if (!takes(run)) {
    return;
  }
  try {
    std::vector<StoredTensor> tensors;
    std::deque<std::vector<std::byte>> copies;
    for (const worker::HostPort& port : run.ports) {
      tensors.push_back(data::dense_tensor(*port.port, port.bytes, copies.emplace_back()));
    }
    add_expected(tensors, run);
    std::map<std::string, std::string> texts = {{"te-numcheck", machine::build_info().version},
                                                {"case", run.c->id},
                                                {"digest", run.c->digest.hex()},
                                                {"exec", plan::case_to_json(*run.c).dump()},
                                                {"run", run.result->run.label},
                                                {"ran", diagnose::ran_to_json(*run.result).dump()},
                                                {"status", verdict::status_name(run.result->status)},
                                                {"failing", run.result->failing}};
    if (std::string scales = scales_text(run); !scales.empty()) {
      texts["scales"] = std::move(scales);
    }
    const std::string name = fmt::format("{}-{}.safetensors", run.c->digest.hex().substr(0, kDigits), run.number);
    data::write_safetensors(folder_ / name, tensors, texts);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    failure_ = failure_.empty() ? error.what() : failure_;
  }
}

std::vector<std::string> TensorFolder::finish() const {
  if (!failure_.empty()) {
    throw core::IoError(failure_);
  }
  return left_out_ == 0 ? std::vector<std::string>()
                        : std::vector{fmt::format("the tensors of {} were not kept, because --keep-bytes was reached",
                                                  core::counted(static_cast<double>(left_out_), "run"))};
}

}  // namespace numcheck::app
