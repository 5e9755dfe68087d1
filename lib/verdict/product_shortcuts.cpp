#include "verdict/product_shortcuts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "op/grouped_gemm.hpp"
#include "tolerance/output_reduction.hpp"
#include "verdict/root_mean_square.hpp"

namespace numcheck::verdict {
namespace {

/// What is added to a product: sums of the mean squares and of the variances of its parts.
struct Rest {
  struct Part {
    std::span<const double> data;
    double factor = 1;
  };
  double square = 0, variance = 0;
  std::vector<Part> parts;

  void add(std::span<const op::Operand> operands, std::string_view port, double factor) {
    const op::Operand* found = op::find_operand(operands, port);
    if (found == nullptr || found->elements() == 0) {
      return;
    }
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < found->elements(); ++i) {
      const double value = found->data[i] * found->scale * factor;
      sum += std::isfinite(value) ? value : 0;
      squares += std::isfinite(value) ? value * value : 0;
    }
    const auto count = static_cast<double>(found->elements());
    parts.push_back({{found->data, found->elements()}, found->scale * factor});
    square += squares / count;
    variance += std::max(0.0, squares / count - sum / count * (sum / count));
  }
  /// Its standard deviation in ulps of the output's numbers.
  [[nodiscard]] double spread(double rms, core::Dtype format) const {
    const double ulp = 2 * core::dtype_info(format).unit_roundoff * rms;
    return square == 0 || ulp == 0 ? std::numeric_limits<double>::infinity() : std::sqrt(variance) / ulp;
  }
  /// |mean of (RN(R, ulp(y)) - R) / y| of some elements of y. A bias is a row, which all rows have.
  [[nodiscard]] double drift(std::span<const double> y, const op::Sample& sample, core::Dtype format) const {
    constexpr std::size_t kMost = std::size_t{1} << 16;
    double sum = 0, count = 0;
    for (std::size_t i = 0; i < y.size(); i += 1 + y.size() / kMost) {
      const std::size_t at = sample.all() ? i : static_cast<std::size_t>(sample.indices[i]);
      const double rest = std::accumulate(parts.begin(), parts.end(), 0.0, [at](double all, const Part& part) {
        return all + part.factor * part.data[at % part.data.size()];
      });
      const double ulp = core::ulp(std::fabs(y[i]), format);
      if (std::isfinite(rest) && std::isfinite(y[i]) && y[i] != 0) {
        sum += (std::nearbyint(rest / ulp) * ulp - rest) / y[i];
        count += 1;
      }
    }
    return count == 0 ? 0 : std::fabs(sum / count);
  }
};

/// Of what is declared, what the product can have done: files of tensors that somebody kept may say more.
model::DeclaredRounding possible(model::DeclaredRounding declared, const std::optional<op::Product>& product) {
  if (product.has_value()) {
    const op::GemmParams& p = product->params;
    declared.in_place = declared.in_place && p.beta != 0;
    declared.bias = declared.bias && p.bias;
    declared.gelu = declared.gelu && p.epilogue == "gelu";
  }
  return declared;
}

std::string_view epilogue_name(const model::DeclaredRounding& declared) {
  return !declared.gelu ? "bias" : declared.bias ? "bias and gelu" : "gelu";
}

ModelTransform rounded_part(double steepness, const Rest& rest, double spread, double drift) {
  return [steepness, square = rest.square, spread, drift](model::ErrorModel model) {
    return tolerance::with_rounded_part(std::move(model), steepness, square, spread, drift);
  };
}

}  // namespace

Shortcuts product_shortcuts(const model::DeclaredRounding& of_run, const EvaluationContext& context,
                            const op::Port& port) {
  const core::Dtype format = port.dtype;
  const std::string_view name = core::dtype_info(format).name;
  const int bytes = core::dtype_info(format).storage_bytes;
  const op::Op& op = *context.prepared->c->op;
  const std::vector<op::Operand> operands = op::operands_behind(op, context.prepared->rounding->operands, port.name);
  const std::optional<op::Product> product = op::product_behind(op, context.group->params, port.name);
  const model::DeclaredRounding declared = possible(of_run, product);
  const double beta = product.has_value() ? product->params.beta : 0;
  const double steepness = declared.gelu ? tolerance::kGeluSteepness : 1;
  const std::span<const double> expected = expected_values(context, port).value.span();
  const double rms = bytes == 2 ? root_mean_square(expected) : 0;
  const auto drift = [&](const Rest& added) {  // behind an activation, y says nothing of the sum's ulp
    return product.has_value() && product->params.epilogue == "none"
               ? added.drift(expected, context.group->sample, format)
               : 0;
  };
  Shortcuts all;
  const int slices = declared.slices_of(product.has_value() ? product->group : 0);
  if (bytes < 4 && slices > 1) {
    const double scale = product.has_value() ? op::scale_of_sums(product->params, operands) : 1;
    all.others.push_back({[slices, scale](model::ErrorModel model) {
                            return tolerance::with_output_reduction(std::move(model), slices, scale);
                          },
                          fmt::format("{} slices of k are added in {}, as the library declares", slices, name),
                          op::EarlyRounding{.slices = slices}});
  }
  if (bytes == 2 && declared.in_place) {
    Rest rest;
    rest.add(operands, "bias", 1);
    Rest added = rest;
    added.add(operands, "c", beta);
    all.parts.push_back({rounded_part(steepness, rest, added.spread(rms, format), drift(added)),
                         fmt::format("the product is rounded to {} before C is added, in place", name),
                         op::EarlyRounding{.product = true}});
  }
  if (bytes == 2 && (declared.gelu || declared.bias)) {  // relu commutes with rounding
    Rest rest, added;
    rest.add(operands, "c", beta);
    added.add(operands, "bias", 1);
    all.parts.push_back(
        {rounded_part(steepness, rest, added.spread(rms, format), drift(added)),
         fmt::format("the sum is rounded to {} before the epilogue ({})", name, epilogue_name(declared)),
         op::EarlyRounding{.sum = true}});
  }
  if (declared.gelu) {
    all.others.push_back({&tolerance::with_approximate_tanh,
                          fmt::format("the tanh of gelu is an approximation (to {:g})", tolerance::kTanhError),
                          op::EarlyRounding{.tanh_error = tolerance::kTanhError}});
  }
  return all;
}  // NOLINT(clang-analyzer-cplusplus.NewDeleteLeaks): `all` owns its functions

}  // namespace numcheck::verdict
