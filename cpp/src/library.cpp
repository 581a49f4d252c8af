#include "library.h"

#include "error.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <dlfcn.h>
#endif

namespace mini {

#ifdef _WIN32

Library::Library(const std::filesystem::path& path) {
  handle_ = reinterpret_cast<void*>(LoadLibraryW(path.c_str()));
  if (!handle_)
    throw BuildError("the compiled library " + path.string() + " does not load: error " +
                     std::to_string(GetLastError()));
}
Library::~Library() { FreeLibrary(reinterpret_cast<HMODULE>(handle_)); }
void* Library::symbol(const std::string& name) const {
  return reinterpret_cast<void*>(
      GetProcAddress(reinterpret_cast<HMODULE>(handle_), name.c_str()));
}

#else

namespace {

// OpenMP's threads outlive the kernels that woke them: its library may never be unloaded.
void pin_openmp(void* handle) {
  void* const found = dlsym(handle, "omp_get_max_threads");
  Dl_info info;
  if (found && dladdr(found, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace

Library::Library(const std::filesystem::path& path) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) throw BuildError(std::string("the compiled library does not load: ") + dlerror());
  pin_openmp(handle_);
}
Library::~Library() { dlclose(handle_); }
void* Library::symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

#endif

}  // namespace mini
