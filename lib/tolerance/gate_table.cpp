#include "tolerance/gate_table.hpp"

#include <algorithm>
#include <array>

namespace numcheck::tolerance {
namespace {

// In the order of the enumeration, which is that of judging.
constexpr std::array kGates = {
    GateInfo{Gate::pattern, "G0 pattern",
             "elements that are NaN or infinite where the reference is not, or the reverse", "0",
             "overflow that is not asked for, NaN from uninitialised memory, infinities that are lost"},
    GateInfo{Gate::unwritten, "G0 unwritten", "elements that still hold the pattern that the output was filled with",
             "0", "tiles and rows that no thread computed"},
    GateInfo{Gate::guards, "G0 guards", "whether bytes around outputs, or inputs, were changed", "0",
             "writes out of bounds"},
    GateInfo{Gate::determinism, "G0 determinism", "whether repeated runs differ in any bit", "0",
             "races; outputs that a backend declares as summed in any order are excepted"},
    GateInfo{Gate::precision_class, "class", "the precision class that ran, identified by its bits",
             "the one that the request and NVIDIA_TF32_OVERRIDE should give, or a better one",
             "TF32 where FP32 was requested"},
    GateInfo{Gate::exact, "exact", "on the exact leg, elements that differ from the rounded reference in any bit", "0",
             "lost, doubled or misplaced terms, however small"},
    GateInfo{Gate::bound, "G1 bound", "largest |e| / B, B the bound of the declared arithmetic and output rounding",
             "1", "whatever no correct kernel can do: missing tiles, wrong operands, wrong scales"},
    GateInfo{Gate::rms, "G2 rms",
             "root mean square of e / sqrt(V) of judged elements, V the predicted second moment of e",
             "kappa, the model's safety factor", "arithmetic that is coarser than declared in all elements"},
    GateInfo{
        Gate::quantile, "G2 q999",
        "99.9 % quantile of |e| / sqrt(V); for 16- and 8-bit outputs only if predicted errors of more elements are as "
        "large as the rounding, which by itself is sqrt(3) at most",
        "3.3 kappa", "arithmetic that is coarser in some elements: a row, a tile, a tail"},
    GateInfo{Gate::largest, "G2 max", "of FP32 outputs, largest |e| / sqrt(V)",
             "lambda(N) times 2, or twice the rms, and kappa lambda(N) at most; lambda(N)^2 = 2 ln(2 N / 1e-6)",
             "single wrong elements within the bound"},
    GateInfo{
        Gate::slope, "G3 slope",
        "slope of e on the value: how much of the result is lost on average; for 16- and 8-bit outputs, of the "
        "results' distance from the nearest number",
        "1.5 times the predicted truncation, and the slope's standard error, from the scatter of rows and columns and "
        "from what predicted errors leave",
        "truncation, a wrong scale, terms that are always left out"},
    GateInfo{
        Gate::flips, "G4 flips",
        "of the elements of a 16- or 8-bit output that predicted errors rarely move to another number, the share "
        "that is not the nearest number to the exact result",
        "the share that errors of twice the predicted variance would move, and its statistical error",
        "noise, a scale or a detour before the output is rounded, far below its own rounding errors; rounding twice, "
        "and truncating instead of rounding"},
    GateInfo{Gate::rounding_element, "G4 element",
             "for 16- and 8-bit outputs, largest |e| over half an ulp and the error allowed before rounding", "1",
             "an element that is not the nearest number of its format"},
    GateInfo{Gate::lattice, "lattice",
             "of matrix products in FP32, share of the elements that end in 10, 13 or 16 zeros although the exact "
             "result does not, "
             "whichever is closest to its limit",
             "what the bits that are kept leave to chance, and its statistical error",
             "results that were stored in TF32, FP16, BF16 or an FP8 accumulator before FP32"},
    GateInfo{Gate::homogeneity, "homogeneity",
             "of the row, column, 64 x 64 tile or matrix with the largest errors, the root of what the mean of e^2 / V "
             "exceeds 5.5 by, or 5.5 times that of the rest; for 16- and 8-bit outputs, of errors across the "
             "boundary between two numbers",
             "what that exceeds once in 10^6 comparisons of independent errors",
             "arithmetic that is coarser, or a scale that is wrong, in one row, column, tile or matrix"},
    GateInfo{Gate::block_slope, "block slope",
             "of attention's outputs, by what factor, less 1, the 64 successive rows of one head, or the whole head, "
             "that are "
             "closest to their limit are too large or too small",
             "what rounded weights and sums may do to whole rows, and lambda(N) standard errors as the rows show them, "
             "N the "
             "number of blocks and heads",
             "a wrong scale in one head or one tile, or in some heads more than in others"},
    GateInfo{
        Gate::line_factor, "line factor",
        "of matrix products whose terms have one sign, by what factor, less 1, the row, column or 64 x 64 tile that "
        "is closest to its limit is too large or too small beside the median of its kind",
        "what another order of summation may do, and 2 lambda(N) standard errors as all of its kind show them, N "
        "the number of rows, columns and tiles",
        "a wrong scale of one of them, where all lose so much that errors of single elements tell nothing"},
    GateInfo{
        Gate::replayed_scale, "G5 scale",
        "of matrix products whose rounding errors are those of the hardware's model, replayed on up to 1024 outputs, "
        "the factor, less 1, that all sums carry",
        "what rounded factors may do, and what the outputs that the model does not explain leave open",
        "a wrong scale, far below what the arithmetic's own errors hide"},
    GateInfo{
        Gate::replayed_amax, "G5 amax", "of matrix products whose amax is stored, its relative error",
        "kappa lambda(N) times the error of the N largest results, up to 32, replayed with the hardware's model, and "
        "what rounded factors may do",
        "an amax of other arithmetic, of scaled or stored numbers, or of another tensor"},
    GateInfo{
        Gate::block_rms, "G2 block rms",
        "where only a sample is expected, the same of all elements: root mean square of sums of e over blocks of 256 "
        "columns, with random signs, over their own sqrt(sum V)",
        "kappa", "arithmetic that is coarser than declared outside the sample"},
    GateInfo{Gate::block_largest, "G2 block max", "the largest of these sums over its sqrt(sum V)", "kappa lambda(N)",
             "wrong tiles, rows and most single elements that hold no sample"},
    GateInfo{Gate::amax_of_all, "amax of all",
             "where only a sample is expected, the amax against the references of the elements that are stored as the "
             "largest "
             "number or the one below it: its distance from max |y| over what is allowed, y +- the smaller of B and "
             "kappa lambda(N) "
             "sqrt(V) of each; infinite if it is not stored as that number",
             "1", "the amax of another tensor, a stale one, one of a part of the output"},
    GateInfo{Gate::allclose, "allclose", "elements with |e| > atol + rtol |y|, as the plan has it", "0",
             "what the plan asks"},
    GateInfo{Gate::max_ulp, "max_ulp", "largest error in units of the last place of the output", "the plan's \"ulp\"",
             "what the plan asks"},
    GateInfo{Gate::rel_l2, "rel_l2", "Frobenius-relative error |e|_2 / |y|_2", "the plan's \"rel_l2\"",
             "what the plan asks"},
};

}  // namespace

std::span<const GateInfo> gate_table() noexcept {
  return kGates;
}

std::string_view gate_name(Gate gate) noexcept {
  return std::ranges::find(kGates, gate, &GateInfo::gate)->name;
}

}  // namespace numcheck::tolerance
