// The visitor behind the `describe` list of a parameter struct:
//
//   struct FooParams {
//     std::int64_t rows = 1;
//     bool centred = false;
//     template <class V> void describe(V& v) {
//       v.integer("rows", "rows", rows, {.minimum = 0, .maximum = 1e9, .required = true, .doc = "number of rows"});
//       v.boolean("centred", "zc", centred, "add one to gamma");
//     }
//   };
//
// fields_of<FooParams>() collects the fields, from_params loads typed values, to_params stores them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "op/value.hpp"

namespace numcheck::op {

/// Range and documentation of a numeric field. Bounds are inclusive.
struct Range {
  double minimum = 0;
  double maximum = 0;
  bool required = false;
  std::string_view doc;
  bool storage_only = false;  ///< see Field::storage_only
};

class FieldCollector {
 public:
  void integer(std::string_view name, std::string_view tag, std::int64_t& member, const Range& range) {
    fields.push_back({name,
                      tag,
                      FieldKind::integer,
                      range.doc,
                      Value(member),
                      range.required,
                      range.minimum,
                      range.maximum,
                      {},
                      range.storage_only});
  }
  void number(std::string_view name, std::string_view tag, double& member, const Range& range) {
    fields.push_back({name,
                      tag,
                      FieldKind::number,
                      range.doc,
                      Value(member),
                      range.required,
                      range.minimum,
                      range.maximum,
                      {},
                      range.storage_only});
  }
  void boolean(std::string_view name, std::string_view tag, bool& member, std::string_view doc,
               bool storage_only = false) {
    fields.push_back({name, tag, FieldKind::boolean, doc, Value(member), false, 0, 0, {}, storage_only});
  }
  void choice(std::string_view name, std::string_view tag, std::string& member, std::vector<std::string_view> choices,
              std::string_view doc, bool storage_only = false) {
    fields.push_back({name, tag, FieldKind::choice, doc, Value(member), false, 0, 0, std::move(choices), storage_only});
  }

  std::vector<Field> fields;
};

class FieldLoader {
 public:
  explicit FieldLoader(const Params& params) : params_(params) {}
  void integer(std::string_view, std::string_view, std::int64_t& member, const Range&) { load(member); }
  void number(std::string_view, std::string_view, double& member, const Range&) { load(member); }
  void boolean(std::string_view, std::string_view, bool& member, std::string_view, bool = false) { load(member); }
  void choice(std::string_view, std::string_view, std::string& member, const std::vector<std::string_view>&,
              std::string_view, bool = false) {
    member = next<core::InternedString>().str();
  }

 private:
  template <class T>
  const T& next() {
    return std::get<T>(params_.at(index_++));
  }
  template <class T>
  void load(T& member) {
    member = next<T>();
  }
  const Params& params_;
  std::size_t index_ = 0;
};

class FieldStorer {
 public:
  void integer(std::string_view, std::string_view, std::int64_t& member, const Range&) { params.emplace_back(member); }
  void number(std::string_view, std::string_view, double& member, const Range&) { params.emplace_back(member); }
  void boolean(std::string_view, std::string_view, bool& member, std::string_view, bool = false) {
    params.emplace_back(member);
  }
  void choice(std::string_view, std::string_view, std::string& member, const std::vector<std::string_view>&,
              std::string_view, bool = false) {
    params.emplace_back(member);
  }

  Params params;
};

/// The fields of a parameter struct, in declaration order.
template <class P>
[[nodiscard]] const std::vector<Field>& fields_of() {
  static const std::vector<Field> fields = [] {
    P defaults;
    FieldCollector collector;
    defaults.describe(collector);
    return collector.fields;
  }();
  return fields;
}

/// Typed parameters from values; throws std::bad_variant_access or std::out_of_range on a mismatch, which is a bug in
/// the caller (the plan decoder has checked types and counts).
template <class P>
[[nodiscard]] P from_params(const Params& params) {
  P typed;
  FieldLoader loader(params);
  typed.describe(loader);
  return typed;
}

template <class P>
[[nodiscard]] Params to_params(P typed) {
  FieldStorer storer;
  typed.describe(storer);
  return storer.params;
}

}  // namespace numcheck::op
