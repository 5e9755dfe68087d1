#include "kernels/transformer_engine/block_cast.hpp"

#include <memory>
#include <optional>

#include <fmt/format.h>

#include "kernels/transformer_engine/mxfp8.hpp"
#include "kernels/transformer_engine/nvfp4.hpp"

namespace numcheck::kernels::transformer_engine {
namespace {

constexpr op::Mxfp8Names kCodes{"q", "scale_inv", "q_columnwise", "scale_inv_columnwise"};

/// The names of what dequantize reads: one of the layouts.
op::Mxfp8Names input_names(const op::DequantizeParams& p) {
  return p.layout == "columnwise" ? op::Mxfp8Names{{}, {}, "q", "q_scale_inv"}
                                  : op::Mxfp8Names{"q", "q_scale_inv", {}, {}};
}

/// What versions of the library differ in.
/// Source: TransformerEngine 2.9 to 2.20, common/cast/dispatch/quantize.cuh and
/// common/transpose/quantize_transpose_square_blockwise.cu.
std::string version_obstacle(const Library& library, const op::QuantizeParams& p) {
  const std::optional<bool> has_no_compact = library.at_least(2, 12);
  if (p.scale_layout == "compact" && has_no_compact.value_or(true)) {
    return fmt::format("TransformerEngine writes compact scales of blocks only up to 2.11, and this library is {}",
                       library.version());
  }
  const std::optional<bool> has_columns_alone = library.at_least(2, 20);
  if (p.recipe == "block_128x128" && p.layout == "columnwise" && !has_columns_alone.value_or(false)) {
    return fmt::format(
        "TransformerEngine writes the column-wise codes of 128 x 128 blocks alone only from 2.20 on, and this library "
        "is "
        "{}: set layout to both",
        library.version());
  }
  return {};
}

void configure(AttributeObject& config, const op::QuantizeParams& p) {
  config.set(kQuantizePowerOfTwo, p.has_power_of_two());
  config.set(kQuantizeEpsilon, static_cast<float>(p.epsilon));
  if (p.scale_layout == "compact") {
    config.set(kQuantizeBlockScaleFormat, static_cast<int>(kCompact));
  }
}

void add_codes(Operands& o, Tensor& tensor, const op::BlockLayout& layout, TensorParam data, TensorParam scale_inv) {
  if (!o.has(layout.codes)) {
    return;
  }
  const op::Port& codes = o.port(layout.codes);
  const op::Port& scales = o.port(layout.scales);
  tensor.set(data, o.data(layout.codes), data_type(codes.dtype), {codes.rows, codes.cols});
  tensor.set(scale_inv, o.data(layout.scales), kFloat32, {scales.rows, scales.ld});
}

Enqueue prepare_blocks(Operands& o, const op::QuantizeParams& p) {
  Handle x = o.tensor(o.data("x"), data_type(o.port("x").dtype), {p.rows, p.cols}).handle();
  Tensor& codes = o.none(p.recipe == "block_1x128" ? kBlock1d : kBlock2d);
  add_codes(o, codes, p.rowwise(), kRowwiseData, kRowwiseScaleInv);
  add_codes(o, codes, p.columnwise(), kColumnwiseData, kColumnwiseScaleInv);
  const auto config = std::make_shared<AttributeObject>(o.context().library, kQuantizeConfig);
  configure(*config, p);
  return [=, &o, q = codes.handle()](Handle) {
    o.context().library.call(kQuantizeV2, x, q, config->handle(), o.stream());
  };
}

Enqueue prepare_mxfp8(Operands& o, const op::QuantizeParams& p) {
  Handle x = o.tensor(o.data("x"), data_type(o.port("x").dtype), {p.rows, p.cols}).handle();
  const Mxfp8Tensor codes(o, kCodes);
  return [=, &o](Handle) {
    o.context().library.call(kQuantize, x, codes.handle(), o.stream());
    codes.copy_scales(o.stream());
  };
}

}  // namespace

std::string block_quantize_obstacle(const Context& context, const Call& call, const op::QuantizeParams& p) {
  constexpr int kEmulated = 100;  // from there on TransformerEngine turns these blocks into MXFP8
  if (std::string empty = empty_obstacle(call); !empty.empty()) {
    return empty;
  }
  if (p.recipe == "nvfp4") {
    return nvfp4_obstacle(context, p, call);
  }
  if (p.recipe == "mxfp8") {
    if (p.rounding != "up") {
      return "TransformerEngine rounds the scales of MXFP8 blocks up: set rounding to up";
    }
    std::string device = mxfp8_device_obstacle(context, "writes MXFP8 outputs");
    return device.empty() ? context.library.lacks({kQuantize.name}) : device;
  }
  if (std::string version = version_obstacle(context.library, p); !version.empty()) {
    return version;
  }
  if (context.info.sm >= kEmulated && !p.has_power_of_two()) {
    return "TransformerEngine accepts scales of FP8 blocks that are not powers of two only on devices before compute "
           "capability 10.0: set power_of_two to on";
  }
  return context.library.lacks(
      {kQuantizeV2.name, kCreateQuantizeConfig.name, kDestroyQuantizeConfig.name, kSetQuantizeConfig.name});
}

std::string block_dequantize_obstacle(const Context& context, const Call& call, const op::DequantizeParams& p) {
  if (std::string empty = empty_obstacle(call); !empty.empty()) {
    return empty;
  }
  if (p.recipe == "nvfp4") {
    return nvfp4_obstacle(context, p);
  }
  if (p.recipe != "mxfp8") {
    return "TransformerEngine's nvte_dequantize does not read codes with FP32 scales of blocks";
  }
  std::string device = mxfp8_device_obstacle(context, "dequantises MXFP8 codes");
  return device.empty() ? context.library.lacks({kDequantize.name}) : device;
}

Algorithm block_quantize_algorithm(const Context& context, const Call& call, const op::QuantizeParams& p) {
  if (p.recipe == "nvfp4") {
    return nvfp4_algorithm(context, p);
  }
  if (p.recipe == "mxfp8") {
    return single_call(
        context, kQuantize.name, [p](Operands& o) { return prepare_mxfp8(o, p); }, mxfp8_scratch(call, kCodes));
  }
  return single_call(context, kQuantizeV2.name, [p](Operands& o) { return prepare_blocks(o, p); });
}

Algorithm block_dequantize_algorithm(const Context& context, const op::DequantizeParams& p) {
  if (p.recipe == "nvfp4") {
    return nvfp4_algorithm(context, p);
  }
  const Prepare prepare = [p](Operands& o) -> Enqueue {
    const Mxfp8Tensor codes(o, input_names(p));
    Handle y = o.tensor(o.data("y"), data_type(o.port("y").dtype), {p.rows, p.cols}).handle();
    return [=, &o](Handle) {
      codes.pad_scales(o.stream());
      o.context().library.call(kDequantize, codes.handle(), y, o.stream());
    };
  };
  return single_call(context, kDequantize.name, prepare, padded_scale_bytes(p.rows, p.cols, p.layout == "rowwise"));
}

}  // namespace numcheck::kernels::transformer_engine
