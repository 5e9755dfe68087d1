#include "data/file_format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace numcheck::data {
namespace {

using core::Dtype;

constexpr std::array kSafetensors = std::to_array<FileFormat>({
    {"BOOL", 8, ElementKind::boolean, {}},
    {"F4", 4, ElementKind::floating, {}},
    {"F6_E2M3", 6, ElementKind::floating, {}},
    {"F6_E3M2", 6, ElementKind::floating, {}},
    {"U8", 8, ElementKind::unsigned_integer, Dtype::uint8},
    {"I8", 8, ElementKind::signed_integer, {}},
    {"F8_E5M2", 8, ElementKind::floating, Dtype::fp8_e5m2},
    {"F8_E4M3", 8, ElementKind::floating, Dtype::fp8_e4m3},
    {"F8_E8M0", 8, ElementKind::floating, Dtype::e8m0},
    {"F8_E4M3FNUZ", 8, ElementKind::floating, {}},
    {"F8_E5M2FNUZ", 8, ElementKind::floating, {}},
    {"I16", 16, ElementKind::signed_integer, {}},
    {"U16", 16, ElementKind::unsigned_integer, {}},
    {"F16", 16, ElementKind::floating, Dtype::fp16},
    {"BF16", 16, ElementKind::floating, Dtype::bf16},
    {"I32", 32, ElementKind::signed_integer, Dtype::int32},
    {"U32", 32, ElementKind::unsigned_integer, {}},
    {"F32", 32, ElementKind::floating, Dtype::fp32},
    {"C64", 64, ElementKind::complex, {}},
    {"F64", 64, ElementKind::floating, Dtype::fp64},
    {"I64", 64, ElementKind::signed_integer, {}},
    {"U64", 64, ElementKind::unsigned_integer, {}},
});

/// Formats that ml_dtypes adds to NumPy, by their names there. NumPy 2.4 describes most as "<V2" or "<V1", but files that
/// name them are in use, and their meaning is plain.
constexpr std::array kNamed = std::to_array<FileFormat>({
    {"bfloat16", 16, ElementKind::floating, Dtype::bf16},
    {"float8_e4m3fn", 8, ElementKind::floating, Dtype::fp8_e4m3},
    {"float8_e5m2", 8, ElementKind::floating, Dtype::fp8_e5m2},
    {"float8_e8m0fnu", 8, ElementKind::floating, Dtype::e8m0},
});

/// By the letter and the bytes of a type description.
struct Lettered {
  char letter;
  std::uint64_t bytes;
  ElementKind kind;
  std::optional<Dtype> dtype;
};
constexpr std::array kLettered = std::to_array<Lettered>({
    {'b', 1, ElementKind::boolean, {}},
    {'f', 1, ElementKind::floating, Dtype::fp8_e5m2},  // of ml_dtypes 0.6; NumPy has none and cannot read it back
    {'f', 2, ElementKind::floating, Dtype::fp16},
    {'f', 4, ElementKind::floating, Dtype::fp32},
    {'f', 8, ElementKind::floating, Dtype::fp64},
    {'f', 12, ElementKind::floating, {}},  // long double of 32-bit x86 and of 64-bit machines
    {'f', 16, ElementKind::floating, {}},
    {'i', 1, ElementKind::signed_integer, {}},
    {'i', 2, ElementKind::signed_integer, {}},
    {'i', 4, ElementKind::signed_integer, Dtype::int32},
    {'i', 8, ElementKind::signed_integer, {}},
    {'u', 1, ElementKind::unsigned_integer, Dtype::uint8},
    {'u', 2, ElementKind::unsigned_integer, {}},
    {'u', 4, ElementKind::unsigned_integer, {}},
    {'u', 8, ElementKind::unsigned_integer, {}},
    {'c', 8, ElementKind::complex, {}},
    {'c', 16, ElementKind::complex, {}},
    {'c', 24, ElementKind::complex, {}},
    {'c', 32, ElementKind::complex, {}},
});

constexpr std::uint64_t kMaxRawBytes = std::uint64_t{1} << 31;  // of NumPy's types, whose sizes are C integers

constexpr NpyFormat trouble(NpyFormat::Trouble what) noexcept {
  return {what, {}};
}

/// Of a letter with a size.
NpyFormat lettered_format(char letter, std::uint64_t bytes) noexcept {
  if (letter == 'V' && bytes > 0 && bytes < kMaxRawBytes) {
    return {NpyFormat::Trouble::none, {{}, 8 * bytes, ElementKind::raw, {}}};
  }
  const auto* const found = std::ranges::find_if(
      kLettered, [=](const Lettered& each) { return each.letter == letter && each.bytes == bytes; });
  if (found == kLettered.end()) {
    return trouble(NpyFormat::Trouble::unknown);
  }
  return {NpyFormat::Trouble::none, {{}, 8 * bytes, found->kind, found->dtype}};
}

}  // namespace

std::span<const FileFormat> safetensors_formats() noexcept {
  return kSafetensors;
}

const FileFormat* find_safetensors_format(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kSafetensors, name, &FileFormat::name);
  return found == kSafetensors.end() ? nullptr : found;
}

std::string safetensors_format(Dtype dtype) {
  // As old readers know nothing of F8_E8M0 and of F4, which has two codes in a byte, both are written as bytes.
  const bool as_bytes = dtype == Dtype::e8m0 || dtype == Dtype::fp4_e2m1;
  const Dtype stored = as_bytes ? Dtype::uint8 : dtype == Dtype::tf32 ? Dtype::fp32 : dtype;
  return std::string(std::ranges::find(kSafetensors, stored, &FileFormat::dtype)->name);
}

NpyFormat npy_format(std::string_view description) noexcept {
  if (const auto* const named = std::ranges::find(kNamed, description, &FileFormat::name); named != kNamed.end()) {
    return {NpyFormat::Trouble::none, *named};
  }
  constexpr std::size_t kPrefix = 2;  // byte order and letter
  if (description.size() < kPrefix || std::string_view("<>|").find(description[0]) == std::string_view::npos) {
    return trouble(NpyFormat::Trouble::unknown);
  }
  const char letter = description[1];
  switch (letter) {
    case 'O':
      return trouble(NpyFormat::Trouble::objects);
    case 'S':
    case 'U':
      return trouble(NpyFormat::Trouble::text);
    case 'M':
    case 'm':
      return trouble(NpyFormat::Trouble::dates);
    default:
      break;
  }
  const std::string_view digits = description.substr(kPrefix);
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.begin(), digits.end(), bytes);
  if (error != std::errc() || end != digits.end()) {
    return trouble(NpyFormat::Trouble::unknown);
  }
  const NpyFormat result = lettered_format(letter, bytes);
  const bool swapped = description[0] == '>' && bytes > 1 && result.trouble == NpyFormat::Trouble::none;
  return swapped ? trouble(NpyFormat::Trouble::big_endian) : result;
}

}  // namespace numcheck::data
