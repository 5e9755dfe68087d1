// The header of an .npy file: a dictionary as Python writes it, of which only what NumPy puts there is understood.
#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/printable.hpp"
#include "data/file_format.hpp"
#include "data/tensor_list.hpp"

namespace numcheck::data {
namespace {

constexpr std::uint64_t kMaxHeader =
    1 << 20;                      // NumPy's own have some hundred bytes; it reads 10 000 unless told to trust
constexpr std::size_t kByte = 8;  // bits

/// The three members of the dictionary.
struct Header {
  std::optional<std::string> description;
  std::optional<bool> column_major;
  std::optional<std::vector<std::int64_t>> shape;
};

[[noreturn]] void refuse_structured(const FileSource& source) {
  refuse_kind(source, "it is a structured array; save each field as an array of its own, for example:",
              {"import numpy",
               fmt::format("numpy.save(\"FIELD.npy\", numpy.load({})[\"FIELD\"])", python_string(source.name))});
}

/// Reads the dictionary from left to right.
class HeaderReader {
 public:
  HeaderReader(const FileSource& source, std::string_view text, std::size_t begin)
      : source_(source), text_(text), begin_(begin) {}

  Header read() {
    Header header;
    expect('{');
    while (!take('}')) {
      read_member(header);
      if (!take(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) {
      fail("nothing but spaces");
    }
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    refuse(source_,
           fmt::format("its header is not as NumPy writes it: expected {} at byte {}", expected, begin_ + at_));
  }

  void skip_space() noexcept {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  bool take(char wanted) noexcept {
    skip_space();
    if (at_ == text_.size() || text_[at_] != wanted) {
      return false;
    }
    ++at_;
    return true;
  }

  void expect(char wanted) {
    if (!take(wanted)) {
      fail(fmt::format("'{}'", wanted));
    }
  }

  /// A string in quotes of either kind; NumPy's never have a backslash.
  std::string read_string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') {
      fail("a string in quotes");
    }
    const std::size_t end = text_.find(quote, at_ + 1);
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    if (end == std::string_view::npos || content.find('\\') != std::string_view::npos) {
      fail("a string in quotes, without backslashes,");
    }
    at_ = end + 1;
    return std::string(content);
  }

  bool read_bool() {
    skip_space();
    for (const auto& [word, value] : {std::pair(std::string_view("True"), true), {"False", false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }

  std::int64_t read_dimension() {
    skip_space();
    std::int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range || value < 0) {
      fail("a dimension from 0 to 2^63 - 1");
    }
    if (error != std::errc()) {
      fail("a whole number");
    }
    at_ += static_cast<std::size_t>(end - begin);
    if (at_ < text_.size() && text_[at_] == 'L') {  // as Python 2 wrote large ones
      ++at_;
    }
    return value;
  }

  /// (), (3,), (3, 4), (3, 4, )
  std::vector<std::int64_t> read_shape() {
    std::vector<std::int64_t> shape;
    expect('(');
    while (!take(')')) {
      if (shape.size() == kMaxDimensions) {
        fail(fmt::format("at most {} dimensions, but there is another", kMaxDimensions));
      }
      shape.push_back(read_dimension());
      if (!take(',')) {
        if (shape.size() == 1) {
          fail("',' after the only dimension");
        }
        expect(')');
        break;
      }
    }
    return shape;
  }

  std::string read_description() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
      refuse_structured(source_);
    }
    return read_string();
  }

  template <class T>
  void set(std::optional<T>& member, T value) {
    if (member) {
      fail("no member a second time, but one ends");
    }
    member = std::move(value);
  }

  void read_member(Header& header) {
    const std::string key = read_string();
    expect(':');
    if (key == "descr") {
      set(header.description, read_description());
    } else if (key == "fortran_order") {
      set(header.column_major, read_bool());
    } else if (key == "shape") {
      set(header.shape, read_shape());
    } else {
      fail("one of 'descr', 'fortran_order' and 'shape'");
    }
  }

  const FileSource& source_;
  std::string_view text_;
  std::size_t begin_;  ///< of the text in the file
  std::size_t at_ = 0;
};

/// Where header and data begin.
struct Places {
  std::size_t header = 0;
  std::uint64_t data = 0;
};

Places read_places(const FileSource& source) {
  constexpr std::size_t kShort = 2, kLong = 4;  // bytes of the header's length, after two of the version
  const std::size_t version_at = kNpyMagic.size();
  const std::string start =
      source.read(0, static_cast<std::size_t>(std::min<std::uint64_t>(version_at + 2 + kLong, source.size)));
  const auto number_at = [&start](std::size_t place) { return static_cast<unsigned char>(start[place]); };
  if (start.size() < version_at + 2 + kShort) {
    refuse(source, "it ends within its first line; is it an incomplete copy?");
  }
  const unsigned major = number_at(version_at), minor = number_at(version_at + 1);
  if (major < 1 || major > 3 || minor != 0) {
    refuse(source, fmt::format("it has version {}.{} of .npy, but there are 1.0, 2.0 and 3.0", major, minor));
  }
  const std::size_t length_bytes = major == 1 ? kShort : kLong;
  const std::size_t header = version_at + 2 + length_bytes;
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes && header <= start.size(); ++i) {
    length |= static_cast<std::uint64_t>(number_at(version_at + 2 + i)) << (kByte * i);
  }
  if (header > source.size || length > source.size - header) {
    refuse(source, fmt::format("its header would have {} bytes, but the file has {} in all; is it an incomplete copy?",
                               length, source.size));
  }
  if (length > kMaxHeader) {
    refuse(source, fmt::format("its header has {} bytes; those of arrays of numbers have some hundred", length));
  }
  return {header, header + length};
}

std::string numpy_load(const FileSource& source) {
  return fmt::format("a = numpy.load({})", python_string(source.name));
}

/// The line that saves `array` under another name.
std::string numpy_save(const FileSource& source, std::string_view array) {
  const std::filesystem::path path(source.name);
  const std::string name = path.stem().string() + "-converted.npy";
  return fmt::format("numpy.save({}, {})", python_string((path.parent_path() / name).string()), array);
}

FileFormat checked_format(const FileSource& source, std::string_view description) {
  const NpyFormat found = npy_format(description);
  switch (found.trouble) {
    case NpyFormat::Trouble::none:
      return found.format;
    case NpyFormat::Trouble::objects:
      refuse_kind(source,
                  "it is an array of Python objects, a pickle, which can run any code when it is read; if they are "
                  "numbers, Python converts it:",
                  {"import numpy", fmt::format("a = numpy.load({}, allow_pickle=True)", python_string(source.name)),
                   numpy_save(source, "a.astype(\"<f8\")")});
    case NpyFormat::Trouble::text:
      refuse_kind(source, "it is an array of text, not of numbers", {});
    case NpyFormat::Trouble::dates:
      refuse_kind(source, "it is an array of dates or times; convert it with astype(\"<i8\")", {});
    case NpyFormat::Trouble::big_endian:
      refuse_kind(source, "its numbers are big-endian, and only little-endian ones are read; Python converts it:",
                  {"import numpy", numpy_load(source), numpy_save(source, "a.astype(a.dtype.newbyteorder(\"<\"))")});
    case NpyFormat::Trouble::unknown:
      break;
  }
  constexpr std::size_t kShown = 40;
  refuse(source,
         fmt::format("it has the unknown type \"{}\"; types are \"<f4\", \"<f2\", \"|V2\", \"|u1\", \"bfloat16\" and "
                     "their like",
                     core::printable(description, kShown)));
}

}  // namespace

TensorList list_npy(const FileSource& source) {
  const Places places = read_places(source);
  const std::string text = source.read(places.header, static_cast<std::size_t>(places.data - places.header));
  const Header header = HeaderReader(source, text, places.header).read();
  if (!header.description || !header.column_major || !header.shape) {
    refuse(source, fmt::format("its header has no {}", !header.description    ? "descr"
                                                       : !header.column_major ? "fortran_order"
                                                                              : "shape"));
  }
  const FileFormat format = checked_format(source, *header.description);
  const std::optional<std::int64_t> elements = product_of(*header.shape);
  const std::uint64_t element = format.bits / kByte;
  if (!elements || static_cast<std::uint64_t>(*elements) > std::numeric_limits<std::uint64_t>::max() / element) {
    refuse(source, fmt::format("its shape has more elements than any file holds: {}", shape_text(*header.shape)));
  }
  const std::uint64_t bytes = static_cast<std::uint64_t>(*elements) * element, there = source.size - places.data;
  if (there != bytes) {
    refuse(source, fmt::format("its array takes {} bytes, {} of {}, but the file has {} of data{}", bytes,
                               shape_text(*header.shape), *header.description, there,
                               there < bytes ? "; is it an incomplete copy?" : "; save one array to a file"));
  }
  ListedTensor listed{{}, places.data, bytes};
  listed.tensor = {.name = std::filesystem::path(source.name).stem().string(),
                   .format = *header.description,
                   .kind = format.kind,
                   .element_bits = format.bits,
                   .dtype = format.dtype,
                   .shape = *header.shape,
                   .column_major = *header.column_major &&
                                   std::ranges::count_if(*header.shape, [](auto each) { return each > 1; }) > 1,
                   .bytes = {}};
  TensorList list;
  list.tensors.push_back(std::move(listed));
  return list;
}

}  // namespace numcheck::data
