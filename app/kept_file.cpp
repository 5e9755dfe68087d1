#include "kept_file.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catalog.hpp"
#include "core/error.hpp"
#include "core/json_depth.hpp"
#include "diagnose/subject_of_run.hpp"
#include "verdict/record.hpp"

namespace numcheck::app {
namespace {

nlohmann::json json_of(const std::string& name, const std::string& text) {
  nlohmann::json json = core::nests_deeper(text) ? nlohmann::json(nlohmann::json::value_t::discarded)
                                                 : nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) {
    throw core::UsageError(fmt::format("the file's text \"{}\" is not the JSON that run --keep-tensors writes", name));
  }
  return json;
}

}  // namespace

std::optional<plan::Case> case_of(const data::TensorFile& file) {
  const auto text = file.texts().find("exec");
  return text == file.texts().end() ? std::nullopt
                                    : std::optional(plan::case_from_json(json_of(text->first, text->second), &find_op));
}

std::optional<diagnose::Ran> ran_of(const data::TensorFile& file) {
  const auto text = file.texts().find("ran");
  return text == file.texts().end() ? std::nullopt
                                    : std::optional(diagnose::ran_from_json(json_of(text->first, text->second)));
}

std::string failing_of(const data::TensorFile& file) {
  const auto status = file.texts().find("status"), failing = file.texts().find("failing");
  const bool has_failed = status != file.texts().end() && status->second == verdict::status_name(verdict::Status::fail);
  return has_failed && failing != file.texts().end() ? failing->second : "";
}

bool has_small_integers(const data::TensorFile& file, const plan::Case& c) {
  constexpr double kLargest = 4096;
  const auto is_one = [](double x) { return std::fabs(x) <= kLargest && x == std::trunc(x); };
  return std::ranges::all_of(c.op->ports(c.params, *c.mode), [&](const op::Port& port) {
    const auto tensor = std::ranges::find(file.tensors(), port.name, &data::FileTensor::name);
    return port.role != op::Role::input || tensor == file.tensors().end() ||
           std::ranges::all_of(data::values_of(*tensor).span(), is_one);
  });
}

}  // namespace numcheck::app
