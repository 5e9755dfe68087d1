// Mistakes in the scales of blocks.
#include <vector>

#include "op/quantize.hpp"
#include "reference/block_quantize.hpp"
#include "reference/mistake_list.hpp"

namespace numcheck::reference {
namespace {

/// Those of scales that follow from x.
void add_scale_mistakes(Mistakes<op::QuantizeParams>& mistakes) {
  using P = op::QuantizeParams;
  const bool is_mxfp8 = mistakes.p.recipe == "mxfp8";
  if (mistakes.p.epsilon > 0) {
    mistakes.add("epsilon_ignored", "epsilon from 0", [](P& p) { p.epsilon = 0; });
  }
  if (is_mxfp8) {
    mistakes.add("other_rounding", "scales rounded up from those of floor(log2 amax)",
                 [](P& p) { p.rounding = p.rounding == "up" ? "floor" : "up"; });
  } else if (mistakes.p.has_power_of_two()) {
    mistakes.add("power_of_two_ignored", "scales that are powers of two from others",
                 [](P& p) { p.power_of_two = "off"; });
  } else {
    mistakes.add("power_of_two_added", "scales from scales rounded down to powers of two",
                 [](P& p) { p.power_of_two = "on"; });
  }
}

}  // namespace

std::vector<op::Mistake> block_quantize_mistakes(const op::Params& params) {
  Mistakes<op::QuantizeParams> mistakes(params);
  mistakes.add_instead("scale_ignored", "the scales from 1", &unscaled_block_codes);
  add_scale_mistakes(mistakes);
  if (mistakes.p.layout != "rowwise" && mistakes.p.recipe != "block_128x128") {
    mistakes.add_instead("columnwise_of_rowwise_scales", "column-wise codes from those of the row-wise scales",
                         &columnwise_of_rowwise_scales);
  }
  return mistakes.take();
}

}  // namespace numcheck::reference
