// Maps of errors in the record: their letters, and that the schema describes them.
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/picture_members.hpp"
#include "report/record_shape.hpp"
#include "sample_record.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;

verdict::OutputPicture picture_with(const std::vector<metric::MapCell>& cells) {
  verdict::OutputPicture picture;
  picture.map.rows = 1;
  picture.map.cols = picture.map.across = static_cast<std::int64_t>(cells.size());
  picture.map.down = 1;
  picture.map.cells = cells;
  return picture;
}

op::Port port() {
  return {.name = "d", .dtype = core::Dtype::bf16, .rows = 8, .cols = 4, .ld = 4};
}

TEST(Picture, has_a_letter_per_doubling_of_error_over_bound) {
  std::vector<metric::MapCell> cells;
  for (const double ratio : {0.0, 1e-9, 0.0039, 0.5, 0.51, 1.0, 1.01, 2.0, 4.0, 65536.0, 65537.0, 1e300}) {
    cells.push_back({.compared = 1, .over_bound = ratio});
  }
  EXPECT_EQ(picture_json(picture_with(cells), port())["error_map"]["worst"], json::array({"0aahiijjkyzz"}));
}

TEST(Picture, tells_cells_without_a_number_apart) {
  const json map = picture_json(picture_with({{.compared = 0},
                                              {.compared = 2, .over_bound = 9, .unwritten = true, .mismatch = true},
                                              {.compared = 2, .over_bound = 9, .mismatch = true}}),
                                port())["error_map"];
  EXPECT_EQ(map["worst"], json::array({"?!#"}));
  EXPECT_EQ(map["mean"], json::array({"?mm"}));
  EXPECT_EQ(map["mean_unit"], 0);
}

TEST(Picture, means_are_shares_of_the_largest) {
  const json map = picture_json(
      picture_with(
          {{.compared = 1, .mean_error = -4}, {.compared = 1, .mean_error = 2}, {.compared = 1, .mean_error = 0.1}}),
      port())["error_map"];
  EXPECT_EQ(map["mean"], json::array({"asm"}));
  EXPECT_EQ(map["mean_unit"], 4);
}

TEST(Picture, is_part_of_a_record_that_fits_the_schema) {
  const plan::Case c = testing::sample_case("bf16", 64);
  verdict::CaseResult result = testing::sample_result(c, {{.measured = 9, .limit = 1}});
  verdict::OutputPicture picture = picture_with({{.compared = 32, .over_bound = 2}});
  picture.around_worst = verdict::OutputWindow{
      .first = 13, .rows = 1, .cols = 2, .got = {1, std::nan("")}, .expected = {1, 2}, .got_bits = {0x3f80, 0x7fff}};
  result.runs[0].outputs[0].picture = picture;
  json record = to_json(result);
  EXPECT_EQ(record_error(record), "");
  const json& window = record["runs"][0]["outputs"]["d"]["around_worst"];
  EXPECT_EQ(window["first"], json::array({3, 1}));
  EXPECT_EQ(window["got"], json::parse(R"([[1.0, "NaN"]])"));
  EXPECT_EQ(window["got_bits"], json::parse(R"([["0x3f80", "0x7fff"]])"));
  record["runs"][0]["outputs"]["d"]["error_map"]["cell_rows"] = "many";
  EXPECT_NE(record_error(record), "");
}

}  // namespace
}  // namespace numcheck::report
