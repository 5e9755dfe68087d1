// Values that a useless kernel might deliver instead of the right ones.
#pragma once

#include <vector>

#include "tolerance/certificate_data.hpp"

namespace numcheck::tolerance {

using FakeValues = std::vector<double>;

/// One number everywhere, also where the reference is not finite.
[[nodiscard]] FakeValues fake_everywhere(const CertificateData& data, double value);
/// The root mean square of the finite values everywhere, also where the reference is not finite; 1 if it is 0.
[[nodiscard]] FakeValues fake_constant(const CertificateData& data);
[[nodiscard]] FakeValues fake_zeros(const CertificateData& data);
/// The mean of the finite values in their place. Zeros without terms stay, and so does what is left to the implementation,
/// as padding may be.
[[nodiscard]] FakeValues fake_mean(const CertificateData& data);
[[nodiscard]] FakeValues fake_sign_flipped(const CertificateData& data);
/// Every value times `factor`.
[[nodiscard]] FakeValues fake_enlarged(const CertificateData& data, double factor);
[[nodiscard]] FakeValues fake_noise(const CertificateData& data);
[[nodiscard]] FakeValues fake_transposed(const CertificateData& data);
/// The tile of 64 x 64 outputs of `port` around the middle of the data.
[[nodiscard]] FakeValues fake_tile_zeroed(const CertificateData& data, const op::Port& port);
/// `share` is the fraction of the products that is missing.
[[nodiscard]] FakeValues fake_missing_tail(const CertificateData& data, double share);
/// Rounded to nearest with that many fraction bits, whatever the exponent.
[[nodiscard]] FakeValues fake_coarser(const CertificateData& data, int fraction_bits);

}  // namespace numcheck::tolerance
