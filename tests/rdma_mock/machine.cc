// Makes a program believe that this machine has an RDMA device: the directory that the engine looks
// for before it opens libviaduct-rdma.so.1 exists.
#include <dirent.h>
#include <dlfcn.h>

#include <cstring>

extern "C" __attribute__((visibility("default"))) DIR* opendir(const char* path) {
  using OpenDir = DIR* (*)(const char*);
  static const OpenDir libc = reinterpret_cast<OpenDir>(dlsym(RTLD_NEXT, "opendir"));
  return libc(std::strcmp(path, "/sys/class/infiniband") == 0 ? "/" : path);
}
