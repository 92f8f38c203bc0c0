// A thread of the test that can be stopped anywhere, between any two of its instructions: a
// signal's handler keeps it there. Whatever it holds then, it holds until it is let go.
#ifndef VIADUCT_TESTS_HOTPATH_STOPPED_THREAD_H_
#define VIADUCT_TESTS_HOTPATH_STOPPED_THREAD_H_

#include <functional>
#include <thread>

namespace viaduct::hotpath {

// One at a time in a process.
class StoppableThread {
 public:
  // Runs `work` again and again until the end.
  explicit StoppableThread(std::function<void()> work);
  ~StoppableThread();
  StoppableThread(const StoppableThread&) = delete;
  StoppableThread& operator=(const StoppableThread&) = delete;

  // Returns when the thread has stopped.
  void Stop();
  // False: the thread had already gone on by itself. It stood for so long that the caller must have
  // been waiting for it.
  bool LetGo();

 private:
  std::thread thread_;
};

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_STOPPED_THREAD_H_
