// The ops that plans and messages of the fuzz targets may name.
#pragma once

#include <string_view>

#include "op/gemm.hpp"
#include "op/op.hpp"
#include "op/quantize.hpp"
#include "op/softmax_fwd.hpp"
#include "plan/plan.hpp"

namespace numcheck::fuzz {

inline const op::Op* lookup(std::string_view name) {
  for (const op::Op* one : {&op::gemm(), &op::softmax_fwd(), &op::quantize()}) {
    if (one->name == name) {
      return one;
    }
  }
  return nullptr;
}

inline const plan::Vocabulary& vocabulary() {
  static const plan::Vocabulary words{
      {&op::gemm(), &op::softmax_fwd(), &op::quantize()}, {"cublaslt", "cuda", "sim"}, &lookup};
  return words;
}

}  // namespace numcheck::fuzz
