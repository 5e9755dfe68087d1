#include "diagnose/shape_probe.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "core/error.hpp"

namespace numcheck::diagnose {
namespace {

constexpr std::size_t kMostSizes = 8;
/// Large enough to be no constant of an op's shapes. Two sets, because a dimension that is no product cannot look like the
/// same one in both.
constexpr std::array<std::array<std::int64_t, kMostSizes>, 2> kPrimes = {
    {{1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049}, {2003, 2011, 2017, 2027, 2029, 2039, 2053, 2063}}};

Product factors_of(std::int64_t number, std::span<const std::int64_t> primes) {
  Product product;
  for (const std::int64_t prime : primes) {
    int power = 0;
    while (number != 0 && number % prime == 0) {
      number /= prime;
      ++power;
    }
    product.powers.push_back(power);
  }
  product.constant = number;
  return product;
}

std::optional<Product> same(const Product& first, const Product& second) {
  return first == second ? std::optional(first) : std::nullopt;
}

}  // namespace

bool Product::is_constant() const noexcept {
  return std::ranges::all_of(powers, [](int power) { return power == 0; });
}

Product operator*(const Product& a, const Product& b) {
  Product product = a;
  product.constant *= b.constant;
  for (std::size_t i = 0; i < product.powers.size(); ++i) {
    product.powers[i] += b.powers[i];
  }
  return product;
}

ShapeProbe::ShapeProbe(const op::Op& op, const op::Mode& mode, std::vector<std::size_t> sizes)
    : op_(op), mode_(mode), sizes_(std::move(sizes)) {
  if (sizes_.size() > kMostSizes) {
    throw core::InternalError("shapes are told from no more than 8 sizes, and " + std::string(op.name) + " has more");
  }
}

std::vector<op::Port> ShapeProbe::ports(op::Params params, std::size_t set) const {
  for (std::size_t i = 0; i < sizes_.size(); ++i) {
    params[sizes_[i]] = kPrimes[set][i];
  }
  return op_.check(params, mode_).empty() ? op_.ports(params, mode_) : std::vector<op::Port>{};
}

bool ShapeProbe::has_port(const op::Params& params, std::string_view name) const {
  return op::find_port(ports(params), name) != nullptr;
}

bool ShapeProbe::exchanges_dims(const op::Params& params, std::size_t field) const {
  op::Params turned = params;
  turned[field] = !std::get<bool>(turned[field]);
  const std::vector<op::Port> before = ports(params), after = ports(turned);
  return before.size() == after.size() && std::ranges::any_of(before, [&after](const op::Port& port) {
           const op::Port* other = op::find_port(after, port.name);
           return other != nullptr && port.rows != port.cols && other->rows == port.cols && other->cols == port.rows;
         });
}

std::optional<Dims> ShapeProbe::dims_of(const op::Params& params, std::string_view name) const {
  const std::vector<op::Port> first_ports = ports(params, 0), second_ports = ports(params, 1);
  const op::Port* first = op::find_port(first_ports, name);
  const op::Port* second = op::find_port(second_ports, name);
  if (first == nullptr || second == nullptr) {
    return std::nullopt;
  }
  const auto found = [&](std::int64_t op::Port::* dim) {
    return same(factors_of(first->*dim, std::span(kPrimes[0]).first(sizes_.size())),
                factors_of(second->*dim, std::span(kPrimes[1]).first(sizes_.size())));
  };
  return Dims{found(&op::Port::batch), found(&op::Port::rows), found(&op::Port::cols)};
}

}  // namespace numcheck::diagnose
