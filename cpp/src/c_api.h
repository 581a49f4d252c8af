/* The compiler for callers in other languages. Plain C; no exception crosses it.
 *
 * Functions that can fail return NULL or a non-zero number, and mini_error() then tells why, in one
 * sentence, for this thread, until its next call. Strings that are returned live as long as the
 * handle they came from, or until this thread's next call where there is none. Any thread may call; one
 * handle may be run by several threads at once.
 */
#ifndef MINI_C_API_H
#define MINI_C_API_H

#include <stdint.h>

#ifdef _WIN32
#define MINI_API __declspec(dllexport)
#else
#define MINI_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mini_function mini_function;

/* The version of this interface and of the text format: a number that changes when they do. */
MINI_API int32_t mini_version(void);
MINI_API const char* mini_error(void);
/* The names of all passes in order, of all operators: separated by spaces. */
MINI_API const char* mini_passes(void);
MINI_API const char* mini_operators(void);

/* Compiles a graph in the text format of graph.h. `options` are lines of `key=value`:
 *   backend=compiler | interpreter   (compiler)
 *   off=cse,fusion                   passes that do not run
 *   planted=cse                      the pass that makes its documented mistake
 *   cache=/path                      where compiled kernels are kept; empty: a folder for this process
 *   cxx=/usr/bin/g++                 the compiler; empty: the first of $CXX, c++, g++, clang++ (cl)
 *   flags=-O2 -g                     in place of the usual flags
 *   threads=2                        for generated loops; 0: as many as OpenMP says
 *   fallback=interpreter | error     what happens where there is no compiler or it fails
 */
MINI_API mini_function* mini_compile(const char* graph, const char* options);
/* Many graphs by one call of the machine's compiler: for fuzzing, where starting it costs the most.
 * Fills `functions`; all or none. */
MINI_API int32_t mini_compile_batch(const char* const* graphs, int32_t count, const char* options,
                                    mini_function** functions);
/* `inputs` and `outputs` point to the first element of each tensor, laid out as the graph says;
 * outputs are contiguous and written whole. */
MINI_API int32_t mini_run(mini_function* function, const void* const* inputs, void* const* outputs);
MINI_API void mini_free(mini_function* function);

/* What became of it, as JSON: {"backend", "fallback": why or "", "kernels", "nodes_before", "nodes_after", "working_bytes",
 * "source_path", "library_path", "cached": true|false, "compile_seconds",
 * "passes": [{"pass", "changes", "summary"}]} */
MINI_API const char* mini_info(mini_function* function);
/* The same for people, with graphs before and after each pass and the generated source. */
MINI_API const char* mini_describe(mini_function* function);

#ifdef __cplusplus
}
#endif
#endif
