#include "verbs/base/engine_thread.h"

#include <pthread.h>

#include <cerrno>
#include <cstddef>

#include "verbs/base/signals.h"

namespace viaduct::verbs {

int StartEngineThread(void* (*main)(void*), void* argument, size_t stack) {
  const SignalsBlocked for_the_thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  size_t usual;
  pthread_attr_getstacksize(&attributes, &usual);
  if (stack != 0) pthread_attr_setstacksize(&attributes, stack);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, main, argument);
  if (error == EINVAL && stack != 0) {
    pthread_attr_setstacksize(&attributes, usual);
    error = pthread_create(&thread, &attributes, main, argument);
  }
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace viaduct::verbs
