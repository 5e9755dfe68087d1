// The functions of cuDNN that this program calls, bound when the library is loaded, and its errors as exceptions.
#pragma once

#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "kernels/cuda_support/library.hpp"
#include "kernels/cudnn/interface.hpp"

namespace numcheck::kernels::cudnn {

/// A cuDNN call failed. The message has the call, the status name, cuDNN's explanation and the source location.
class CudnnError : public core::EnvironmentError {
 public:
  /// `reason`: status name and cuDNN's explanation.
  CudnnError(Status status, std::string_view call, std::string reason, const std::source_location& where);
  [[nodiscard]] Status status() const noexcept { return status_; }
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  /// True if the library says that it does not support the case, rather than that something broke.
  [[nodiscard]] bool is_refusal() const noexcept { return status_ / 1000 == 3; }

 private:
  Status status_;
  std::string reason_;
};

/// What cuDNN says about its last failure: for every engine that it tried, a chain of conditions from the root up.
struct Complaint {
  std::string status;  ///< "CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE"; may be empty
  std::string reason;  ///< "x and dx should have same data types at: ..."
};

/// The root of the first chain in cudnnGetLastErrorString's text ("...; Reason: ..." on each line); the whole text if
/// it has no such line. Both members are empty if the text is.
[[nodiscard]] Complaint first_complaint(std::string_view text);

/// A loaded cuDNN 9. Members have the names of its functions without their prefix. Needs no device.
class Library {
 public:
  /// Loads the library and, because it compiles kernels at run time, NVRTC if that can be found. If nothing says where
  /// to search (`lib_dir`, TE_NUMCHECK_LIB_DIR) and the process has already loaded a cuDNN, that one is used: two would
  /// share their sub-libraries by name. Throws core::EnvironmentError.
  explicit Library(const std::string& lib_dir);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  [[nodiscard]] const std::string& path() const noexcept { return library_.path(); }
  /// "9.19.0".
  [[nodiscard]] std::string version() const;

  /// The root of the last call's complaint, "STATUS (reason)", even if the call succeeded with an empty result. Empty
  /// if there was none.
  [[nodiscard]] std::string last_complaint() const;

  /// Throws CudnnError unless `status` is a success.
  void check(Status status, std::string_view call,
             const std::source_location& where = std::source_location::current()) const;

 private:
  [[nodiscard]] Complaint complaint() const;

  cuda_support::SharedLibrary library_;
  std::optional<cuda_support::SharedLibrary> compiler_;

  template <class Function>
  [[nodiscard]] Function* bind(const char* name) const {
    return library_.symbol<Function*>(name);
  }

 public:
  GetVersion* get_version = bind<GetVersion>("cudnnGetVersion");
  GetVersion* get_cudart_version = bind<GetVersion>("cudnnGetCudartVersion");
  GetErrorString* get_error_string = bind<GetErrorString>("cudnnGetErrorString");
  GetLastErrorString* get_last_error_string = bind<GetLastErrorString>("cudnnGetLastErrorString");
  CreateContext* create = bind<CreateContext>("cudnnCreate");
  DestroyContext* destroy = bind<DestroyContext>("cudnnDestroy");
  SetStream* set_stream = bind<SetStream>("cudnnSetStream");
  CreateDescriptor* backend_create = bind<CreateDescriptor>("cudnnBackendCreateDescriptor");
  DestroyDescriptor* backend_destroy = bind<DestroyDescriptor>("cudnnBackendDestroyDescriptor");
  Finalize* backend_finalize = bind<Finalize>("cudnnBackendFinalize");
  SetAttribute* backend_set = bind<SetAttribute>("cudnnBackendSetAttribute");
  GetAttribute* backend_get = bind<GetAttribute>("cudnnBackendGetAttribute");
  Execute* backend_execute = bind<Execute>("cudnnBackendExecute");
  CreateTensor* tensor_create = bind<CreateTensor>("cudnnCreateTensorDescriptor");
  DestroyTensor* tensor_destroy = bind<DestroyTensor>("cudnnDestroyTensorDescriptor");
  SetTensor* tensor_set = bind<SetTensor>("cudnnSetTensor4dDescriptor");
  SoftmaxForward* softmax_forward = bind<SoftmaxForward>("cudnnSoftmaxForward");
  SoftmaxBackward* softmax_backward = bind<SoftmaxBackward>("cudnnSoftmaxBackward");
};

/// A cudnnHandle_t on the current device.
class Handle {
 public:
  /// Throws CudnnError.
  Handle(const Library& library, Stream stream);
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  [[nodiscard]] ContextHandle get() const noexcept { return handle_; }

 private:
  const Library& library_;
  ContextHandle handle_ = nullptr;
};

}  // namespace numcheck::kernels::cudnn
