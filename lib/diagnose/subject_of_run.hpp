// A run's tensors as a subject: what diagnose says of a case that has just failed.
#pragma once

#include <memory>
#include <span>

#include "diagnose/search.hpp"
#include "diagnose/subject.hpp"
#include "worker/execution.hpp"

namespace numcheck::diagnose {

/// `ports`: those of the case, with the inputs as the device got them and the outputs as it left them.
[[nodiscard]] Subject subject_of_run(prepare::Catalog catalog, const plan::Case& c, const worker::RunReport& run,
                                     std::span<const worker::HostPort> ports, const machine::Device& device);

/// The best explanation as a finding of the output that it is of; nothing if there is none.
[[nodiscard]] std::optional<op::Finding> finding_of(const Diagnosis& diagnosis);

}  // namespace numcheck::diagnose
