// From tensors to an explanation: the verdict as declared, and which hypotheses turn a failure into a pass.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/hypothesis.hpp"
#include "diagnose/subject.hpp"
#include "op/replay.hpp"

namespace numcheck::diagnose {

/// A hypothesis with the tensors that it was tried on: those given, or a part of them.
struct Applied {
  Subject subject;
  Trial trial;
};

/// How well a hypothesis explains the output.
struct Explanation {
  std::string name, family, cause, remedy;  ///< of the hypothesis
  bool passes = false;                      ///< it explains the output
  bool all_gates = false;                   ///< because every gate of the output passes under it; otherwise by its bits
  double share = 0;                         ///< of the squared error that it explains: 1 is all of it
  double rms_left = 0;                      ///< rms of the error that is left
  double cosine = 0;                        ///< of the angle between the output and what it predicts
  std::uint64_t equal_bits = 0;             ///< elements that are the nearest number to what it predicts
  std::uint64_t of = 0;                     ///< elements that were compared
  std::string failing;                      ///< the first gate that fails, or why it could not be tried; else empty
  bool is_consistent_only = false;          ///< it allows for such errors, but predicts none of them
  std::optional<op::Replay> replay = {};    ///< by whose bits an intermediate rounding is shown
  bool is_finding = false;                  ///< of the op itself, which has measured `share` and nothing else
  bool is_fitted = false;                   ///< as in Hypothesis
  bool is_pair = false;                     ///< two causes
  std::uint64_t others_wrong = 0;           ///< outputs besides this one that fail under it
  std::string contradicts = {};             ///< "o: G1 bound 9 > 1" of one that is right as declared; empty: none
  std::string shared_cause = {};            ///< as in Hypothesis
  std::shared_ptr<const Applied> applied = {};  ///< null unless it passes, and of findings
};

/// "computed again so, 682 of 682 elements have the same bits"
[[nodiscard]] std::string evidence_of(const op::Replay& replay);

struct Diagnosis {
  enum class Kind {
    correct,      ///< every output passes as declared
    undecided,    ///< no gate fails, but passing proves too little: `declared.failing` says why
    misbehaved,   ///< every output passes, but the run wrote where it must not, or its bits change from run to run
    explained,    ///< at least one hypothesis makes it pass
    unexplained,  ///< none does
  } kind = Kind::correct;
  verdict::RunResult declared;
  FactsByPort elements;       ///< as declared
  std::string port;           ///< the output that is explained; empty if none is wrong
  std::string remedy;         ///< against what the run declares and thereby explains; empty: nothing, or none is known
  bool is_of_blocks = false;  ///< only the slopes of single blocks or heads are wrong in it
  double rms_error = 0;       ///< of it, as declared
  double rms_output = 0;  ///< of its numbers: the error that zeros leave, by which a factor near 0 explains much of any
  double cosine = 0;      ///< of the angle between it and what is expected as declared
  std::vector<Explanation> passing;    ///< the best first; those of equal rank cannot be told apart
  std::vector<Explanation> excluded;   ///< the others that were tried, the closest first
  std::uint64_t pairs_tried = 0;       ///< pairs of causes that do not explain it either
  bool pairs_left = false;             ///< there was no time for all pairs
  std::vector<std::string> untried;    ///< names of causes for which there was no time
  std::uint64_t equal_bits = 0;        ///< as in Explanation, as declared
  std::uint64_t of = 0, unjudged = 0;  ///< elements as declared, and those of them that any number may be in
  bool is_drawn = false;               ///< the output is unpredictable
  bool is_narrow = false;              ///< the output's own rounding hides most of what is left: bits decide
};

/// Share of the squared error as declared, or of what zeros leave if that is less: what an explanation tells of the output beyond
/// its size. Negative if it leaves more.
[[nodiscard]] double real_share(const Diagnosis& diagnosis, const Explanation& explanation);

/// What a diagnosis may cost.
struct Effort {
  double declared_flops = 1.5e12;  ///< products of more operations are judged on a sample
  double trial_flops = 2e9;        ///< of larger ones, hypotheses are tried on a part
  double singles_s = 20;           ///< for single causes, the likely ones first
  double pairs_s = 5;  ///< for pairs of causes; of large cases for everything, but a second at least for pairs
};

[[nodiscard]] Diagnosis diagnose(const Subject& subject, const Effort& effort);

}  // namespace numcheck::diagnose
