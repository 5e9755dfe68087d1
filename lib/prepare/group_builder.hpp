// Makes the inputs of a group, case by case, keeping what cases share.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "prepare/group.hpp"

namespace numcheck::prepare {

class GroupBuilder {
 public:
  /// Both must outlive the builder.
  GroupBuilder(Group& group, const Allocate& allocate) : group_(group), allocate_(allocate) {}

  /// Generates, derives, rounds and stores what the case needs and no earlier case of the group had.
  [[nodiscard]] PreparedCase prepare(const plan::Case& c);

 private:
  /// An input as one case stores it.
  struct Stored {
    std::shared_ptr<worker::SharedBlock> block;
    float scale = 1;
  };

  /// Draws of the port's distribution, once per group.
  [[nodiscard]] SharedDoubles draws_of(const plan::Case& c, const op::Port& port, std::size_t number);
  /// Unrounded values: the draws, or what is derived from the unrounded inputs. Adds the operand to the group.
  [[nodiscard]] SharedDoubles values_of(const plan::Case& c, const op::Port& port, std::size_t number);
  [[nodiscard]] Stored store_generated(const plan::Case& c, const std::vector<op::Port>& ports, const op::Port& port,
                                       std::size_t number);
  /// Derived from the rounding's operands so far.
  [[nodiscard]] Stored store_derived(const plan::Case& c, const Rounding& rounding, const op::Port& port,
                                     std::size_t number, const std::string& rounding_key);
  /// `stored` is parallel to the case's ports.
  [[nodiscard]] std::shared_ptr<Rounding> rounding_of(const plan::Case& c, PreparedCase& prepared,
                                                      std::vector<Stored>& stored);
  void add_operand(Rounding& rounding, const op::Port& port, const Stored& stored);
  [[nodiscard]] std::shared_ptr<worker::SharedBlock> store(const std::string& key, const op::Port& port,
                                                           std::span<const double> values, float scale);
  /// An operand's scale port holds the dequantising factor, an output's the quantising one.
  [[nodiscard]] float scale_port_value(const plan::Case& c, PreparedCase& prepared, const op::Port& port);
  [[nodiscard]] double largest_output(const Rounding& rounding, const op::Port& output);

  Group& group_;
  const Allocate& allocate_;
  std::map<std::string, SharedDoubles, std::less<>> draws_;
  std::map<std::string, SharedDoubles, std::less<>> values_;
  std::map<std::string, std::shared_ptr<worker::SharedBlock>> stored_;
  std::map<std::string, double> largest_;  ///< per output and rounding
};

}  // namespace numcheck::prepare
