#include "report/wrong_member.hpp"

#include "report/members.hpp"

namespace numcheck::report {
namespace {

using nlohmann::json;
using namespace schema;

json ranges_json(const metric::WrongLines& lines) {
  json ranges = json::array();
  for (const metric::WrongLines::Range& range : lines.ranges) {
    ranges.push_back({range.first, range.last});
  }
  return ranges;
}

const Members<metric::WrongLines>& line_members() {
  using metric::WrongLines;
  static const Members<WrongLines> members = {
      {"touched", count("how many have wrong elements"), &at<&WrongLines::touched>},
      {"of", count("how many there are"), &at<&WrongLines::of>},
      {"ranges", list_of(list_of(count("first and last index"))), &ranges_json},
      {"range_count", count("ranges, of which the first 8 are listed"), &at<&WrongLines::range_count>},
      {"step", count("distance of the ranges, if there are 3 or more of one length and one distance; else 0"),
       &at<&WrongLines::step>}};
  return members;
}

const Members<metric::WrongTiles>& tile_members() {
  using metric::WrongTiles;
  static const Members<WrongTiles> members = {
      {"size", count("rows, and columns, of a tile"), &at<&WrongTiles::size>},
      {"touched", count("tiles that are wrong"), &at<&WrongTiles::touched>},
      {"of", count("tiles of the output"), &at<&WrongTiles::of>},
      {"first", list_of(count("matrix, row and column where the first of them begins")), &at<&WrongTiles::first>}};
  return members;
}

const Members<metric::WrongElements>& wrong_members() {
  using metric::WrongElements;
  static const Members<WrongElements> members = {
      {"count", count("elements beyond what a single element may be off, or with other bits where bits are judged"),
       &at<&WrongElements::count>},
      {"of", count("elements that were compared"), &at<&WrongElements::of>},
      {"matrices", described(rule_of(line_members()), "matrices of a batch that have wrong elements"),
       [](const WrongElements& wrong) { return object_of(line_members(), wrong.matrices); }},
      {"rows", described(rule_of(line_members()), "rows that have wrong elements"),
       [](const WrongElements& wrong) { return object_of(line_members(), wrong.rows); }},
      {"columns", described(rule_of(line_members()), "columns that have wrong elements"),
       [](const WrongElements& wrong) { return object_of(line_members(), wrong.columns); }}};
  return members;
}

}  // namespace

json wrong_json(const metric::WrongElements& wrong) {
  json object = object_of(wrong_members(), wrong);
  if (wrong.tiles.has_value()) {
    object["tiles"] = object_of(tile_members(), *wrong.tiles);
  }
  return object;
}

json wrong_rule() {
  json rule = rule_of(wrong_members());
  rule["properties"]["tiles"] = rule_of(tile_members());
  rule["properties"]["tiles"]["description"] =
      "the largest square tiles, aligned to their size, that are nearly all wrong while others are right";
  rule["description"] =
      "where elements are wrong by themselves, of an output that fails or ends as a warning; count 0: no single one "
      "is, "
      "but all together are";
  return rule;
}

}  // namespace numcheck::report
