#include "kernels/unfused/attention_kernels.hpp"
#include "kernels/unfused/score_row.cuh"

namespace numcheck::kernels::unfused {
namespace {

/// A block per row.
template <class T>
__global__ void __launch_bounds__(kThreads)
    differentiate_rows(AttentionRules rules, OutputRows rows, const T* weights, T* gradients, float* dots) {
  __shared__ float scratch[kThreads / kWarp];
  for (std::int64_t row = blockIdx.x; row < row_count(rules); row += gridDim.x) {
    const ScoreRow at = score_row(rules, row);
    const std::int64_t place =
        at.batch * rows.strides.batch + at.head * rows.strides.head + at.i * rows.strides.position;
    const T* output = static_cast<const T*>(rows.output) + place;
    const T* gradient = static_cast<const T*>(rows.gradient) + place;
    float dot = 0;
    for (std::int64_t c = threadIdx.x; c < rows.channels; c += kThreads) {
      dot += to_float(gradient[c]) * to_float(output[c]);
    }
    dot = block_reduce(dot, Add{}, scratch);
    if (threadIdx.x == 0) {
      dots[row] = dot;
    }
    const T* mask = static_cast<const T*>(rules.dropout_mask);
    for (std::int64_t j = threadIdx.x; j < rules.sk; j += kThreads) {
      const std::int64_t k = row * rules.sk + j;
      float dp = to_float(gradients[k]);
      if (mask != nullptr) {
        dp = rounded_through<T>(dp * to_float(mask[k]) * rules.keep_scale);
      }
      gradients[k] = from_float<T>(sees(at, j) ? to_float(weights[k]) * (dp - dot) : 0.0f);
    }
  }
}

/// A block per row.
template <class T>
__global__ void __launch_bounds__(kThreads) undo_cap_and_scale(AttentionRules rules, const T* products, T* gradients) {
  for (std::int64_t row = blockIdx.x; row < row_count(rules); row += gridDim.x) {
    const ScoreRow at = score_row(rules, row);
    for (std::int64_t j = threadIdx.x; j < rules.sk; j += kThreads) {
      const std::int64_t k = row * rules.sk + j;
      if (!sees(at, j)) {
        continue;  // it is 0
      }
      float x = to_float(gradients[k]);
      if (rules.softcap > 0) {
        const float y = cap_of<T>(rules, uncapped_score<T>(rules, at, products[k], j));
        x = rounded_through<T>(rounded_through<T>(rounded_through<T>(x * rules.softcap) * (1.0f - y * y)) /
                               rules.softcap);
      }
      gradients[k] = from_float<T>(rules.bias == Bias::pre_scale ? x * rules.scale : x);
    }
  }
}

/// A thread per element.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_sequences(AttentionRules rules, const T* gradients, T* dbias) {
  const std::int64_t elements = rules.heads * rules.sq * rules.sk;
  for (std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; k < elements;
       k += std::int64_t{gridDim.x} * kThreads) {
    float sum = 0;
    for (std::int64_t batch = 0; batch < rules.batches; ++batch) {
      sum += to_float(gradients[batch * elements + k]);
    }
    dbias[k] = from_float<T>(sum);
  }
}

/// A block per head. Queries beyond their sequence's length do not count.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sum_sinks(AttentionRules rules, const float* lse, const float* dots, float* gradient) {
  __shared__ float scratch[kThreads / kWarp];
  for (std::int64_t head = blockIdx.x; head < rules.heads; head += gridDim.x) {
    const float sink = sink_score<T>(rules, head);
    float sum = 0;
    for (std::int64_t batch = 0; batch < rules.batches; ++batch) {
      const std::int64_t first = (batch * rules.heads + head) * rules.sq;
      for (std::int64_t i = threadIdx.x; i < queries_of(rules, batch); i += kThreads) {
        sum -= expf(sink - lse[first + i]) * dots[first + i];
      }
    }
    sum = block_reduce(sum, Add{}, scratch);
    if (threadIdx.x == 0) {
      gradient[head] = sum;
    }
  }
}

/// A thread per element.
template <class T>
__global__ void __launch_bounds__(kThreads) sum_group(GroupSum op) {
  const T* parts = static_cast<const T*>(op.parts);
  T* out = static_cast<T*>(op.sum);
  const std::int64_t head_elements = op.length * op.channels;
  const std::int64_t elements = op.batches * op.shared * head_elements;
  for (std::int64_t k = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; k < elements;
       k += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t in_head = k % head_elements;
    const std::int64_t head = k / head_elements;  // of all sequences
    float sum = 0;
    for (std::int64_t n = 0; n < op.group; ++n) {
      sum += to_float(parts[(head * op.group + n) * head_elements + in_head]);
    }
    const std::int64_t place = head / op.shared * op.strides.batch + head % op.shared * op.strides.head +
                               in_head / op.channels * op.strides.position + in_head % op.channels;
    out[place] = from_float<T>(sum);
  }
}

unsigned blocks_of_rows(const AttentionRules& rules) {
  return blocks_for(rules.batches * rules.heads * rules.sq);
}

unsigned blocks_of_elements(std::int64_t elements) {
  return blocks_for((elements + kThreads - 1) / kThreads);
}

}  // namespace

cudaError_t launch_score_gradients(const AttentionRules& rules, const OutputRows& rows, const void* weights,
                                   void* gradients, float* dots, cudaStream_t stream) {
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    differentiate_rows<T><<<blocks_of_rows(rules), kThreads, 0, stream>>>(rules, rows, static_cast<const T*>(weights),
                                                                          static_cast<T*>(gradients), dots);
  });
}

cudaError_t launch_product_gradients(const AttentionRules& rules, const void* products, void* gradients,
                                     cudaStream_t stream) {
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    undo_cap_and_scale<T><<<blocks_of_rows(rules), kThreads, 0, stream>>>(rules, static_cast<const T*>(products),
                                                                          static_cast<T*>(gradients));
  });
}

cudaError_t launch_bias_gradient(const AttentionRules& rules, const void* gradients, void* dbias, cudaStream_t stream) {
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_sequences<T><<<blocks_of_elements(rules.heads * rules.sq * rules.sk), kThreads, 0, stream>>>(
        rules, static_cast<const T*>(gradients), static_cast<T*>(dbias));
  });
}

cudaError_t launch_offset_gradient(const AttentionRules& rules, const float* lse, const float* dots, float* gradient,
                                   cudaStream_t stream) {
  return launch_for(rules.format, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_sinks<T><<<blocks_for(rules.heads), kThreads, 0, stream>>>(rules, lse, dots, gradient);
  });
}

cudaError_t launch_group_sum(const GroupSum& launch, cudaStream_t stream) {
  return launch_for(launch.format, [&](auto type) {
    using T = typename decltype(type)::type;
    sum_group<T>
        <<<blocks_of_elements(launch.batches * launch.shared * launch.length * launch.channels), kThreads, 0, stream>>>(
            launch);
  });
}

}  // namespace numcheck::kernels::unfused
