// What is made once, and not again in a forked child.
#ifndef VIADUCT_VERBS_BASE_MADE_ONCE_H_
#define VIADUCT_VERBS_BASE_MADE_ONCE_H_

#include <pthread.h>

namespace viaduct::verbs {

// What Make() returned at the first call. Any thread; where Make throws the next call tries again.
//
// No static's own guard: a child that is forked while another thread is in Make would wait for it
// for ever, where behind pthread_once it makes its own.
template <auto Make>
auto MadeOnce() {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  static decltype(Make()) made;
  pthread_once(&once, [] { made = Make(); });
  return made;
}

}  // namespace viaduct::verbs

#endif  // VIADUCT_VERBS_BASE_MADE_ONCE_H_
