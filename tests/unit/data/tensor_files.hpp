// Tensor files as a test writes them, right or wrong, and what comes of reading them.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "data/tensor_file.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace numcheck::data {

/// A safetensors file with that header, which may claim to have another length.
inline std::string safetensors_text(std::string_view header, std::string_view data, std::uint64_t claimed = 0) {
  const std::uint64_t length = claimed == 0 ? header.size() : claimed;
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  return text.append(header).append(data);
}

/// An .npy file of version 1 to 3.
inline std::string npy_text(std::string_view header, std::string_view data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  for (std::size_t i = 0, length = header.size(); i < (version == 1 ? 2U : 4U); ++i, length >>= 8) {
    text += static_cast<char>(length & 0xFF);
  }
  return text.append(header).append(data);
}

/// The bytes of numbers.
template <class T>
std::string bytes_of(std::initializer_list<T> numbers) {
  std::string text(numbers.size() * sizeof(T), '\0');
  std::memcpy(text.data(), std::data(numbers), text.size());
  return text;
}

/// What the reader says of a file, without "cannot read PATH: "; its notes follow, a line each. Empty if it is read.
inline std::string complaint(std::string_view content, const std::string& name = "x") {
  const test::TemporaryFolder folder;
  const std::string path = folder.write(name, content);
  std::string words;
  try {
    (void)TensorFile::open(path);
    return {};
  } catch (const core::Error& error) {
    words = error.what();
    for (const std::string& note : error.notes()) {
      words += "\n" + note;
    }
  }
  for (std::size_t at = words.find("cannot read " + path + ": "); at == 0; at = std::string::npos) {
    words.erase(0, path.size() + std::string_view("cannot read : ").size());
  }
  for (std::size_t at = words.find(folder.path().string()); at != std::string::npos;
       at = words.find(folder.path().string())) {
    words.replace(at, folder.path().string().size(), "FOLDER");
  }
  return words;
}

inline std::vector<double> numbers_of(const FileTensor& tensor) {
  const core::Buffer<double> values = values_of(tensor);
  return {values.span().begin(), values.span().end()};
}

}  // namespace numcheck::data
