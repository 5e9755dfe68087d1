// What cases of a group share of their inputs, case by case.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "data/inputs.hpp"
#include "data/scaling.hpp"
#include "prepare/group.hpp"

namespace numcheck::prepare {

/// Prepares the cases of one group in their order.
class GroupBuilder {
 public:
  /// All must outlive the builder.
  GroupBuilder(Group& group, const Allocate& allocate, const GivenInputs& given)
      : group_(group), allocate_(allocate), given_(given) {}

  /// Generates, derives, rounds and stores what the case needs and no earlier case of the group had.
  [[nodiscard]] PreparedCase prepare(const plan::Case& c);
  /// After all cases of a group that streams, of which this is one.
  void finish(const plan::Case& c);

 private:
  /// An input as one case stores it.
  struct Stored {
    std::shared_ptr<worker::SharedBlock> block;
    float scale = 1;
    float scale_inv = 1;

    void scale_to(double largest, core::Dtype dtype) {
      scale = data::scale_from_amax(largest, dtype);
      scale_inv = data::scale_inverse(scale);
    }
  };

  /// Given ones are stored like generated ones.
  [[nodiscard]] bool is_generated(const op::Port& port) const { return given_.has(port) || port.is_generated(); }
  /// Draws of the port's distribution, once per group, or what is given.
  [[nodiscard]] SharedDoubles draws_of(const plan::Case& c, const op::Port& port, std::size_t number);
  /// Unrounded values: the draws, or what is derived from the unrounded inputs. Adds the operand to the group.
  [[nodiscard]] SharedDoubles values_of(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                        std::size_t number);
  [[nodiscard]] Stored store_generated(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                       std::size_t number);
  /// Whether the port is drawn block by block: nobody asks for its doubles.
  [[nodiscard]] bool is_drawn_in_blocks(const std::vector<op::Port>& ports, const op::Port& port) const;
  [[nodiscard]] Stored store_blocks(const plan::Case& c, const op::Port& port);
  /// Operands for an op whose derived inputs know only amaxes: of those that are drawn in blocks, the amax stands for all
  /// numbers; `owners` owns numbers of those whose amax is not known.
  [[nodiscard]] std::vector<op::Operand> with_amaxes(const plan::Case& c, const std::vector<op::Port>& ports,
                                                     const Rounding* rounding, std::vector<SharedDoubles>& owners);
  data::Drawn draw_blocks(const plan::Case& c, const op::Port& port, std::span<std::byte> bytes) const;
  /// An operand that is drawn in blocks joins those of the group.
  void note_drawn(const op::Port& port, const data::Drawn& drawn);
  /// Derived from the rounding's operands so far.
  [[nodiscard]] Stored store_derived(const plan::Case& c, const std::vector<op::Port>& ports, const Rounding& rounding,
                                     const op::Port& port, std::size_t number, const std::string& rounding_key);
  /// `stored` is parallel to the case's ports.
  [[nodiscard]] std::shared_ptr<Rounding> rounding_of(const plan::Case& c, PreparedCase& prepared,
                                                      std::vector<Stored>& stored);
  void add_operand(Rounding& rounding, const op::Port& port, const Stored& stored, bool packs);
  [[nodiscard]] std::shared_ptr<worker::SharedBlock> store(const std::string& key, const op::Port& port,
                                                           std::span<const double> values, float scale);
  /// An operand's scale port holds the dequantising factor, an output's the quantising one.
  [[nodiscard]] float scale_port_value(const plan::Case& c, PreparedCase& prepared, const op::Port& port);
  [[nodiscard]] double largest_output(const PreparedCase& prepared, const op::Port& output,
                                      const std::string& rounding_key);
  /// The largest magnitude of every output; of a group that streams, of some rows at a time.
  [[nodiscard]] std::map<std::string, double> largest_outputs(const PreparedCase& prepared,
                                                              const op::Port& output) const;

  Group& group_;
  const Allocate& allocate_;
  const GivenInputs& given_;
  std::map<std::string, SharedDoubles, std::less<>> draws_;
  std::map<std::string, SharedDoubles, std::less<>> values_;
  std::map<std::string, std::shared_ptr<worker::SharedBlock>> stored_;
  std::map<std::string, Stored> derived_;                      ///< per layout and rounding
  std::map<std::string, double> largest_;                      ///< per output and rounding
  std::map<std::string, PackedOperand, std::less<>> in_fp32_;  ///< of these, as a case stores them, or by themselves
  std::map<std::string, data::Drawn, std::less<>>
      in_blocks_;  ///< ports that are drawn so, with their largest magnitude
};

/// The first output.
[[nodiscard]] const op::Port* main_output(const std::vector<op::Port>& ports);
/// Whether an input has a row for each of the main output's, and is worth decoding again.
[[nodiscard]] bool has_rows_to_pack(const std::vector<op::Port>& ports, const op::Port& input);
/// "x|bf16": inputs with the same keys are rounded alike.
[[nodiscard]] std::string format_key(const op::Port& port);

}  // namespace numcheck::prepare
