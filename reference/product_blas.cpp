#include "reference/product.hpp"

#ifdef NUMCHECK_HAVE_BLAS

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"

extern "C" {
// NOLINTBEGIN(readability-identifier-naming): Fortran's names
void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const double* alpha,
            const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
            const int* ldc);
void sgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const float* alpha,
            const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
            const int* ldc);
void dgemv_(const char* trans, const int* m, const int* n, const double* alpha, const double* a, const int* lda,
            const double* x, const int* incx, const double* beta, double* y, const int* incy);
void sgemv_(const char* trans, const int* m, const int* n, const float* alpha, const float* a, const int* lda,
            const float* x, const int* incx, const float* beta, float* y, const int* incy);
// NOLINTEND(readability-identifier-naming)
// Extensions of OpenBLAS; its header is not always where its library is.
void openblas_set_num_threads(int threads);
char* openblas_get_config();
char* openblas_get_corename();
void gotoblas_init();
void* blas_memory_alloc(int purpose);
void blas_memory_free(void* buffer);
}

namespace numcheck::reference {
namespace {

/// OpenBLAS's constructor starts a thread for every processor, even for `--version`, and raises SIGINT if the system
/// refuses one. We call it early, with one thread. The user's setting is restored afterwards: workers inherit it, and
/// records quote it. A shared OpenBLAS has already been initialised by the loader, with its threads.
__attribute__((constructor(101))) void initialise_with_one_thread() {
  constexpr const char* kVariable = "OPENBLAS_NUM_THREADS";
  const char* set = std::getenv(kVariable);
  const std::optional<std::string> before = set != nullptr ? std::optional<std::string>(set) : std::nullopt;
  if (::setenv(kVariable, "1", 1) != 0) {
    return;
  }
  gotoblas_init();
  before ? ::setenv(kVariable, before->c_str(), 1) : ::unsetenv(kVariable);
}

/// Size of a buffer, measured with 0.3.21 on x86-64: 128 MiB and a page.
constexpr std::size_t kBufferBytes = std::size_t{130} << 20;
/// Left for shared-memory arenas, stacks and heaps of threads, and tensors if the address space is limited.
constexpr std::size_t kRoomBytes = std::size_t{4} << 30;
/// Buffers that every build of OpenBLAS has entries for (NUM_BUFFERS is at least 50).
constexpr int kAlwaysPossible = 32;

/// The number after MAX_THREADS= in OpenBLAS's configuration; there are twice as many entries for buffers.
int max_buffers() {
  const std::string text = openblas_get_config();
  const std::string key = "MAX_THREADS=";
  const std::size_t at = text.find(key);
  return std::max(kAlwaysPossible, at == std::string::npos ? 0 : std::atoi(text.c_str() + at + key.size()));
}

class TestMapping {
 public:
  TestMapping(std::size_t bytes, int protection)
      : bytes_(bytes), address_(::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  TestMapping(TestMapping&& other) noexcept : bytes_(other.bytes_), address_(other.address_) {
    other.address_ = MAP_FAILED;
  }
  TestMapping& operator=(TestMapping&&) = delete;
  TestMapping(const TestMapping&) = delete;
  TestMapping& operator=(const TestMapping&) = delete;
  ~TestMapping() {
    if (succeeded()) {
      ::munmap(address_, bytes_);
    }
  }
  [[nodiscard]] bool succeeded() const noexcept { return address_ != MAP_FAILED; }

 private:
  std::size_t bytes_;
  void* address_;
};

bool there_is_room_for(int buffers) {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY;
  std::vector<TestMapping> tests;
  for (int i = 0; i < buffers; ++i) {
    tests.emplace_back(kBufferBytes, PROT_READ | PROT_WRITE);
  }
  if (limited) {
    tests.emplace_back(kRoomBytes, PROT_NONE);
  }
  return std::ranges::all_of(tests, &TestMapping::succeeded);
}

/// So many threads at a time. std::counting_semaphore of libstdc++ 12 may let a thread sleep although there is a seat: one that saw
/// a seat, which was taken and given back before it went to sleep, waits for the next one that is given back while none is free.
class Seats {
 public:
  explicit Seats(int count) : free_(count) {}

  void acquire() {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [this] { return free_ > 0; });
    --free_;
  }
  void release() {
    {
      const std::scoped_lock lock(mutex_);
      ++free_;
    }
    given_back_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  int free_;
};

/// The buffers, allocated together; OpenBLAS keeps those that are freed and allocates more only if all are in use.
class Buffers {
 public:
  Buffers()
      : count_(std::min(core::thread_count(), max_buffers())), usable_(there_is_room_for(count_)), seats_(count_) {
    openblas_set_num_threads(1);
    std::vector<void*> buffers(usable_ ? static_cast<std::size_t>(count_) : 0);
    std::ranges::generate(buffers, [] { return blas_memory_alloc(0); });
    std::ranges::for_each(buffers, &blas_memory_free);
  }

  [[nodiscard]] bool usable() const noexcept { return usable_; }
  [[nodiscard]] Seats& seats() noexcept { return seats_; }

 private:
  int count_;
  bool usable_;
  Seats seats_;  ///< one for each buffer
};

/// Never destroyed: threads may multiply until the process ends.
Buffers& buffers() {
  static Buffers& instance = *new Buffers;
  return instance;
}

class Seat {
 public:
  Seat() { buffers().seats().acquire(); }
  ~Seat() { buffers().seats().release(); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;
};

int blas_int(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) {
    throw core::InternalError("a product with more than 2^31 - 1 rows, columns or terms is too large for BLAS");
  }
  return static_cast<int>(value);
}

const char* transposition(bool transposed) {
  return transposed ? "T" : "N";
}

/// Row-major out = left * right, read as column-major, is out^T = right^T * left^T.
template <class T, class Gemm>
void call_gemm(const TileProduct<T>& p, Gemm* gemm) {
  const int m = blas_int(p.cols);
  const int n = blas_int(p.rows);
  const int k = blas_int(p.depth);
  const int lda = blas_int(p.right.stride);
  const int ldb = blas_int(p.left.stride);
  const int ldc = blas_int(p.out_stride);
  const T one = 1;
  gemm(transposition(p.right.transposed), transposition(p.left.transposed), &m, &n, &k, &one, p.right.data, &lda,
       p.left.data, &ldb, &one, p.out, &ldc);
}

/// y = matrix * x for a matrix of `rows` x `depth` that is stored as described by `factor`.
template <class T, class Gemv>
void call_gemv(const TileFactor<T>& factor, std::int64_t rows, std::int64_t depth, const T* x, std::int64_t x_step,
               T* y, std::int64_t y_step, Gemv* gemv) {
  // Read as column-major, a row-major matrix is its transpose.
  const int m = blas_int(factor.transposed ? rows : depth);
  const int n = blas_int(factor.transposed ? depth : rows);
  const int lda = blas_int(factor.stride);
  const int incx = blas_int(x_step);
  const int incy = blas_int(y_step);
  const T one = 1;
  gemv(transposition(!factor.transposed), &m, &n, &one, factor.data, &lda, x, &incx, &one, y, &incy);
}

template <class T, class Gemm, class Gemv>
void multiply_tile(const TileProduct<T>& p, Gemm* gemm, Gemv* gemv) {
  // For a few terms, a call costs more than it gains; Eigen draws the line here, too.
  constexpr std::int64_t kSmall = 20;
  if (p.rows + p.cols + p.depth < kSmall || (p.rows == 1 && p.cols == 1)) {
    multiply_by_eigen(p);
    return;
  }
  for (std::int64_t row = 0; row < p.rows && !p.accumulate; ++row) {
    std::fill_n(p.out + row * p.out_stride, p.cols, T{0});
  }
  if (p.depth == 0) {
    return;
  }
  const Seat seat;
  if (p.cols == 1) {
    call_gemv(p.left, p.rows, p.depth, p.right.data, p.right.transposed ? 1 : p.right.stride, p.out, p.out_stride,
              gemv);
  } else if (p.rows == 1) {
    const TileFactor<T> turned{p.right.data, p.right.stride, !p.right.transposed};
    call_gemv(turned, p.cols, p.depth, p.left.data, p.left.transposed ? p.left.stride : 1, p.out, 1, gemv);
  } else {
    call_gemm(p, gemm);
  }
}

}  // namespace

bool blas_is_usable() {
  return buffers().usable();
}

void multiply_by_blas(const TileProduct<double>& product) {
  multiply_tile(product, dgemm_, dgemv_);
}

void multiply_by_blas(const TileProduct<float>& product) {
  multiply_tile(product, sgemm_, sgemv_);
}

std::string describe_blas() {
  // The configuration begins with "OpenBLAS 0.3.21 ..."; its other words are build options.
  std::istringstream words(openblas_get_config());
  std::string name;
  std::string version;
  words >> name >> version;
  return name + " " + version + " " + openblas_get_corename();
}

}  // namespace numcheck::reference

#else

namespace numcheck::reference {

bool blas_is_usable() {
  return false;
}

void multiply_by_blas(const TileProduct<double>& product) {
  multiply_by_eigen(product);
}

void multiply_by_blas(const TileProduct<float>& product) {
  multiply_by_eigen(product);
}

std::string describe_blas() {
  return "";
}

}  // namespace numcheck::reference

#endif
