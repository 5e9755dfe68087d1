#include "kernels/harness/mask_probe.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/codec.hpp"
#include "kernels/contract/ports.hpp"
#include "op/attention_fwd.hpp"
#include "op/attention_layout.hpp"

namespace numcheck::kernels::harness {
namespace {

std::size_t aligned(std::size_t bytes) {
  constexpr std::size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Of a format that holds 0 and 1.
std::vector<std::byte> code_of(core::Dtype format, double value) {
  std::vector<std::byte> code(static_cast<std::size_t>(core::dtype_info(format).storage_bytes));
  core::encode(std::span(&value, 1), format, code);
  return code;
}

/// First byte of an element of a port.
std::size_t byte_of(const op::Port& port, std::int64_t element) {
  const std::int64_t row = element / port.cols;
  const std::int64_t at = row / port.rows * port.batch_stride + row % port.rows * port.ld + element % port.cols;
  return static_cast<std::size_t>(port.offset_bytes + at * core::dtype_info(port.dtype).storage_bytes);
}

double number_at(const op::Port& port, std::span<const std::byte> image, std::int64_t element) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, image.data() + byte_of(port, element),
              static_cast<std::size_t>(core::dtype_info(port.dtype).storage_bytes));
  return core::decode(bits, port.dtype);
}

/// The case of attention_fwd that is run instead, and where its ports are in the workspace.
class Probe {
 public:
  explicit Probe(const Call& call)
      : c_(*call.c),
        p_(op::from_params<op::AttentionParams>(call.c->params)),
        queries_(op::sequence_lengths(p_, op::Side::queries)),
        keys_(op::sequence_lengths(p_, op::Side::keys)) {
    if (p_.bias == "alibi") {
      throw NotSupported("with alibi, the mask that is drawn cannot be read back: slopes leave distant keys no weight");
    }
    p_.scale = 0;  // cuDNN multiplies by a negative one before it subtracts the largest score, and gets NaN
    c_.params = op::to_params(p_);
    c_.op = &op::attention_fwd();
    c_.algorithms = {};
    ports_ = c_.op->ports(c_.params, *c_.mode);
    for (const op::Port& port : ports_) {
      offsets_.push_back(bytes_);
      bytes_ += aligned(port.extent_bytes());
    }
  }

  [[nodiscard]] Call forward() const { return {&c_, ports_, "", false}; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  /// Reads the mask by launches of `forward`, and writes it to the port.
  void read(DeviceMemory& memory, const Algorithm& forward, std::span<const PortMemory> given,
            std::byte* workspace) const {
    const std::vector<PortMemory> ports = place(memory, given, workspace + aligned(forward.workspace_bytes));
    const PortMemory& v = port_memory(ports, "v");
    const PortMemory& o = port_memory(ports, "o");
    const PortMemory& mask = port_memory(given, "dropout_mask");
    std::vector<std::byte> image(mask.port->extent_bytes()), output(o.port->extent_bytes());
    for (std::int64_t first = 0; first < p_.sk; first += p_.value_channels()) {
      memory.upload(v.data, unit_vectors(*v.port, first));
      memory.fill(o.data, 0, output.size());
      static_cast<void>(forward.launch(ports, workspace));
      memory.download(output, o.data);
      take(*o.port, output, first, *mask.port, image);
    }
    memory.upload(mask.data, image);
  }

 private:
  /// Ports in the workspace, with zeros; lengths are the given ones.
  [[nodiscard]] std::vector<PortMemory> place(DeviceMemory& memory, std::span<const PortMemory> given,
                                              std::byte* workspace) const {
    memory.fill(workspace, 0, bytes_);
    std::vector<PortMemory> placed;
    for (std::size_t i = 0; i < ports_.size(); ++i) {
      const PortMemory* own = kernels::find_port(given, ports_[i].name);
      placed.push_back({&ports_[i], own == nullptr ? workspace + offsets_[i] : own->data});
    }
    return placed;
  }

  /// v_jc = 1 where j = first + c.
  [[nodiscard]] std::vector<std::byte> unit_vectors(const op::Port& v, std::int64_t first) const {
    const std::vector<std::byte> one = code_of(v.dtype, 1);
    std::vector<std::byte> image(v.extent_bytes());
    const std::int64_t width = p_.value_channels();
    for (std::int64_t batch = 0; batch < p_.batches; ++batch) {
      for (std::int64_t head = 0; head < p_.key_heads(); ++head) {
        const op::HeadPlace place = op::head_place(p_, op::Side::keys, batch, head, width);
        for (std::int64_t c = 0; c < width && first + c < keys_[static_cast<std::size_t>(batch)]; ++c) {
          std::ranges::copy(one, image.begin() + static_cast<std::ptrdiff_t>(
                                                     byte_of(v, place.first + (first + c) * place.stride + c)));
        }
      }
    }
    return image;
  }

  /// Sets the mask of keys `first` onwards. What is neither 0 nor a number is no mask: NaN.
  void take(const op::Port& o, std::span<const std::byte> output, std::int64_t first, const op::Port& mask,
            std::span<std::byte> image) const {
    const std::vector<std::byte> one = code_of(mask.dtype, 1);
    const std::vector<std::byte> nan = code_of(mask.dtype, std::numeric_limits<double>::quiet_NaN());
    const std::int64_t width = p_.value_channels();
    for (std::int64_t task = 0; task < p_.batches * p_.heads; ++task) {
      const auto batch = static_cast<std::size_t>(task / p_.heads);
      const op::HeadPlace place = op::head_place(p_, op::Side::queries, task / p_.heads, task % p_.heads, width);
      for (std::int64_t i = 0; i < queries_[batch]; ++i) {
        for (std::int64_t c = 0; c < width && first + c < keys_[batch]; ++c) {
          const double weight = number_at(o, output, place.first + i * place.stride + c);
          if (weight != 0) {
            std::ranges::copy(
                std::isfinite(weight) ? one : nan,
                image.begin() + static_cast<std::ptrdiff_t>(byte_of(mask, (task * p_.sq + i) * p_.sk + first + c)));
          }
        }
      }
    }
  }

  plan::Case c_;
  op::AttentionParams p_;
  std::vector<std::int64_t> queries_, keys_;  ///< of each sequence
  std::vector<op::Port> ports_;
  std::vector<std::size_t> offsets_;
  std::size_t bytes_ = 0;
};

}  // namespace

Algorithm probed_mask(DeviceMemory& memory, const Call& call, const std::function<Algorithm(const Call&)>& forward) {
  const auto probe = std::make_shared<const Probe>(call);
  Algorithm inner = forward(probe->forward());
  Algorithm made;
  made.label = "read back from " + inner.label;
  made.details = inner.details;
  made.workspace_bytes = aligned(inner.workspace_bytes) + probe->bytes();
  made.launch = [&memory, probe, inner = std::move(inner)](std::span<const PortMemory> ports, std::byte* workspace) {
    probe->read(memory, inner, ports, workspace);
    return not_measured();
  };
  return made;
}

}  // namespace numcheck::kernels::harness
