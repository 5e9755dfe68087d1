#include "diagnose/subject_of_run.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "data/inputs.hpp"
#include "data/safetensors.hpp"
#include "worker/rounding_json.hpp"
#include "worker/workers.hpp"

namespace numcheck::diagnose {
namespace {

/// The case without padding, which decoded tensors do not have.
plan::Case dense(const plan::Case& c) {
  plan::Case result = c;
  for (std::size_t i = 0; i < result.params.size(); ++i) {
    const op::Field& field = result.op->fields()[i];
    if (field.storage_only && field.kind == op::FieldKind::integer) {
      result.params[i] = field.fallback;
    }
  }
  result.backend = "given";
  return result;
}

SharedBytes dense_bytes(const op::Port& port, std::span<const std::byte> image) {
  std::vector<std::byte> scratch;
  const std::span<const std::byte> bytes = data::dense_tensor(port, image, scratch).bytes;
  auto copy = std::make_shared<core::Buffer<std::byte>>(bytes.size());
  std::ranges::copy(bytes, copy->data());
  return copy;
}

/// Whether every output had the same bits again, or is one of those that need not.
bool repeats(const worker::RunReport& run) {
  return std::ranges::all_of(run.outputs, [&run](const worker::OutputDigest& output) {
    return output.repeats || std::ranges::find(run.unordered, output.port) != run.unordered.end();
  });
}

Ran ran_of(const verdict::RunResult& result) {
  Ran ran{.rounding = result.run.rounding};
  if (result.run.observed == result.expected_class) {  // another class is what must be explained
    ran.observed = result.run.observed;
    ran.conversion = result.run.conversion;
  }
  return ran;
}

}  // namespace

Subject subject_of_run(prepare::Catalog catalog, const plan::Case& c, const verdict::RunResult& result,
                       std::span<const worker::HostPort> ports, const machine::Device& device) {
  const worker::RunReport& run = result.run;
  Subject subject;
  subject.catalog = catalog;
  subject.c = dense(c);
  subject.device = device;
  subject.conduct = {run.guards_intact, run.inputs_intact, repeats(run), run.guard_detail};
  subject.ran = ran_of(result);
  for (const worker::HostPort& host : ports) {
    const op::Port& port = *host.port;
    if (worker::use_of(port) == worker::BlockUse::output) {
      subject.outputs.emplace(port.name, dense_bytes(port, host.bytes));
    } else {
      subject.inputs.set(std::string(port.name),
                         std::make_shared<core::Buffer<double>>(data::load_port(port, host.bytes)));
      if (prepare::find_row(catalog, c.op->name)->reference.moved != nullptr) {  // NaN has bits to be moved
        subject.inputs.set_bits(std::string(port.name), dense_bytes(port, host.bytes));
      }
    }
  }
  return subject;
}

nlohmann::json ran_to_json(const verdict::RunResult& result) {
  const Ran ran = ran_of(result);
  return {{"rounding", worker::rounding_to_json(ran.rounding)},
          {"observed", ran.observed.has_value() ? model::class_name(*ran.observed) : ""},
          {"conversion", worker::conversion_to_json(ran.conversion)}};
}

Ran ran_from_json(const nlohmann::json& object) {
  constexpr int kMostSlices = 1024;  // of any library
  try {
    const auto observed = object.at("observed").get<std::string>();
    Ran ran{.rounding = worker::rounding_from_json(object.at("rounding")),
            .observed = model::class_named(observed),
            .conversion = worker::conversion_from_json(object.at("conversion"))};
    if (!observed.empty() && !ran.observed.has_value()) {
      throw core::UsageError(fmt::format("there is no class \"{}\"", observed));
    }
    if (ran.conversion.has_value() && core::dtype_info(ran.conversion->format).storage_bytes > 4) {
      throw core::UsageError("operands are not converted to a longer format");
    }
    std::vector<int> slices = ran.rounding.group_slices;
    slices.push_back(ran.rounding.slices);
    for (const int count : slices) {
      if (count < 1 || count > kMostSlices) {
        throw core::UsageError(fmt::format("{} slices of k", count));
      }
    }
    return ran;
  } catch (const nlohmann::json::exception&) {
    throw core::UsageError(
        "the file's text \"ran\" is not what run --keep-tensors writes: it lacks a part, or has one of another kind");
  } catch (const std::exception& error) {
    throw core::UsageError(
        fmt::format("the file's text \"ran\" is not what run --keep-tensors writes: {}", error.what()));
  }
}

std::optional<op::Finding> finding_of(const Diagnosis& diagnosis) {
  // What is only consistent with the errors is no cause that a known issue may name.
  if (diagnosis.kind != Diagnosis::Kind::explained || diagnosis.passing.front().is_consistent_only) {
    return std::nullopt;
  }
  const Explanation& best = diagnosis.passing.front();
  const bool is_own = !best.shared_cause.empty();  // its numbers are of this case
  std::string text = is_own ? best.cause + "; " : std::string();
  const std::string evidence = best.replay.has_value()
                                   ? evidence_of(*best.replay)
                                   : fmt::format("it explains {:.6g} % of what differs", 100 * best.share);
  text += fmt::format("{}. {}", evidence, best.remedy);
  for (std::size_t i = 1; i < diagnosis.passing.size(); ++i) {
    text += fmt::format("{}{}", i == 1 ? " The tensors do not tell it from: " : ", ", diagnosis.passing[i].name);
  }
  return op::Finding{.name = best.name,
                     .port = diagnosis.port,
                     .measured = best.replay.has_value() ? best.replay->share : best.share,
                     .text = std::move(text),
                     .cause = is_own ? best.shared_cause : best.cause,
                     .fake = {}};
}

}  // namespace numcheck::diagnose
