// Lengths of sequences as tensors say them: as they are, or as where sequences begin.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/tensor_file.hpp"
#include "diagnose/subject.hpp"

namespace numcheck::diagnose {

/// Why tensors do not fit a layout, as a sentence; readings end with it.
struct Misfit {
  std::string why;
};

struct SequenceLengths {
  std::vector<std::int64_t> lengths;
  std::int64_t left = 0;  ///< thd: tokens after the last sequence, which belong to none
};

/// thd: the sequences follow one another in so many tokens. Numbers that begin with 0, do not decrease and do not add up to all
/// tokens say where sequences begin, and where the last one ends (cu_seqlens). Throws Misfit.
[[nodiscard]] SequenceLengths lengths_of_tokens(std::string_view port, const data::FileTensor& tensor,
                                                std::int64_t tokens);

/// Other layouts: rows of so many positions each. One number more than there are sequences, the first one 0: where they begin.
/// Throws Misfit.
[[nodiscard]] SequenceLengths lengths_of_rows(std::string_view port, const data::FileTensor& tensor,
                                              std::int64_t sequences, std::int64_t positions);

/// Of tensors that are read as the ports of the case are: throws core::UsageError if a sequence is longer than its rows, or, in
/// thd, where rows are as long as sequences, of another length than the parameters make it.
void require_lengths_that_fit(const Subject& subject);

/// That outputs of attention_fwd beyond the lengths of queries are not judged; empty if there are none, or all are given.
[[nodiscard]] std::string padding_note(const Subject& subject);

}  // namespace numcheck::diagnose
