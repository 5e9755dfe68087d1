// All hypotheses, in their order.
#include <span>
#include <vector>

#include "diagnose/hypothesis.hpp"

namespace numcheck::diagnose {

std::span<const CatalogueRow> catalogue() {
  static const std::vector<CatalogueRow> rows = [] {
    std::vector<CatalogueRow> all;
    for (const std::span<const CatalogueRow> part : {attention_product_rows(),
                                                     attention_window_rows(),
                                                     operand_rows(),
                                                     accumulation_rows(),
                                                     scale_rows(),
                                                     formula_rows(),
                                                     fused_function_rows(),
                                                     fitted_scale_rows(),
                                                     output_rows(),
                                                     rearranged_rows(),
                                                     changed_input_rows(),
                                                     quantised_product_rows(),
                                                     hadamard_operand_rows(),
                                                     misapplied_rows(),
                                                     sum_rows(),
                                                     norm_rows(),
                                                     eager_rows(),
                                                     rope_angle_rows(),
                                                     statistics_rows(),
                                                     keys_left_out_rows(),
                                                     attention_mask_rows(),
                                                     alibi_rows(),
                                                     added_line_rows(),
                                                     scaled_line_rows(),
                                                     moved_line_rows(),
                                                     wrong_place_rows(),
                                                     simulated_rows()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return rows;
}

}  // namespace numcheck::diagnose
