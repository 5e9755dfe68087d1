#include "op/rope.hpp"

#include <limits>

#include <fmt/format.h>

#include "kernels/transformer_engine/bindings.hpp"
#include "kernels/transformer_engine/launch.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

/// Sines and cosines of one token are kept in 48 KiB of shared memory.
constexpr std::int64_t kMaxRotated = 48 * 1024 / 8;

std::string size_obstacle(const op::RopeParams& p) {
  if (p.seq * p.batch * p.heads > std::numeric_limits<int>::max() / p.dim) {
    return "TransformerEngine's RoPE counts elements in 32 bits";
  }
  return p.rotated() > kMaxRotated
             ? fmt::format("TransformerEngine's RoPE rotates up to {} channels per head", kMaxRotated)
             : std::string();
}

/// Which of the gradient's two signatures the library has; nothing if that is unknown.
std::optional<bool> takes_start_positions(const Library& library) {
  const std::optional<bool> by_version = library.at_least(2, 10);
  if (by_version.has_value() || !library.has(kSetTensorParamV2.name)) {
    return by_version;
  }
  return true;  // a function of 2.12
}

std::string version_obstacle(const Library& library, const op::RopeParams& p) {
  const std::optional<bool> takes = takes_start_positions(library);
  if (!takes.has_value()) {
    return "the arguments of nvte_fused_rope_backward depend on TransformerEngine's version, which is unknown: its "
           "*.dist-info folder is not next to the library";
  }
  return p.start > 0 && !*takes ? fmt::format(
                                      "nvte_fused_rope_backward of TransformerEngine {} does not take start "
                                      "positions; 2.10 and newer do",
                                      library.version())
                                : std::string();
}

std::string obstacle(const Context& context, const Call& call, std::string_view function) {
  for (std::string problem : {layout_obstacle(call), size_obstacle(op::from_params<op::RopeParams>(call.c->params)),
                              context.library.lacks({function})}) {
    if (!problem.empty()) {
      return problem;
    }
  }
  return {};
}

/// The arguments that forward and backward have in common, in the interface's terms.
struct Geometry {
  explicit Geometry(const op::RopeParams& p)
      : s(static_cast<int>(p.seq)),
        b(static_cast<int>(p.batch)),
        h(static_cast<int>(p.heads)),
        d(static_cast<int>(p.dim)),
        d2(static_cast<int>(p.rotated())),
        format(p.layout == "bshd" ? kBshd : kSbhd),
        interleaved(p.interleaved),
        stride_s(format == kBshd ? h * d : b * h * d),
        stride_b(format == kBshd ? s * h * d : h * d) {}

  Handle heads(Operands& o, std::string_view port) const {
    return format == kBshd ? o.input(port, {b, s, h, d}).handle() : o.input(port, {s, b, h, d}).handle();
  }

  int s, b, h, d, d2;
  int format;
  bool interleaved;
  int stride_s, stride_b;
};

struct Shared {
  Shared(Operands& o, const op::RopeParams& p)
      : cu_seqlens(o.none().handle()),
        freqs(o.input("freqs", {p.start + p.seq, 1, 1, p.rotated()}).handle()),
        starts(o.has("start_positions") ? o.input("start_positions", {p.batch}).handle() : o.none().handle()) {}

  Handle cu_seqlens, freqs, starts;
};

Algorithm fwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::RopeParams>(call.c->params);
  return single_call(context, kRopeFwd.name, [p](Operands& o) -> Enqueue {
    const Geometry g(p);
    const Shared t(o, p);
    Handle x = g.heads(o, "x"), y = g.heads(o, "y");
    return [=, &o](Handle) {
      o.context().library.call(kRopeFwd, x, t.cu_seqlens, t.freqs, t.starts, y, g.format, g.interleaved, 1, 0, g.s, g.b,
                               g.h, g.d, g.d2, g.stride_s, g.stride_b, g.d, 1, o.stream());
    };
  });
}

Algorithm bwd_algorithm(const Context& context, const Call& call) {
  const auto p = op::from_params<op::RopeParams>(call.c->params);
  const bool takes_starts = takes_start_positions(context.library).value_or(true);
  return single_call(context, kRopeBwd.name, [p, takes_starts](Operands& o) -> Enqueue {
    const Geometry g(p);
    const Shared t(o, p);
    Handle dy = g.heads(o, "dy"), dx = g.heads(o, "dx");
    if (takes_starts) {
      return [=, &o](Handle) {
        o.context().library.call(kRopeBwd, dy, t.cu_seqlens, t.freqs, t.starts, dx, g.format, g.interleaved, 1, 0, g.s,
                                 g.b, g.h, g.d, g.d2, g.stride_s, g.stride_b, g.d, 1, o.stream());
      };
    }
    return [=, &o](Handle) {
      o.context().library.call(kRopeBwdBefore210, dy, t.cu_seqlens, t.freqs, dx, g.format, g.interleaved, 1, 0, g.s,
                               g.b, g.h, g.d, g.d2, g.stride_s, g.stride_b, g.d, 1, o.stream());
    };
  });
}

}  // namespace

// nvte_fused_rope_forward and _backward on dense tensors in SBHD or BSHD order, without context parallelism. The
// gradient has taken start positions since 2.10.
const Binding& rope_fwd() {
  static const TeBinding binding{
      {"transformer_engine", "rope_fwd"},
      [](const Context& context, const Call& call) { return obstacle(context, call, kRopeFwd.name); },
      &fwd_algorithm};
  return binding;
}

const Binding& rope_bwd() {
  static const TeBinding binding{
      {"transformer_engine", "rope_bwd"},
      [](const Context& context, const Call& call) {
        std::string problem = obstacle(context, call, kRopeBwd.name);
        return problem.empty() ? version_obstacle(context.library, op::from_params<op::RopeParams>(call.c->params))
                               : problem;
      },
      &bwd_algorithm};
  return binding;
}

}  // namespace numcheck::kernels::transformer_engine
