#include "data/tensor_file.hpp"

#include <algorithm>
#include <utility>

#include "data/tensor_list.hpp"

namespace numcheck::data {

std::size_t FileTensor::elements() const noexcept {
  return static_cast<std::size_t>(product_of(shape).value_or(0));
}

TensorFile TensorFile::open(const std::filesystem::path& path) {
  TensorFile result{core::MappedFile(path)};
  const core::MappedFile& file = result.file_;
  TensorList list = list_tensors({path.string(), file.bytes().size(),
                                  [&file](std::uint64_t begin, std::size_t size) { return file.read(begin, size); }});
  file.check_size();
  result.texts_ = std::move(list.texts);
  result.tensors_ = place_tensors(std::move(list), file.bytes());
  return result;
}

const FileTensor* TensorFile::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(tensors_, name, &FileTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

}  // namespace numcheck::data
