// Numbers of TransformerEngine's fused attention: kinds, layouts, and the attributes of its parameter objects. An
// attribute's value has the size of its type: enumerations are int, booleans one byte, lengths and counts 8 bytes.
// Source: TransformerEngine 2.20.2, include/transformer_engine/fused_attn.h; new attributes are only appended.
#pragma once

namespace numcheck::kernels::transformer_engine {

/// NVTE_QKV_Layout: the formats sbhd, bshd and thd begin here, each followed by its packings in the order of QkvPacking.
enum QkvLayout : int { kSbhdLayouts = 0, kBshdLayouts = 5, kThdLayouts = 10, kBhsdBhsdBhsd = 25 };
enum QkvPacking : int { kQkv3hd = 0, kQkvH3d = 1, kKv2hd = 2, kKvH2d = 3, kNotPacked = 4 };

/// NVTE_Mask_Type.
enum MaskType : int {
  kNoMask = 0,
  kPaddingMask = 1,
  kCausalMask = 2,
  kPaddingCausalMask = 3,
  kCausalBottomRightMask = 4,
  kPaddingCausalBottomRightMask = 5,
};

/// NVTE_Bias_Type. Its value 1, a bias before the scale, is a number without an implementation.
enum BiasType : int { kNoBias = 0, kPostScaleBias = 2, kAlibiBias = 3 };

/// NVTE_Softmax_Type.
enum SoftmaxType : int { kVanillaSoftmax = 0, kOffByOneSoftmax = 1, kLearnableSoftmax = 2 };

/// NVTE_Fused_Attn_Backend: what computes FP16 and BF16, and FP8; all other numbers are none.
enum AttentionBackend : int { kF16Attention = 1, kFp8Attention = 2 };

/// NVTEFusedAttnConfigAttribute.
enum AttentionConfigAttribute : int {
  kConfigIsTraining = 0,
  kConfigDeterministic = 1,
  kConfigReturnMaxLogit = 3,
  kConfigMask = 4,
  kConfigBias = 5,
  kConfigWindowLeft = 6,
  kConfigWindowRight = 7,
  kConfigBottomRight = 8,
  kConfigSoftmax = 9,
  kConfigScalingMode = 10,
  kConfigDropout = 11,
  kConfigScale = 12,
  kConfigQkvType = 13,
  kConfigOType = 14,
  kConfigDoType = 15,
  kConfigDqkvType = 16,
  kConfigQkvLayout = 17,
  kConfigOFormat = 18,
  kConfigDoFormat = 19,
  kConfigDqkvLayout = 20,
  kConfigBatches = 23,
  kConfigHeads = 24,
  kConfigKvHeads = 25,
  kConfigHeadDimQk = 26,
  kConfigHeadDimV = 27,
  kConfigMaxQ = 28,
  kConfigMaxKv = 29,
  kConfigTokensQ = 30,
  kConfigTokensKv = 31,
  kConfigBiasBatches = 38,
  kConfigBiasHeads = 39,
  kConfigBiasQ = 40,
  kConfigBiasKv = 41,
};

/// NVTEFusedAttnFwdParamsAttribute.
enum AttentionFwdAttribute : int {
  kFwdQ = 0,
  kFwdK = 1,
  kFwdV = 2,
  kFwdBiasTensor = 3,
  kFwdSoftmaxOffset = 4,
  kFwdS = 5,
  kFwdO = 6,
  kFwdAuxiliary = 7,
  kFwdCuSeqlensQ = 8,
  kFwdCuSeqlensKv = 9,
  kFwdCuSeqlensQPadded = 10,
  kFwdCuSeqlensKvPadded = 11,
  kFwdPageTableK = 12,
  kFwdPageTableV = 13,
  kFwdRngState = 14,
  kFwdIsTraining = 15,
  kFwdReturnMaxLogit = 17,
  kFwdMask = 18,
  kFwdBias = 19,
  kFwdWindowLeft = 20,
  kFwdWindowRight = 21,
  kFwdBottomRight = 22,
  kFwdSoftmax = 23,
  kFwdDropout = 24,
  kFwdScale = 25,
  kFwdQkvLayout = 26,
  kFwdOFormat = 27,
  kFwdMaxQ = 29,
  kFwdMaxKv = 30,
  kFwdWorkspace = 31,
  kFwdStream = 32,
};

/// NVTEFusedAttnBwdParamsAttribute.
enum AttentionBwdAttribute : int {
  kBwdQ = 0,
  kBwdK = 1,
  kBwdV = 2,
  kBwdO = 3,
  kBwdDo = 4,
  kBwdS = 5,
  kBwdDp = 6,
  kBwdAuxiliary = 7,
  kBwdDq = 8,
  kBwdDk = 9,
  kBwdDv = 10,
  kBwdDbias = 11,
  kBwdDsoftmaxOffset = 12,
  kBwdCuSeqlensQ = 13,
  kBwdCuSeqlensKv = 14,
  kBwdCuSeqlensQPadded = 15,
  kBwdCuSeqlensKvPadded = 16,
  kBwdDeterministic = 17,
  kBwdMask = 19,
  kBwdBias = 20,
  kBwdWindowLeft = 21,
  kBwdWindowRight = 22,
  kBwdBottomRight = 23,
  kBwdSoftmax = 24,
  kBwdDropout = 25,
  kBwdScale = 26,
  kBwdQkvLayout = 27,
  kBwdOFormat = 28,
  kBwdDoFormat = 29,
  kBwdDqkvLayout = 30,
  kBwdMaxQ = 33,
  kBwdMaxKv = 34,
  kBwdWorkspace = 35,
  kBwdStream = 36,
};

}  // namespace numcheck::kernels::transformer_engine
