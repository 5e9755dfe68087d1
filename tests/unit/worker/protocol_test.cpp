// Messages: round trips, and refusals of invalid ones.
#include "worker/protocol.hpp"

#include <filesystem>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "fake.hpp"
#include "op/gemm.hpp"
#include "worker/channel.hpp"

namespace numcheck::worker {
namespace {

RunReport full_report() {
  RunReport report;
  report.label = "algo 67, split-k 4";
  report.details = {{"id", "67"}, {"tile", "128x128"}};
  report.workspace_bytes = 33554432;
  report.rounding = {.slices = 4,
                     .in_place = true,
                     .bias = true,
                     .gelu = true,
                     .attention = {.scores = true, .sink = true, .bias_sum = true},
                     .group_slices = {1, 4}};
  report.observed = model::PrecisionClass::tf32_rne;
  report.conversion = model::Conversion{core::Dtype::tf32, core::Rounding::nearest_away};
  report.unordered = {"d"};
  report.guards_intact = false;
  report.inputs_intact = false;
  report.guard_detail = "byte 3 after d";
  report.device_s = 1.25e-5;
  report.outputs = {{"d", {0x0123456789abcdefULL, 42}, false}, {"amax", {1, 2}, true}};
  report.fault_unseen = true;
  report.error = "none really";
  return report;
}

TEST(Protocol, hello_round_trip) {
  WorkerHello facts;
  facts.device = {"NVIDIA H200", 90, false, 1, "GPU-1", "580.65", 150'000'000'000ULL, 132};
  facts.libraries = {{"cublaslt", "13.1.0 (path)"}, {"cudnn", "9.19.0"}};
  const auto decoded = std::get<Hello>(decode_from_worker(encode(Hello{facts}))).facts;
  EXPECT_EQ(decoded.libraries, facts.libraries);
  EXPECT_EQ(decoded.device.name, "NVIDIA H200");
  EXPECT_EQ(decoded.device.sm, 90);
  EXPECT_EQ(decoded.device.index, 1);
  EXPECT_EQ(decoded.device.uuid, "GPU-1");
  EXPECT_EQ(decoded.device.driver, "580.65");
  EXPECT_EQ(decoded.device.memory_bytes, 150'000'000'000ULL);
  EXPECT_EQ(decoded.device.multiprocessors, 132);
}

TEST(Protocol, report_round_trip) {
  const RunReport sent = full_report();
  const auto got = std::get<RunDone>(decode_from_worker(encode(RunDone{9, sent})));
  EXPECT_EQ(got.task, 9U);
  EXPECT_EQ(got.report.label, sent.label);
  EXPECT_EQ(got.report.details, sent.details);
  EXPECT_EQ(got.report.rounding, sent.rounding);
  EXPECT_EQ(got.report.workspace_bytes, sent.workspace_bytes);
  EXPECT_EQ(got.report.observed, sent.observed);
  EXPECT_EQ(got.report.conversion, sent.conversion);
  EXPECT_FALSE(got.report.deterministic());
  EXPECT_EQ(got.report.unordered, sent.unordered);
  EXPECT_FALSE(got.report.guards_intact);
  EXPECT_FALSE(got.report.inputs_intact);
  EXPECT_EQ(got.report.guard_detail, sent.guard_detail);
  EXPECT_EQ(got.report.device_s, sent.device_s);
  ASSERT_EQ(got.report.outputs.size(), 2U);
  EXPECT_EQ(got.report.outputs[0].digest, sent.outputs[0].digest);
  EXPECT_FALSE(got.report.outputs[0].repeats);
  EXPECT_TRUE(got.report.outputs[1].repeats);
  EXPECT_TRUE(got.report.fault_unseen);
  EXPECT_EQ(got.report.error, sent.error);
}

TEST(Protocol, outcomes_round_trip) {
  for (const auto kind :
       {Outcome::Kind::done, Outcome::Kind::unsupported, Outcome::Kind::error, Outcome::Kind::crashed}) {
    const auto got = std::get<TaskEnded>(decode_from_worker(encode(TaskEnded{3, {kind, "because", 0.5}}))).outcome;
    EXPECT_EQ(got.kind, kind);
    EXPECT_EQ(got.reason, "because");
    EXPECT_EQ(got.device_s, 0.5);
  }
}

TEST(Protocol, task_round_trip) {
  const plan::Case c = fake::make_case("several", 5, {{"NVIDIA_TF32_OVERRIDE", "0"}});
  const std::vector<PortPlace> places{{4, 4096, 100}, {}};
  const std::vector<ArenaInfo> arenas{{4, 1 << 30}};
  const std::string text = encode_task(11, c, {.repeats = 3, .inject = "drop_k", .classify = false}, arenas, places);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto request = std::get<TaskRequest>(decode_from_coordinator(text, &fake::lookup));
  ASSERT_EQ(request.error, "");
  EXPECT_EQ(request.task, 11U);
  EXPECT_EQ(request.c.op, c.op);
  EXPECT_EQ(request.c.digest, c.digest);
  EXPECT_EQ(request.c.params, c.params);
  EXPECT_EQ(request.options.repeats, 3);
  EXPECT_EQ(request.options.inject, "drop_k");
  EXPECT_FALSE(request.options.classify);
  ASSERT_EQ(request.arenas.size(), 1U);
  EXPECT_EQ(request.arenas[0].id, 4U);
  EXPECT_EQ(request.arenas[0].bytes, 1U << 30);
  ASSERT_EQ(request.ports.size(), 2U);
  EXPECT_EQ(request.ports[0].name, "x");
  EXPECT_EQ(request.ports[1].name, "y");
  EXPECT_EQ(request.places[0].arena, 4U);
  EXPECT_EQ(request.places[0].offset, 4096U);
  EXPECT_EQ(request.places[0].bytes, 100U);
}

TEST(Protocol, question_round_trip) {
  const plan::Case first = fake::make_case("several", 5, {{"NVIDIA_TF32_OVERRIDE", "0"}});
  const plan::Case second = fake::make_case("add", 6);
  const std::vector<const plan::Case*> cases{&first, &second};
  const EncodedQuestion question = encode_question(12, cases, {.repeats = 3, .inject = "drop_k", .classify = false});
  EXPECT_EQ(question.cases, 2U);
  EXPECT_EQ(question.text.find('\n'), std::string::npos);
  const auto request = std::get<QuestionRequest>(decode_from_coordinator(question.text, &fake::lookup));
  EXPECT_EQ(request.task, 12U);
  EXPECT_EQ(request.options.inject, "drop_k");
  ASSERT_EQ(request.cases.size(), 2U);
  EXPECT_EQ(request.cases[0].c.digest, first.digest);
  EXPECT_EQ(request.cases[1].c.digest, second.digest);
  EXPECT_EQ(request.cases[1].error, "");
}

TEST(Protocol, a_question_is_about_as_many_cases_as_fit) {
  const std::vector<plan::Case> many(100, fake::make_case("add"));
  std::vector<const plan::Case*> cases;
  for (const plan::Case& c : many) {
    cases.push_back(&c);
  }
  EXPECT_EQ(encode_question(1, cases, {}).cases, kMaxCasesPerQuestion);
  const std::vector<plan::Case> large(8, fake::make_case("add", 4, {{"VARIABLE", std::string(20'000, 'x')}}));
  cases.clear();
  for (const plan::Case& c : large) {
    cases.push_back(&c);
  }
  const EncodedQuestion question = encode_question(1, cases, {});
  EXPECT_EQ(question.cases, 3U);
  EXPECT_LT(question.text.size(), kMaxMessageBytes);
}

TEST(Protocol, answers_fit_into_an_unread_socket) {
  auto [reader, writer] = Channel::make_pair();
  for (std::size_t i = 0; i < kMaxCasesPerQuestion; ++i) {
    const Answer answer{1, {Outcome::Kind::unsupported, std::string(1 << 20, '"'), 0}};
    ASSERT_TRUE(writer.send(encode(answer))) << i;
  }
}

TEST(Protocol, a_missing_or_extra_buffer_is_an_error_of_the_task) {
  for (const std::size_t places : {std::size_t{0}, std::size_t{1}, std::size_t{3}}) {
    const std::string text = encode_task(1, fake::make_case("add"), {}, {}, std::vector<PortPlace>(places));
    const auto request = std::get<TaskRequest>(decode_from_coordinator(text, &fake::lookup));
    EXPECT_NE(request.error.find("for 2 ports"), std::string::npos) << request.error;
  }
}

TEST(Protocol, a_case_of_an_unknown_op_is_an_error_of_the_task) {
  const std::string text = encode_task(1, fake::make_case("add"), {}, {}, {});
  const auto decoded = decode_from_coordinator(text, [](std::string_view) -> const op::Op* { return nullptr; });
  EXPECT_NE(std::get<TaskRequest>(decoded).error, "");
}

TEST(Protocol, refuses_every_report_with_a_field_missing_or_of_another_type) {
  const auto whole = nlohmann::json::parse(encode(RunDone{1, full_report()}));
  for (const auto& [key, value] : whole["report"].items()) {
    auto without = whole;
    without["report"].erase(key);
    EXPECT_THROW((void)decode_from_worker(without.dump()), ProtocolError) << key;
    auto other = whole;
    other["report"][key] = nlohmann::json::object({{"x", 1}});
    EXPECT_THROW((void)decode_from_worker(other.dump()), ProtocolError) << key;
  }
}

TEST(Protocol, refuses_invalid_messages) {
  for (const char* text :
       {"", "{", "[]", "null", "12", "{\"type\":5}", "{\"type\":\"run\"}", "{\"type\":\"ack\",\"task\":1}",
        "{\"type\":\"started\",\"task\":-1}", "{\"type\":\"started\",\"task\":1.5}", "\xff\xfe",
        "{\"type\":\"started\"}", R"({"type":"end","task":1,"outcome":{"kind":"timeout","reason":"","device_s":0}})",
        R"({"type":"end","task":1,"outcome":{"kind":"passed","reason":"","device_s":0}})",
        R"({"type":"end","task":1,"outcome":{"kind":"done","reason":"","device_s":-1}})",
        R"({"type":"hello","protocol":4,"device":{},"libraries":[]})",
        R"({"type":"hello","protocol":3,"device":{},"libraries":[]})", R"({"type":"answer","task":1})",
        R"({"type":"answer","task":1,"outcome":{"kind":"perhaps","reason":"","device_s":0}})"}) {
    EXPECT_THROW((void)decode_from_worker(text), ProtocolError) << text;
  }
  EXPECT_THROW((void)decode_from_worker(std::string(100'000, '[')), ProtocolError);
}

/// Why a message is refused; empty if it is not.
std::string refusal(const std::string& text) {
  const auto words_of = [](const auto& decode) -> std::string {
    try {
      return decode();
    } catch (const ProtocolError& error) {
      return error.what();
    }
  };
  const std::string from_worker = words_of([&text] { return (void)decode_from_worker(text), ""; });
  const std::string from_coordinator = words_of([&text] {
    const FromCoordinator message = decode_from_coordinator(text, [](std::string_view) { return &op::gemm(); });
    const auto* task = std::get_if<TaskRequest>(&message);
    const auto* question = std::get_if<QuestionRequest>(&message);
    return task != nullptr ? task->error : question != nullptr ? question->cases.at(0).error : "";
  });
  return from_worker.empty() || from_coordinator.empty() ? "" : from_worker + "; " + from_coordinator;
}

/// Seeds that are refused at the first member that a message has got since lead the fuzzer nowhere.
TEST(Protocol, seeds_of_the_fuzz_target_are_messages) {
  std::size_t seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TE_NUMCHECK_SOURCE_DIR "/tests/fuzz/seeds/protocol")) {
    EXPECT_EQ(refusal(core::read_regular_file(entry.path(), 1 << 20).text), "") << entry.path();
    ++seeds;
  }
  EXPECT_GT(seeds, 5U);
}

TEST(Protocol, refuses_an_unknown_precision_class) {
  auto message = nlohmann::json::parse(encode(RunDone{1, full_report()}));
  for (const char* name : {"tf33", "", "TF32"}) {
    message["report"]["observed_class"] = name;
    EXPECT_THROW((void)decode_from_worker(message.dump()), ProtocolError) << name;
  }
  message["report"]["observed_class"] = nullptr;
  EXPECT_EQ(std::get<RunDone>(decode_from_worker(message.dump())).report.observed, std::nullopt);
}

TEST(Protocol, refuses_slices_of_groups_that_are_no_numbers) {
  auto message = nlohmann::json::parse(encode(RunDone{1, full_report()}));
  nlohmann::json& slices = message["report"]["rounding"]["group_slices"];
  for (const char* wrong : {"4", "[1,\"4\"]", "[-1]", "[1.5]", "[4294967296]", "{}", "null"}) {
    slices = nlohmann::json::parse(wrong);
    EXPECT_THROW((void)decode_from_worker(message.dump()), ProtocolError) << wrong;
  }
}

TEST(Protocol, refuses_an_unknown_conversion) {
  auto message = nlohmann::json::parse(encode(RunDone{1, full_report()}));
  nlohmann::json& conversion = message["report"]["conversion"];
  for (const char* wrong : {R"({"format":"tf33","rounding":"toward_zero"})", R"({"format":"tf32","rounding":"down"})",
                            R"({"format":"tf32"})", R"({"format":1,"rounding":"toward_zero"})", "[]", "\"tf32\""}) {
    conversion = nlohmann::json::parse(wrong);
    EXPECT_THROW((void)decode_from_worker(message.dump()), ProtocolError) << wrong;
  }
  conversion = nullptr;
  EXPECT_EQ(std::get<RunDone>(decode_from_worker(message.dump())).report.conversion, std::nullopt);
}

TEST(Protocol, cuts_and_cleans_texts) {
  RunReport report = full_report();
  report.error = std::string(1'000'000, 'e');
  report.label = "bell \a and \xff\xfe";
  for (int i = 0; i < 1000; ++i) {
    report.details.emplace_back("key", std::string(2000, 'v'));
  }
  const std::string text = encode(RunDone{1, report});
  EXPECT_LT(text.size(), 128U << 10);
  const auto got = std::get<RunDone>(decode_from_worker(text)).report;
  EXPECT_EQ(got.error.substr(0, 3), "eee");
  EXPECT_EQ(got.label, "bell \\x07 and \\xff\\xfe");
  EXPECT_EQ(printable("abc", 2), "ab...");
}

}  // namespace
}  // namespace numcheck::worker
