// Which parameters of an op the shapes of somebody's tensors imply.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/op.hpp"

namespace numcheck::diagnose {

/// Shape of the tensor that is taken for a port. All but the last dimension may be folded into rows: [batch, tokens, hidden]
/// fits a port of batch * tokens x hidden.
struct TensorShape {
  std::string port;
  std::vector<std::int64_t> dims;

  [[nodiscard]] std::int64_t elements() const noexcept;
};

/// Parameters that somebody chose, by name.
using ChosenParams = std::map<std::string, op::Value, std::less<>>;

struct Fit {
  op::Params params;
  std::vector<std::string> notes;     ///< what was read from the shapes although it has a default: "trans_b = true"
  std::vector<std::string> mistakes;  ///< why nothing fits, as sentences; then there are no parameters
};

/// Whether the op has a tensor of that name, with these parameters or with others of its switches.
[[nodiscard]] bool may_have_port(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen,
                                 std::string_view name);

/// Fills in what is not chosen:
///  * switches without which a tensor's port would not be there (bias, beta for C)
///  * sizes, by comparing the shapes with those of the ports. A port's dimension must be a product of sizes and a
///    constant; other dimensions are only checked
///  * switches that only exchange dimensions (trans_a, trans_b), if nothing fits without them
///  * of grouped_gemm the lists of sizes, from each group's tensors
[[nodiscard]] Fit fit_params(const op::Op& op, const op::Mode& mode, const ChosenParams& chosen,
                             std::span<const TensorShape> shapes);

}  // namespace numcheck::diagnose
