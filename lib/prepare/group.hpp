// Everything that is computed once for the cases of a group: inputs, their roundings, references.
#pragma once

#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.hpp"
#include "op/reference.hpp"
#include "plan/case.hpp"
#include "prepare/catalog.hpp"
#include "prepare/given_inputs.hpp"
#include "prepare/grouping.hpp"
#include "prepare/row_operands.hpp"
#include "prepare/stage_times.hpp"
#include "worker/workers.hpp"

namespace numcheck::prepare {

/// One stored form of an input port: the bytes that the device gets.
struct StoredPort {
  std::shared_ptr<worker::SharedBlock> block;
  float scale = 1;  ///< code = sat(RN(value * scale))
  float scale_inv = 1;
};

/// One distinct rounding of all inputs: decoded operands and, once computed, the values of the outputs.
struct Rounding {
  std::vector<op::Operand> operands;  ///< of a group that streams, large ones have numbers only beside WholeRows
  std::vector<SharedDoubles> owners;
  std::vector<PackedOperand> packed;        ///< of such a group; parallel to operands, empty where these have numbers
  std::shared_ptr<const RowOperands> rows;  ///< the same, of such a group
  std::map<std::string, double, std::less<>> largest_code;  ///< per input port: max |code|
  std::map<std::string, double, std::less<>>
      smallest_code;       ///< min |code| that is not 0, where all codes were looked at
  bool identity = true;    ///< every port is FP32: equal to the unrounded inputs
  double reference_s = 0;  ///< what the values took; as soon as there are any
  std::promise<std::shared_ptr<const op::Values>> promise;
  std::shared_future<std::shared_ptr<const op::Values>> values;
  /// Its own yardsticks, if rounding changes how large operands are (loses_size); not valid otherwise. Computed when first asked for.
  std::shared_future<std::shared_ptr<const op::Yardsticks>> yardsticks;
};

/// What is common to the cases of a group. Built by prepare_group, completed by compute_references.
struct Group {
  const CatalogRow* row = nullptr;
  /// References are made of some rows at a time, by whoever compares them; all rows only when somebody asks for them.
  bool streams = false;
  op::Sample sample;  ///< all() unless the reference is too large
  op::Params params;
  std::vector<op::Operand> unrounded;  ///< as Rounding::operands
  std::vector<SharedDoubles> unrounded_owners;
  std::shared_ptr<const RowOperands> unrounded_rows;
  std::map<std::string, PackedOperand, std::less<>> drawn;  ///< FP32 numbers of operands that no case stores in FP32
  std::map<std::string, std::shared_ptr<Rounding>> roundings;
  std::vector<std::shared_ptr<Rounding>> in_order;  ///< the roundings, by the first case that uses each
  std::promise<std::shared_ptr<const op::Yardsticks>> yardstick_promise;
  std::shared_future<std::shared_ptr<const op::Yardsticks>> yardsticks;
  /// All cases compare bits, for which nobody needs yardsticks: who asks for them all the same computes them.
  bool yardsticks_on_demand = false;
  /// Values on the unrounded inputs on `total_sample`, for the total error of roundings that are not the identity.
  op::Sample total_sample;
  std::promise<std::shared_ptr<const op::Values>> total_promise;
  std::shared_future<std::shared_ptr<const op::Values>> total;
  StageTimes shared_times;  ///< of yardsticks and total values; as soon as there are any
  StageTimes times;         ///< of inputs and all references; once these are done
};

/// A case with its buffers, ready to be submitted. Its parts point at each other, so it is moved, never copied.
struct PreparedCase {
  PreparedCase() = default;
  explicit PreparedCase(const plan::Case& prepared) : c(&prepared), ports(c->op->ports(c->params, *c->mode)) {}
  PreparedCase(PreparedCase&&) noexcept = default;
  PreparedCase& operator=(PreparedCase&&) noexcept = default;
  PreparedCase(const PreparedCase&) = delete;
  PreparedCase& operator=(const PreparedCase&) = delete;
  ~PreparedCase() = default;

  const plan::Case* c = nullptr;
  std::vector<op::Port> ports;
  std::vector<worker::HostPort> host;  ///< parallel to ports
  std::vector<std::shared_ptr<worker::SharedBlock>> blocks;
  std::shared_ptr<Rounding> rounding;
  std::map<std::string, float, std::less<>> scale;  ///< per described port ("a", "b", "d"): quantising scale
  double inputs_s = 0;                              ///< what it needed and no earlier case of its group had
  bool begins_group = false;                        ///< no other case of its group comes before it
  bool begins_rounding = false;                     ///< nor one with the same rounding
};

struct PreparedGroup {
  std::shared_ptr<Group> group;
  std::vector<PreparedCase> cases;  ///< parallel to GroupPlan::cases
};

/// Memory that workers see.
using Allocate = std::function<std::shared_ptr<worker::SharedBlock>(std::size_t, worker::BlockUse)>;

/// How references are made. Those of rows that do not know of each other are not kept, nor are doubles of their operands
/// (may_stream says which).
enum class References { whole, of_rows_if_possible };

/// Generates the inputs of a group, but for those that are given, and stores them for each case. References with yardsticks
/// (those of products) and more than `flops_limit` operations will be computed on a sample of the outputs. Those of rows that
/// do not know of each other are made of some rows at a time, if that is asked for: the group streams.
[[nodiscard]] PreparedGroup prepare_group(const std::vector<plan::Case>& cases, const GroupPlan& plan, Catalog catalog,
                                          double flops_limit, const Allocate& allocate,
                                          References references = References::whole, const GivenInputs& given = {});

/// Whether references of the cases can be made of some rows at a time, and are large enough to be.
[[nodiscard]] bool may_stream(const std::vector<plan::Case>& cases, const GroupPlan& plan, const CatalogRow& row);
[[nodiscard]] bool may_stream(const plan::Case& c, const CatalogRow& row);

/// Makes the group one that streams: its futures compute what they hold when they are first asked. `main`: its main output.
void stream(Group& group, const op::Port& main);

/// Of a group that streams, all rows of a rounding's operands and references, and of those that are not rounded, as long as it
/// lives: for one case at a time, whoever asks, since nobody keeps memory for more. Throws what core::throw_if_cancelled does
/// while it waits. Does nothing for other groups.
class WholeRows {
 public:
  WholeRows(Group& group, Rounding& rounding);
  ~WholeRows();
  WholeRows(const WholeRows&) = delete;
  WholeRows& operator=(const WholeRows&) = delete;

 private:
  std::unique_lock<std::timed_mutex> one_;
  Group& group_;
  Rounding& rounding_;
};

/// Calls the body, once, or throws.
using RunPart = std::function<void(const std::function<void()>& body)>;

/// Computes values of every rounding, yardsticks and total values, each as one part, fulfilling the promises (with the
/// exception if one is thrown).
void compute_references(Group& group, const RunPart& run_part);

/// Before anybody waits for the group's yardsticks: they are computed by whoever asks for them first.
void compute_yardsticks_on_demand(Group& group);

/// Of every rounding that needs yardsticks of its own. Before anybody waits for them.
void choose_yardsticks(Group& group);

/// For cases that wait for references which nobody will compute, as memory ran out before: promises that are not fulfilled get the
/// exception.
void give_up_references(Group& group, const std::exception_ptr& why) noexcept;

/// Waits until all promises that concern a case of this rounding are fulfilled, with values or exceptions.
void wait_for_references(const Group& group, const Rounding& rounding);

/// What inputs and references took that the case needs and no earlier case of its group does. After wait_for_references.
[[nodiscard]] StageTimes times_of(const Group& group, const PreparedCase& prepared);

}  // namespace numcheck::prepare
