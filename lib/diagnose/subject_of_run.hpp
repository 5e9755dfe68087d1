// A run's tensors as a subject: what diagnose says of a case that has just failed.
#pragma once

#include <memory>
#include <span>

#include <nlohmann/json_fwd.hpp>

#include "diagnose/search.hpp"
#include "diagnose/subject.hpp"
#include "verdict/record.hpp"
#include "worker/execution.hpp"

namespace numcheck::diagnose {

/// `ports`: those of the case, with the inputs as the device got them and the outputs as it left them.
[[nodiscard]] Subject subject_of_run(prepare::Catalog catalog, const plan::Case& c, const verdict::RunResult& result,
                                     std::span<const worker::HostPort> ports, const machine::Device& device);

/// What files of tensors say of the run that left them: {"rounding": {...}, "conversion": {...}}, the latter only if the mode may
/// be computed with operands converted like that.
[[nodiscard]] nlohmann::json ran_to_json(const verdict::RunResult& result);

/// Throws core::UsageError that says what is wrong with it.
[[nodiscard]] Ran ran_from_json(const nlohmann::json& object);

/// The best explanation as a finding of the output that it is of; nothing if there is none.
[[nodiscard]] std::optional<op::Finding> finding_of(const Diagnosis& diagnosis);

}  // namespace numcheck::diagnose
