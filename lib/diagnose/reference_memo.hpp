// What the reference makes of a subject as declared, kept for the trials that change neither its inputs nor its parameters.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "op/reference.hpp"
#include "plan/case.hpp"
#include "prepare/given_inputs.hpp"

namespace numcheck::diagnose {

/// Values and yardsticks of the references that were computed last. For several threads.
class ReferenceMemo {
 public:
  struct Results {
    std::shared_ptr<const op::Values> values;
    std::shared_ptr<const op::Yardsticks> yardsticks;
  };

  /// Those of that case with those tensors and that sample; nulls if they are not kept.
  [[nodiscard]] Results find(const plan::Case& c, const prepare::GivenInputs& inputs, const op::Sample& sample) const;
  /// Keeps them in place of the oldest.
  void keep(const plan::Case& c, const prepare::GivenInputs& inputs, const op::Sample& sample, Results results);

 private:
  struct Entry {
    const op::Op* op = nullptr;
    const op::Mode* mode = nullptr;
    op::Params params;
    prepare::GivenInputs inputs;
    op::Sample sample;
    Results results;
  };
  /// Null: it is not kept. Precondition: the mutex is held.
  [[nodiscard]] const Entry* entry_of(const plan::Case& c, const prepare::GivenInputs& inputs,
                                      const op::Sample& sample) const;

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

[[nodiscard]] op::Values copy_of(const op::Values& values);
[[nodiscard]] op::Yardsticks copy_of(const op::Yardsticks& yardsticks);

}  // namespace numcheck::diagnose
