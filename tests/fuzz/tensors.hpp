// A tensor file in memory: its header, then the elements of all tensors.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "data/tensor_list.hpp"
#include "text.hpp"

namespace numcheck::fuzz {

inline void read_elements(const data::FileTensor& tensor) {
  if (data::dense_bytes(tensor).size() != tensor.bytes.size()) {
    std::abort();
  }
  try {
    if (data::values_of(tensor).size() != tensor.elements()) {
      std::abort();
    }
  } catch (const core::UsageError&) {  // not numbers: the bytes are read as codes of their size
    for (const core::Dtype dtype : {core::Dtype::fp8_e4m3, core::Dtype::bf16, core::Dtype::fp32, core::Dtype::fp64}) {
      if (tensor.element_bits == 8 * static_cast<std::uint64_t>(core::dtype_info(dtype).storage_bytes)) {
        (void)data::values_of(data::read_as(tensor, dtype));
      }
    }
  }
}

/// What is listed must lie within the file, or the sanitizer ends this.
inline void read_tensors(std::string_view file) {
  const core::SerialSection alone(true);  // more inputs in the same time
  const auto part = [file](std::uint64_t begin, std::size_t size) {
    if (begin > file.size() || size > file.size() - begin) {
      std::abort();
    }
    return std::string(file.substr(static_cast<std::size_t>(begin), size));
  };
  try {
    data::TensorList list = data::list_tensors({"folder/x.bin", file.size(), part});
    for (const data::FileTensor& tensor : data::place_tensors(std::move(list), std::as_bytes(std::span(file)))) {
      read_elements(tensor);
    }
  } catch (const core::IoError&) {
  } catch (const core::UsageError&) {
  }
}

/// A header, up to the first line break, and the data behind it: with a length that is right, which a fuzzer hardly hits.
struct HeaderAndData {
  std::string_view header;
  std::string_view data;
};
inline HeaderAndData split_header(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  return {text.substr(0, end), text.substr(std::min(end + 1, text.size()))};
}

}  // namespace numcheck::fuzz
