#include "verdict/output_picture.hpp"

#include <algorithm>
#include <cstddef>

#include "core/codec.hpp"
#include "core/error.hpp"
#include "core/trace.hpp"
#include "metric/reader.hpp"
#include "verdict/evaluate.hpp"
#include "verdict/expectation.hpp"
#include "verdict/output_model.hpp"

namespace numcheck::verdict {
namespace {

constexpr std::int64_t kWindow = 5;

/// The first of `wanted` neighbours, as centred on `at` as the ends allow.
std::int64_t first_around(std::int64_t at, std::int64_t wanted, std::int64_t size) {
  return std::clamp<std::int64_t>(at - wanted / 2, 0, size - wanted);
}

OutputWindow window_around(std::int64_t worst, const ComparedPort& compared, const metric::CompareInput& input) {
  const op::Port& port = *input.port;
  OutputWindow window;
  window.rows = std::min(kWindow, port.rows);
  window.cols = std::min(kWindow, port.cols);
  const std::int64_t row = worst / port.cols, matrix = row / port.rows * port.rows;
  const std::int64_t top = matrix + first_around(row - matrix, window.rows, port.rows);
  const std::int64_t left = first_around(worst % port.cols, window.cols, port.cols);
  window.first = top * port.cols + left;
  for (std::int64_t r = 0; r < window.rows; ++r) {
    for (std::int64_t c = 0; c < window.cols; ++c) {
      const std::int64_t index = window.first + r * port.cols + c;
      window.got.push_back(core::decode(metric::bits_at(input, index), port.dtype));
      window.got_bits.push_back(compared.bits_at(static_cast<std::size_t>(index)));
      window.expected.push_back(input.expected[static_cast<std::size_t>(index)] * input.model->output_scale);
    }
  }
  return window;
}

OutputPicture picture_of(const EvaluationContext& context, const ComparedPort& compared, const model::ErrorModel& model,
                         const OutputResult& output, bool is_wrong) {
  const core::Span span("picture", output.port);
  const auto yardsticks = is_wrong ? Expectation::Yardsticks::always : Expectation::Yardsticks::where_needed;
  const Expectation expectation(context, compared, model, yardsticks);
  OutputPicture picture;
  picture.map = metric::error_map(expectation.input());
  if (is_wrong && expectation.input().sample->all() && !output.statistics.worst.empty()) {
    picture.around_worst = window_around(output.statistics.worst.front().index, compared, expectation.input());
  }
  return picture;
}

}  // namespace

void add_pictures(const EvaluationContext& context, const worker::RunReport& run, model::PrecisionClass expected,
                  RunResult& result) {
  for (OutputResult& output : result.outputs) {
    const bool notable = !output.warning.empty() || !failure_of(output).empty();
    if (!notable && !context.all_maps) {
      continue;
    }
    const auto port = std::ranges::find(context.prepared->ports, output.port, &op::Port::name);
    if (port == context.prepared->ports.end()) {
      throw core::InternalError("a result is of an unknown output: " + output.port);
    }
    if (expected_values(context, *port).unpredictable) {
      continue;
    }
    const auto index = static_cast<std::size_t>(port - context.prepared->ports.begin());
    const ComparedPort compared(*context.prepared, context.host, index, run);
    output.picture = picture_of(context, compared, output_model(context, compared.port(), expected), output, notable);
  }
}

}  // namespace numcheck::verdict
