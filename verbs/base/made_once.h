// What is made once, and not again in a forked child.
#ifndef VIADUCT_VERBS_BASE_MADE_ONCE_H_
#define VIADUCT_VERBS_BASE_MADE_ONCE_H_

#include <pthread.h>

namespace viaduct::verbs {

// Returns what Make() returned at the first call. Any thread; if Make throws, the next call tries
// again.
//
// Not a static with C++'s own guard: a child that is forked while another thread is in Make would
// wait for that thread for ever, while with pthread_once it calls Make itself.
template <auto Make>
auto MadeOnce() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static decltype(Make()) made;
  pthread_once(&once, [] { made = Make(); });
  return made;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_MADE_ONCE_H_
