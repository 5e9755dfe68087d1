#include "tolerance/grouped_gemm_model.hpp"

#include "op/grouped_gemm.hpp"
#include "tolerance/gemm_model.hpp"

namespace numcheck::tolerance {

model::ErrorModel grouped_gemm_error_model(const model::ModelRequest& request, std::string_view port) {
  const op::GroupPort known = op::group_port(port);
  const auto products = op::products_of(op::from_params<op::GroupedGemmParams>(*request.params));
  const op::Params params = op::to_params(products.at(known.group));
  model::ModelRequest own = request;
  own.params = &params;
  return gemm_error_model(own, known.port);
}

}  // namespace numcheck::tolerance
