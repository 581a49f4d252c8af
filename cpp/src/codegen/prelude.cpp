#include "prelude.h"

namespace mini {

std::string prelude_basics(int threads) {
  return R"(#include <cstring>
#include <new>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef _WIN32
#define MINI_EXPORT extern "C" __declspec(dllexport)
#else
#define MINI_EXPORT extern "C" __attribute__((visibility("default")))
#endif
#ifdef _MSC_VER
#pragma warning(disable : 4068)
#endif

namespace kernel = mini::kernel;

// Memory for one thread while a kernel runs.
template <class T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : data_(static_cast<T*>(::operator new(static_cast<size_t>(count) * sizeof(T),
                                             std::align_val_t(64)))) {}
  ~Scratch() { ::operator delete(data_, std::align_val_t(64)); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  operator T*() const { return data_; }

 private:
  T* data_;
};

static inline int mini_threads() {
  constexpr int asked = )" +
         std::to_string(threads) + R"(;
#ifdef _OPENMP
  return asked > 0 ? asked : omp_get_max_threads();
#else
  return asked > 0 ? asked : 1;
#endif
}
)";
}

std::string prelude_folds() {
  return R"(
// One number from a piece of a row. Several lanes side by side: they become vectors, and short sums
// of f32 stay exact enough to be added up in f64.
template <class Lane, class T, class Combine>
static inline void fold_lanes(Lane (&lanes)[64], const T* values, int64_t n, Lane start,
                              Combine combine) {
  for (int l = 0; l < 64; ++l) lanes[l] = start;
  int64_t i = 0;
  for (; i + 64 <= n; i += 64) {
#pragma omp simd
    for (int l = 0; l < 64; ++l) lanes[l] = combine(lanes[l], Lane(values[i + l]));
  }
  for (int l = 0; i + l < n; ++l) lanes[l] = combine(lanes[l], Lane(values[i + l]));
}
template <class Result, class Lane, class T, class Combine>
static inline Result fold(const T* values, int64_t n, Lane start, Combine combine) {
  if (n < 32) {
    Result result = Result(start);
    for (int64_t i = 0; i < n; ++i) result = combine(result, Result(values[i]));
    return result;
  }
  Lane lanes[64];
  fold_lanes(lanes, values, n, start, combine);
  for (int half = 32; half > 4; half /= 2) {
#pragma omp simd
    for (int l = 0; l < half; ++l) lanes[l] = combine(lanes[l], lanes[l + half]);
  }
  Result result = Result(lanes[0]);
  for (int l = 1; l < 8; ++l) result = combine(result, Result(lanes[l]));
  return result;
}
static inline double fold_sum(const float* values, int64_t n) {
  return fold<double>(values, n, 0.f, [](auto a, auto b) { return a + b; });
}
static inline double fold_sum(const double* values, int64_t n) {
  return fold<double>(values, n, 0.0, [](double a, double b) { return a + b; });
}
static inline int64_t fold_sum(const int64_t* values, int64_t n) {
  return fold<int64_t>(values, n, int64_t(0), [](auto a, auto b) { return kernel::add(a, b); });
}
static inline double fold_prod(const float* values, int64_t n) {
  return fold<double>(values, n, 1.0, [](double a, double b) { return a * b; });
}
static inline double fold_prod(const double* values, int64_t n) {
  return fold<double>(values, n, 1.0, [](double a, double b) { return a * b; });
}
static inline int64_t fold_prod(const int64_t* values, int64_t n) {
  return fold<int64_t>(values, n, int64_t(1), [](auto a, auto b) { return kernel::mul(a, b); });
}
template <class T>
static inline T fold_max(const T* values, int64_t n) {
  return fold<T>(values, n, values[0], [](T a, T b) { return kernel::maximum(a, b); });
}
template <class T>
static inline T fold_min(const T* values, int64_t n) {
  return fold<T>(values, n, values[0], [](T a, T b) { return kernel::minimum(a, b); });
}
static inline bool fold_any(const bool* values, int64_t n) {
  return fold<bool>(values, n, false, [](bool a, bool b) { return bool(a | b); });
}
static inline bool fold_all(const bool* values, int64_t n) {
  return fold<bool>(values, n, true, [](bool a, bool b) { return bool(a & b); });
}
)";
}

std::string prelude_matmul() {
  return R"(
// Matrix products. Both operands are packed into the order in which they are used, whatever their
// strides, and a tile of the result stays in registers while one walks along the inner dimension.
#if defined(__AVX512F__)
constexpr int vector_bytes = 64, tile_rows = 12;
#elif defined(__AVX__)
constexpr int vector_bytes = 32, tile_rows = 6;
#else
constexpr int vector_bytes = 16, tile_rows = 4;
#endif
template <class T>
constexpr int tile_columns = 2 * vector_bytes / int(sizeof(T));
constexpr int64_t depth_block = 256, column_block = 4096;
constexpr int64_t row_task = 8 * tile_rows, column_task = 512;  // what one thread does at a time

#if defined(__clang__)
#define MINI_FUSED
#pragma clang fp contract(fast)
#elif defined(__GNUC__)
#define MINI_FUSED __attribute__((optimize("fp-contract=fast")))
#else
#define MINI_FUSED
#endif

// tile = a b: a in columns of tile_rows numbers, b in rows of tile_columns.
template <class T>
MINI_FUSED static void multiply_tile(int64_t depth, const T* __restrict a, const T* __restrict b,
                                     T* __restrict tile) {
#if defined(__GNUC__)
  typedef T Vector __attribute__((vector_size(vector_bytes)));
  constexpr int lanes = vector_bytes / int(sizeof(T));
  Vector sums[tile_rows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector left, right;
    __builtin_memcpy(&left, b + k * 2 * lanes, sizeof(Vector));
    __builtin_memcpy(&right, b + k * 2 * lanes + lanes, sizeof(Vector));
#pragma GCC unroll 16
    for (int r = 0; r < tile_rows; ++r) {
      const T x = a[k * tile_rows + r];
      sums[r][0] += x * left;
      sums[r][1] += x * right;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < tile_rows; ++r)
    __builtin_memcpy(tile + r * 2 * lanes, sums[r], 2 * sizeof(Vector));
#else
  constexpr int columns = tile_columns<T>;
  for (int i = 0; i < tile_rows * columns; ++i) tile[i] = T(0);
  for (int64_t k = 0; k < depth; ++k)
    for (int r = 0; r < tile_rows; ++r)
      for (int j = 0; j < columns; ++j)
        tile[r * columns + j] += a[k * tile_rows + r] * b[k * columns + j];
#endif
}

// Panels of `width` numbers side by side, filled up with zeros: element (k, i) of panel p is at
// (p * depth + k) * width + i.
template <class T>
static void pack_panel(T* __restrict to, const T* from, int64_t depth, int64_t depth_stride,
                       int64_t count, int64_t stride, int64_t width) {
  if (count == width && stride == 1) {
    for (int64_t k = 0; k < depth; ++k)
      std::memcpy(to + k * width, from + k * depth_stride, size_t(width) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < width; ++i)
    for (int64_t k = 0; k < depth; ++k)
      to[k * width + i] = i < count ? from[k * depth_stride + i * stride] : T(0);
}

template <class T>
struct Matrix {
  const T* data;
  int64_t row, column;  // strides
  const T* at(int64_t i, int64_t j) const { return data + i * row + j * column; }
};

template <class T>
static void multiply_packed(int64_t rows, int64_t columns, int64_t inner, Matrix<T> a, Matrix<T> b,
                            T* c, bool threads) {
  constexpr int64_t width = tile_columns<T>;
  const int64_t packed_columns = columns < column_block ? columns : column_block;
  Scratch<T> packed_b((packed_columns + width) * depth_block);
#pragma omp parallel if (threads) num_threads(mini_threads())
  {
    Scratch<T> packed_a(row_task * depth_block);
    alignas(64) T tile[tile_rows * width];
    for (int64_t j0 = 0; j0 < columns; j0 += column_block) {
      const int64_t n = columns - j0 < column_block ? columns - j0 : column_block;
      for (int64_t k0 = 0; k0 < inner; k0 += depth_block) {
        const int64_t depth = inner - k0 < depth_block ? inner - k0 : depth_block;
#pragma omp for schedule(static)
        for (int64_t j = 0; j < n; j += width)
          pack_panel<T>(packed_b + j * depth, b.at(k0, j0 + j), depth, b.row,
                        n - j < width ? n - j : width, b.column, width);
        int64_t packed_row = -1;
#pragma omp for schedule(static) collapse(2)
        for (int64_t i0 = 0; i0 < rows; i0 += row_task) {
          for (int64_t jt = 0; jt < n; jt += column_task) {
            const int64_t m = rows - i0 < row_task ? rows - i0 : row_task;
            if (packed_row != i0) {
              for (int64_t i = 0; i < m; i += tile_rows)
                pack_panel<T>(packed_a + i * depth, a.at(i0 + i, k0), depth, a.column,
                              m - i < tile_rows ? m - i : tile_rows, a.row, tile_rows);
              packed_row = i0;
            }
            for (int64_t j = jt; j < n && j < jt + column_task; j += width) {
              const int64_t w = n - j < width ? n - j : width;
              for (int64_t i = 0; i < m; i += tile_rows) {
                multiply_tile<T>(depth, packed_a + i * depth, packed_b + j * depth, tile);
                const int64_t h = m - i < tile_rows ? m - i : tile_rows;
                for (int64_t r = 0; r < h; ++r) {
                  T* const out = c + (i0 + i + r) * columns + j0 + j;
                  if (k0 == 0)
                    for (int64_t l = 0; l < w; ++l) out[l] = tile[r * width + l];
                  else
                    for (int64_t l = 0; l < w; ++l) out[l] += tile[r * width + l];
                }
              }
            }
          }
        }
      }
    }
  }
}

// A few rows, small matrices and whole numbers: packing would take longer than the product.
template <class T>
static void multiply_directly(int64_t rows, int64_t columns, int64_t inner, Matrix<T> a, Matrix<T> b,
                              T* c, bool threads) {
#pragma omp parallel for schedule(static) collapse(2) if (threads) num_threads(mini_threads())
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j0 = 0; j0 < columns; j0 += 64) {
      const int64_t n = columns - j0 < 64 ? columns - j0 : 64;
      T sums[64] = {};
      for (int64_t k = 0; k < inner; ++k) {
        const T x = *a.at(i, k);
        const T* const row = b.at(k, j0);
#pragma omp simd
        for (int64_t j = 0; j < n; ++j)
          sums[j] = kernel::add(sums[j], kernel::mul(x, row[j * b.column]));
      }
      for (int64_t j = 0; j < n; ++j) c[i * columns + j0 + j] = sums[j];
    }
  }
}

// The same where the columns of b lie in one piece each, as in a linear layer.
template <class T>
static void multiply_by_columns(int64_t rows, int64_t columns, int64_t inner, Matrix<T> a,
                                Matrix<T> b, T* c, bool threads) {
#pragma omp parallel for schedule(static) if (threads) num_threads(mini_threads())
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < rows; ++i) {
      T sum = T(0);
      const T* const x = a.at(i, 0);
      const T* const y = b.at(0, j);
#pragma omp simd reduction(+ : sum)
      for (int64_t k = 0; k < inner; ++k) sum += x[k * a.column] * y[k];
      c[i * columns + j] = sum;
    }
  }
}

// c = a b: a is [rows, inner], b [inner, columns], c contiguous.
template <class T>
static void multiply(int64_t rows, int64_t columns, int64_t inner, const T* a, int64_t a_row,
                     int64_t a_column, const T* b, int64_t b_row, int64_t b_column, T* c,
                     bool threads) {
  const Matrix<T> left{a, a_row, a_column};
  const Matrix<T> right{b, b_row, b_column};
  if constexpr (std::numeric_limits<T>::is_iec559) {
    if (rows <= 4 && b_row == 1) return multiply_by_columns(rows, columns, inner, left, right, c, threads);
    if (rows > 4 && inner > 0 && rows * columns * inner > 30000)
      return multiply_packed(rows, columns, inner, left, right, c, threads);
  }
  multiply_directly(rows, columns, inner, left, right, c, threads);
}
)";
}

}  // namespace mini
