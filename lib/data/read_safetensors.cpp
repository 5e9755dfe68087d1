// The header of a safetensors file, read event by event: nothing is built that the format does not have, however large
// or deeply nested the header is.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/printable.hpp"
#include "data/file_format.hpp"
#include "data/tensor_list.hpp"

namespace numcheck::data {
namespace {

constexpr std::uint64_t kMaxHeader = 100'000'000;  // as the format's own reader: tensor.rs, MAX_HEADER_SIZE
constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kTexts = "__metadata__";

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kShown = 80;
  return fmt::format("\"{}\"", core::printable(name, kShown));
}

[[noreturn]] void refuse_json(const FileSource& source, std::size_t place) {
  refuse(source, fmt::format("its header is not JSON in UTF-8 at byte {}", kLengthBytes + place));
}

/// What the header says of one tensor.
struct Entry {
  std::string name;
  std::optional<std::string> format;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

std::vector<std::int64_t> checked_shape(const FileSource& source, const Entry& entry) {
  std::vector<std::int64_t> shape;
  for (const std::uint64_t dimension : *entry.shape) {
    // What is larger than any dimension that is taken stays so.
    shape.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(dimension, kMaxElements + 1)));
  }
  if (!product_of(shape)) {
    refuse(source, fmt::format("tensor {} has more elements than any file holds: {}", in_quotes(entry.name),
                               fmt::join(*entry.shape, " x ")));
  }
  return shape;
}

const FileFormat& checked_format(const FileSource& source, const Entry& entry) {
  const FileFormat* const format = find_safetensors_format(*entry.format);
  if (format == nullptr) {
    std::vector<std::string_view> names;
    for (const FileFormat& each : safetensors_formats()) {
      names.push_back(each.name);
    }
    refuse(source, fmt::format("tensor {} has the unknown format {}; formats are {}", in_quotes(entry.name),
                               in_quotes(*entry.format), fmt::join(names, ", ")));
  }
  return *format;
}

/// The tensor, placed in the data, of which there are `data` bytes.
ListedTensor checked_tensor(const FileSource& source, Entry&& entry, std::uint64_t data) {
  constexpr std::size_t kPair = 2, kByte = 8;
  const auto need = [&](bool has, std::string_view member) {
    if (!has) {
      refuse(source, fmt::format("tensor {} has no {}", in_quotes(entry.name), member));
    }
  };
  need(entry.format.has_value(), "dtype");
  need(entry.shape.has_value(), "shape");
  need(entry.offsets && entry.offsets->size() == kPair, "data_offsets of two numbers");
  const std::uint64_t begin = entry.offsets->front(), end = entry.offsets->back();
  if (begin > end) {
    refuse(source, fmt::format("tensor {} ends at byte {}, before it begins at {}", in_quotes(entry.name), end, begin));
  }
  const FileFormat& format = checked_format(source, entry);
  ListedTensor listed{{}, begin, end - begin};
  listed.tensor.shape = checked_shape(source, entry);
  const std::uint64_t bits = static_cast<std::uint64_t>(*product_of(listed.tensor.shape)) * format.bits;
  if (bits % kByte != 0 || listed.size != bits / kByte) {
    refuse(source, fmt::format("tensor {} has {} bytes, but must have {} {}: {} of {}", in_quotes(entry.name),
                               listed.size, bits % kByte == 0 ? bits / kByte : bits,
                               bits % kByte == 0 ? "bytes" : "bits", shape_text(listed.tensor.shape), format.name));
  }
  if (end > data) {
    refuse(source,
           fmt::format("tensor {} ends at byte {} of the data, but the file has only {}; is it an incomplete copy?",
                       in_quotes(entry.name), end, data));
  }
  listed.tensor.name = std::move(entry.name);
  listed.tensor.format = format.name;
  listed.tensor.kind = format.kind;
  listed.tensor.element_bits = format.bits;
  listed.tensor.dtype = format.dtype;
  return listed;
}

/// Takes the header's events, and refuses the first that the format does not have there.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  /// `data` bytes follow the header.
  HeaderReader(const FileSource& source, std::uint64_t data) : source_(source), data_(data) {}

  bool null() override { unexpected(); }
  bool boolean(bool /*value*/) override { unexpected(); }
  bool number_integer(number_integer_t /*value*/) override { unexpected(); }  // negative ones
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { unexpected(); }
  bool binary(binary_t& /*value*/) override { unexpected(); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::shape && place_ != Place::offsets) {
      unexpected();
    }
    std::vector<std::uint64_t>& numbers = place_ == Place::shape ? *entry_.shape : *entry_.offsets;
    constexpr std::size_t kPair = 2;
    if (numbers.size() == (place_ == Place::shape ? kMaxDimensions : kPair)) {
      unexpected();
    }
    numbers.push_back(value);
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::texts) {
      if (!list_.texts.emplace(std::move(key_), std::move(value)).second) {
        refuse(source_, "its __metadata__ has a text of the same name twice");
      }
    } else if (place_ == Place::tensor && key_ == "dtype") {
      set(entry_.format, std::move(value));
    } else {
      unexpected();
    }
    return true;
  }

  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::start) {
      place_ = Place::tensors;
    } else if (place_ == Place::tensors && key_ == kTexts) {
      if (std::exchange(has_texts_, true)) {
        refuse(source_, "it has __metadata__ twice");
      }
      place_ = Place::texts;
    } else if (place_ == Place::tensors) {
      entry_ = {.name = std::move(key_), .format = {}, .shape = {}, .offsets = {}};
      place_ = Place::tensor;
    } else {
      unexpected();
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::tensor) {
      list_.tensors.push_back(checked_tensor(source_, std::move(entry_), data_));
    }
    place_ = place_ == Place::tensors ? Place::start : Place::tensors;
    return true;
  }

  bool start_array(std::size_t /*elements*/) override {
    const bool is_shape = key_ == "shape";
    if (place_ != Place::tensor || (!is_shape && key_ != "data_offsets")) {
      unexpected();
    }
    set(is_shape ? entry_.shape : entry_.offsets, {});
    place_ = is_shape ? Place::shape : Place::offsets;
    return true;
  }

  bool end_array() override {
    place_ = Place::tensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*last_token*/,
                   const nlohmann::json::exception& /*error*/) override {
    refuse_json(source_, position - 1);
  }

  /// In the header's order; places count from the end of the header.
  [[nodiscard]] TensorList take_list() noexcept { return std::move(list_); }

 private:
  enum class Place : std::uint8_t { start, tensors, tensor, shape, offsets, texts };

  template <class T>
  void set(std::optional<T>& member, T value) {
    if (member) {
      refuse(source_, fmt::format("tensor {} has {} twice", in_quotes(entry_.name), key_));
    }
    member = std::move(value);
  }

  [[noreturn]] void unexpected() const {
    switch (place_) {
      case Place::start:
        refuse(source_, "its header is not an object of tensors");
      case Place::tensors:
        refuse(source_, fmt::format("{} is not an object", in_quotes(key_)));
      case Place::texts:
        refuse(source_, fmt::format("{} of __metadata__ is not a text", in_quotes(key_)));
      case Place::tensor:
      case Place::shape:
      case Place::offsets:
        break;
    }
    refuse(source_, fmt::format("tensor {}: {} {}", in_quotes(entry_.name), in_quotes(key_), right_value()));
  }

  [[nodiscard]] std::string right_value() const {
    if (key_ == "dtype") {
      return "must be a text, such as \"BF16\"";
    }
    if (key_ == "shape") {
      return fmt::format("must be a list of at most {} whole numbers, none negative", kMaxDimensions);
    }
    return key_ == "data_offsets" ? "must be two whole numbers: where its bytes begin and end"
                                  : "is not a member of the format: dtype, shape and data_offsets are";
  }

  const FileSource& source_;
  std::uint64_t data_;
  Place place_ = Place::start;
  std::string key_;
  bool has_texts_ = false;
  Entry entry_;
  TensorList list_;
};

void refuse_equal_names(const FileSource& source, std::span<const ListedTensor> tensors) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const ListedTensor& each : tensors) {
    names.push_back(each.tensor.name);
  }
  std::ranges::sort(names);
  if (const auto twice = std::ranges::adjacent_find(names); twice != names.end()) {
    refuse(source, fmt::format("two tensors have the name {}", in_quotes(*twice)));
  }
}

/// Every byte of the data belongs to one tensor, as the format asks for.
void check_cover(const FileSource& source, std::span<const ListedTensor> tensors, std::uint64_t data) {
  std::uint64_t end = 0;
  for (const ListedTensor& each : tensors) {
    if (each.begin < end) {
      refuse(source, fmt::format("tensor {} begins at byte {} of the data, within another that ends at {}",
                                 in_quotes(each.tensor.name), each.begin, end));
    }
    if (each.begin > end) {
      refuse(source, fmt::format("bytes {} to {} of its data belong to no tensor", end, each.begin));
    }
    end = each.begin + each.size;
  }
  if (end != data) {
    refuse(source, fmt::format("it has {} bytes of data, but its tensors take {}", data, end));
  }
}

std::uint64_t header_length(const FileSource& source) {
  const std::string bytes = source.read(0, kLengthBytes);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeader) {
    refuse(source, fmt::format("its header would have {} bytes, but the format allows {}", length, kMaxHeader));
  }
  if (length > source.size - kLengthBytes) {
    refuse(source, fmt::format("its header would have {} bytes, but the file has {} in all; is it an incomplete copy?",
                               length, source.size));
  }
  return length;
}

}  // namespace

TensorList list_safetensors(const FileSource& source) {
  const std::uint64_t length = header_length(source);
  const std::uint64_t data_begin = kLengthBytes + length;
  const std::uint64_t data = source.size - data_begin;
  HeaderReader reader(source, data);
  const std::string header = source.read(kLengthBytes, static_cast<std::size_t>(length));
  if (const std::size_t end = header.find('\0');
      end != std::string::npos) {  // the parser takes it for the end of the text
    refuse_json(source, end);
  }
  nlohmann::json::sax_parse(header, &reader);
  TensorList list = reader.take_list();
  refuse_equal_names(source, list.tensors);
  std::ranges::stable_sort(list.tensors, {}, [](const ListedTensor& each) { return std::pair(each.begin, each.size); });
  check_cover(source, list.tensors, data);
  for (ListedTensor& each : list.tensors) {
    each.begin += data_begin;
  }
  return list;
}

}  // namespace numcheck::data
