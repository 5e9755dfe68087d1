// Parameters of the distributions, with the ranges that a plan may use.
#pragma once

#include <cstdint>
#include <string>

#include "op/field.hpp"

namespace numcheck::data {

inline constexpr double kLargest = 1e30;  ///< for means, limits and standard deviations: sums stay within FP32

struct NoParams {
  template <class V>
  void describe(V& /*visitor*/) {}
};

struct NormalParams {
  double sigma = 1;
  template <class V>
  void describe(V& v) {
    v.number("sigma", "s", sigma, {.minimum = 1e-30, .maximum = kLargest, .doc = "standard deviation"});
  }
};

struct UniformParams {
  double low = -1;
  double high = 1;
  template <class V>
  void describe(V& v) {
    v.number("low", "lo", low, {.minimum = -kLargest, .maximum = kLargest, .doc = "one end of the interval"});
    v.number("high", "hi", high, {.minimum = -kLargest, .maximum = kLargest, .doc = "the other end"});
  }
};

struct ConstantParams {
  double value = 1;
  template <class V>
  void describe(V& v) {
    v.number("value", "v", value, {.minimum = -3.4e38, .maximum = 3.4e38, .doc = "every element, rounded to FP32"});
  }
};

struct LargeMeanParams {
  double mean = 100;
  double sigma = 1;
  template <class V>
  void describe(V& v) {
    v.number("mean", "mu", mean, {.minimum = -kLargest, .maximum = kLargest, .doc = "mean"});
    v.number("sigma", "s", sigma, {.minimum = 1e-30, .maximum = kLargest, .doc = "standard deviation"});
  }
};

struct LogUniformParams {
  double low = -8;
  double high = 8;
  bool with_sign = true;
  template <class V>
  void describe(V& v) {
    v.number("low", "lo", low, {.minimum = -149, .maximum = 127, .doc = "one end of the exponent range"});
    v.number("high", "hi", high, {.minimum = -149, .maximum = 127, .doc = "the other end"});
    v.boolean("signed", "sg", with_sign, "half of the elements are negative");
  }
};

struct OutlierParams {
  double fraction = 0.01;
  double scale = 100;
  template <class V>
  void describe(V& v) {
    v.number("fraction", "f", fraction, {.minimum = 0, .maximum = 1, .doc = "share of the elements that are scaled"});
    v.number("scale", "x", scale, {.minimum = 0, .maximum = kLargest, .doc = "factor of those elements"});
  }
};

struct ExactParams {
  std::int64_t max = 4;
  template <class V>
  void describe(V& v) {
    v.integer("max", "max", max,
              {.minimum = 1,
               .maximum = 4096,
               .doc = "largest integer, for ops without an exact leg of their own; the others choose it"});
  }
};

struct TieParams {
  std::string format = "mixed";
  template <class V>
  void describe(V& v) {
    v.choice("format", "fmt", format, {"mixed", "tf32", "bf16", "fp16", "fp8_e4m3", "fp8_e5m2"},
             "format between whose neighbouring numbers the values lie halfway");
  }
};

struct SpecialParams {
  double fraction = 0.01;
  template <class V>
  void describe(V& v) {
    v.number("fraction", "f", fraction, {.minimum = 0, .maximum = 1, .doc = "share of the elements that are special"});
  }
};

struct StructuredParams {
  std::int64_t period = 64;
  template <class V>
  void describe(V& v) {
    v.integer("period", "p", period, {.minimum = 1, .maximum = 1e9, .doc = "consecutive elements of one sign"});
  }
};

struct RowsParams {
  double low = -12;
  double high = 4;
  template <class V>
  void describe(V& v) {
    // 2^10 times 2^100 is still far from FP32's limit.
    v.number("low", "lo", low, {.minimum = -100, .maximum = 100, .doc = "log2 of a row's smallest spread"});
    v.number("high", "hi", high, {.minimum = -100, .maximum = 100, .doc = "log2 of a row's largest spread"});
  }
};

struct ActivationParams {
  std::int64_t rank = 8;
  double noise = 0.25;
  std::int64_t outlier_every = 64;
  double outlier = 20;
  double drift = 0.5;
  double sink = 4;
  template <class V>
  void describe(V& v) {
    constexpr double kMost = 1e6;  // products of two such factors, and sums of products, stay within FP32
    v.integer("rank", "r", rank, {.minimum = 1, .maximum = 64, .doc = "factors that all channels have in common"});
    v.number("noise", "n", noise,
             {.minimum = 0, .maximum = 1, .doc = "share of the variance that is independent noise"});
    v.integer("outlier_every", "oe", outlier_every,
              {.minimum = 1, .maximum = 1e9, .doc = "one channel in so many is an outlier, the same in every row"});
    v.number("outlier", "o", outlier, {.minimum = 0, .maximum = kMost, .doc = "factor of the outlier channels"});
    v.number(
        "drift", "d", drift,
        {.minimum = -kMost, .maximum = kMost, .doc = "mean towards which the rows drift, from 0 at the first one"});
    v.number("sink", "s", sink,
             {.minimum = -kMost, .maximum = kMost, .doc = "what the first row of each matrix adds to its mean"});
  }
};

struct PatternParams {
  std::string format = "bf16";
  std::int64_t stride = 1;
  template <class V>
  void describe(V& v) {
    v.choice("format", "fmt", format, {"bf16", "fp16", "fp32"}, "format whose bit patterns are enumerated");
    v.integer("stride", "st", stride,
              {.minimum = 1, .maximum = 4294967295.0, .doc = "step between patterns; an odd one reaches all of them"});
  }
};

}  // namespace numcheck::data
