// The language of configs/attention_gates.json: what it means, and that mistakes in it are found.
#include "eligibility/gate_table.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace numcheck::eligibility {
namespace {

/// A table with one gate.
GateTable table(const std::string& refuses, const std::string& more = R"("sentence": "s", "source": "x")") {
  return decode_gates(R"({"comment": "c", "checked_with": {"cudnn": "9.19.0", "transformer_engine": "2.20.2"},
      "preference": [{"when": {"sm": {"from": 0}}, "order": ["unfused"], "source": "x"}],
      "gates": [{"selector": "cudnn", "name": "n", "refuses": )" +
                      refuses + ", " + more + "}]}");
}

/// b1 h4 sq128 sk256 d64 on sm_90, of an unknown cuDNN.
struct Asked {
  op::AttentionParams p;
  Circumstances at;
};

Asked asked() {
  Asked made;
  made.p.heads = 4;
  made.p.sq = 128;
  made.p.sk = 256;
  made.p.d = 64;
  made.at.sm = 90;
  return made;
}

Truth truth(const std::string& refuses, const Asked& a = asked()) {
  return evaluate(table(refuses).gates.front().refuses, Facts(a.p, a.at));
}

void expect_mistake(const std::string& refuses, const std::string& phrase,
                    const std::string& more = R"("sentence": "s", "source": "x")") {
  try {
    static_cast<void>(table(refuses, more));
    ADD_FAILURE() << refuses << " was accepted";
  } catch (const core::InternalError& error) {
    EXPECT_NE(std::string(error.what()).find(phrase), std::string::npos) << error.what();
  }
}

TEST(GateCondition, numbers_are_compared) {
  EXPECT_EQ(truth(R"({"sm": 90})"), Truth::yes);
  EXPECT_EQ(truth(R"({"sm": [80, 89]})"), Truth::no);
  EXPECT_EQ(truth(R"({"sm": {"from": 90, "to": 90}})"), Truth::yes);
  EXPECT_EQ(truth(R"({"sm": {"below": 90}})"), Truth::no);
  EXPECT_EQ(truth(R"({"sm": [80, {"from": 90, "below": 100}]})"), Truth::yes);
  EXPECT_EQ(truth(R"({"d": {"multiple_of": 64}})"), Truth::yes);
  EXPECT_EQ(truth(R"({"d": {"multiple_of": 24}})"), Truth::no);
  EXPECT_EQ(truth(R"({"window_left": -1})"), Truth::yes);
}

TEST(GateCondition, versions_are_compared) {
  Asked a = asked();
  a.at.cudnn = 91002;
  EXPECT_EQ(truth(R"({"cudnn": "9.10.2"})", a), Truth::yes);
  EXPECT_EQ(truth(R"({"cudnn": {"below": "9.10.2"}})", a), Truth::no);
  EXPECT_EQ(truth(R"({"cudnn": {"below": "9.11.0"}})", a), Truth::yes);
  EXPECT_EQ(truth(R"({"cudnn": {"from": "8.9.7", "to": "9.9.0"}})", a), Truth::no);
}

TEST(GateCondition, an_unknown_version_leaves_open_what_depends_on_it) {
  EXPECT_EQ(truth(R"({"cudnn": "9.10.2"})"), Truth::unknown);
  EXPECT_EQ(truth(R"({"not": {"cudnn": "9.10.2"}})"), Truth::unknown);
  EXPECT_EQ(truth(R"({"cudnn": "9.10.2", "sm": 80})"), Truth::no);
  EXPECT_EQ(truth(R"({"any": [{"cudnn": "9.10.2"}, {"sm": 90}]})"), Truth::yes);
  EXPECT_EQ(truth(R"({"any": [{"cudnn": "9.10.2"}, {"sm": 80}]})"), Truth::unknown);
}

TEST(GateCondition, words_and_flags_are_compared) {
  Asked a = asked();
  a.p.mask = "padding_causal_bottom_right";
  a.p.dv = 32;
  EXPECT_EQ(truth(R"({"mask": ["none", "padding_causal_bottom_right"]})", a), Truth::yes);
  EXPECT_EQ(truth(R"({"mask": "none"})", a), Truth::no);
  EXPECT_EQ(truth(R"({"storage": "bf16", "bias": "none", "softmax": "vanilla", "layout": "bshd"})", a), Truth::yes);
  EXPECT_EQ(truth(R"({"causal": true, "bottom_right": true, "padding": true, "different_heads": true})", a),
            Truth::yes);
  EXPECT_EQ(truth(R"({"different_lengths": true, "more_queries": false, "shared_keys": false, "softcap": false})", a),
            Truth::yes);
  EXPECT_EQ(truth(R"({"training": true})", a), Truth::no);
  EXPECT_EQ(truth(R"({"wider": 64, "narrower": 32, "dv": 32})", a), Truth::yes);
}

TEST(GateCondition, not_holds_if_one_of_its_terms_does_not) {
  EXPECT_EQ(truth(R"({"not": {"sm": 90, "sq": 128}})"), Truth::no);
  EXPECT_EQ(truth(R"({"not": {"sm": 90, "sq": 129}})"), Truth::yes);
  EXPECT_EQ(truth(R"({"any": [{"sq": 1}, {"not": {"sk": 1}}]})"), Truth::yes);
}

TEST(GateTable, mistakes_in_conditions_are_found) {
  expect_mistake("{}", "object with terms");
  expect_mistake("3", "object with terms");
  expect_mistake(R"({"sm_version": 90})", "unknown key \"sm_version\"");
  expect_mistake(R"({"sm": {"form": 90}})", "unknown key \"form\"");
  expect_mistake(R"({"sm": {}})", "not a range");
  expect_mistake(R"({"sm": {"from": 91, "to": 90}})", "not a range");
  expect_mistake(R"({"sm": {"to": 91, "below": 91}})", "not a range");
  expect_mistake(R"({"d": {"multiple_of": 0}})", "not a range");
  expect_mistake(R"({"sm": "90"})", "must be an integer");
  expect_mistake(R"({"sm": []})", "list with entries");
  expect_mistake(R"({"cudnn": 91002})", "must be a text");
  expect_mistake(R"({"cudnn": "9.10"})", "not a version");
  expect_mistake(R"({"mask": "diagonal"})", "unknown word \"diagonal\"");
  expect_mistake(R"({"storage": ["bf16", "bf61"]})", "unknown word \"bf61\"");
  expect_mistake(R"({"padding": 1})", "true or false");
  expect_mistake(R"({"any": {"sm": 90}})", "list with entries");
  expect_mistake(R"({"not": {"any": [{"smm": 90}]}})", "gates[0] (n).refuses.not.any: unknown key \"smm\"");
  expect_mistake(R"({"sm": 90, "sm": 80})", "two keys \"sm\"");
}

TEST(GateTable, mistakes_in_rows_are_found) {
  const std::string any = R"({"sm": 90})";
  expect_mistake(any, "source is missing", R"("sentence": "s")");
  expect_mistake(any, "must be a text", R"("sentence": "s", "source": "")");
  expect_mistake(any, "unknown key \"remark\"", R"("sentence": "s", "source": "x", "remark": "r")");
  expect_mistake(any, "unknown word \"maybe\"", R"("sentence": "s", "source": "x", "answer": "maybe")");
  expect_mistake(any, "the number \"dk\"", R"("sentence": "d is {dk}", "source": "x")");
  expect_mistake(any, "the number", R"("sentence": "d is {d", "source": "x")");
  EXPECT_THROW(static_cast<void>(decode_gates("{")), core::InternalError);
  EXPECT_THROW(static_cast<void>(decode_gates("[]")), core::InternalError);
}

TEST(GateTable, versions_have_cudnns_numbers) {
  EXPECT_EQ(cudnn_number("9.10.2"), 91002);
  EXPECT_EQ(cudnn_number("8.9.7"), 8907);
  EXPECT_EQ(cudnn_number("9.19.0"), 91900);
  for (const char* text : {"", "9", "9.10", "9.10.", "9.10.2.1", "9.10.2 ", "9..2", "a.b.c", "9.100.0", "-9.1.0"}) {
    EXPECT_EQ(cudnn_number(text), 0) << text;
  }
}

}  // namespace
}  // namespace numcheck::eligibility
