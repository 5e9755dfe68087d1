#include "op/norm_params.hpp"

namespace numcheck::op {

std::vector<std::string> check_gamma_add(std::string_view op, const NormParams& params) {
  if (params.gamma_add == "fp32" || params.zero_centered_gamma) {
    return {};
  }
  return {std::string(op) + ": gamma_add \"" + params.gamma_add +
          "\" says how 1 is added to a zero-centred gamma; set zero_centered_gamma to true or omit gamma_add"};
}

Port norm_matrix(std::string_view name, Role role, core::Dtype dtype, const NormParams& params, std::string_view doc) {
  return dense_port(name, role, dtype, params.rows, params.hidden, doc);
}

Port norm_weight(std::string_view name, Role role, core::Dtype dtype, const NormParams& params, std::string_view doc) {
  return dense_port(name, role, dtype, 1, params.hidden, doc);
}

Port norm_statistic(std::string_view name, Role role, const NormParams& params, std::string_view doc) {
  Port port = dense_port(name, role, core::Dtype::fp32, params.rows, 1, doc);
  port.fill = role == Role::input ? Fill::computed : Fill::generated;
  return port;
}

double norm_flops(const NormParams& params, double per_element) {
  return per_element * static_cast<double>(params.rows) * static_cast<double>(params.hidden);
}

}  // namespace numcheck::op
