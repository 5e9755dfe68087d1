// The format triples of ops that compute in FP32 and round once: which outputs a mode may have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op/op.hpp"

namespace numcheck::op {

/// Format of the output: the parameter's, or the mode's; for "mxfp8_e4m3" that of the codes.
[[nodiscard]] core::Dtype output_dtype(const std::string& parameter, const Mode& mode);

/// The modes of such ops: the storage format of their tensors; tf32 is accepted and must change nothing.
[[nodiscard]] std::span<const std::string_view> storage_modes() noexcept;

/// TransformerEngine's triples (weight, input, output): an FP32 tensor may be stored as FP32, FP16, BF16 or FP8, a BF16
/// or FP16 one in its own format or in FP8. The mistake as a sentence, or nothing.
/// Source: TransformerEngine common/normalization, REGISTER_NORM_LAUNCHER rows.
[[nodiscard]] std::vector<std::string> check_output(std::string_view op, const std::string& parameter,
                                                    const Mode& mode);

/// The output port, with its scale port before it and its amax port after it where the format is FP8.
void add_output(std::vector<Port>& ports, const Port& output, std::string_view scale_name, std::string_view amax_name);

}  // namespace numcheck::op
