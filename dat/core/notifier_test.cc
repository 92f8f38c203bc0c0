// Notifiers and dispatchers from many threads: nothing is lost, nothing comes twice, and what is
// freed is gone. Also run under ThreadSanitizer.
#include "dat/core/notifier.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "dat/core/event_dispatcher.h"
#include "dat/core/interface_adapter.h"
#include "gtest/gtest.h"
#include "verbs/base/address.h"
#include "verbs/base/epoch.h"

namespace viaduct::core {
namespace {

constexpr verbs::Nanos kPatience = 20'000'000'000;

class NotifierTest : public ::testing::Test {
 protected:
  NotifierTest() {
    EXPECT_TRUE(InterfaceAdapter::Open(*verbs::Address::Parse("127.0.0.1"), &adapter_).ok());
  }
  ~NotifierTest() override {
    EXPECT_TRUE(adapter_->Close(InterfaceAdapter::CloseMode::kAbrupt).ok());
  }

  Ref<EventDispatcher> NewDispatcher() {
    Ref<EventDispatcher> made;
    EXPECT_TRUE(EventDispatcher::Create(*adapter_, 100'000, kSoftwareStream, false, &made).ok());
    return made;
  }
  Ref<Notifier> NewNotifier(const Notifier::Agent& agent = {}) {
    Ref<Notifier> made;
    EXPECT_TRUE(Notifier::Create(*adapter_, agent, &made).ok());
    return made;
  }
  verbs::Deadline Later() const { return adapter_->DeadlineAfter(kPatience); }

  // Takes all events, marks each in `seen`, and returns how many it took.
  static int Drain(EventDispatcher& dispatcher, std::vector<std::atomic<int>>* seen) {
    int taken = 0;
    Event event;
    for (;;) {
      verbs::EpochGuard guard;
      if (!dispatcher.Dequeue(&event).ok()) return taken;
      ++(*seen)[reinterpret_cast<uintptr_t>(event.pointer)];
      ++taken;
    }
  }

  Ref<InterfaceAdapter> adapter_;
};

TEST_F(NotifierTest, EachEventReachesOneOfTheWaiters) {
  constexpr int kEach = 1000;
  constexpr int kPosters = 2, kConsumers = 2;
  Ref<Notifier> notifier = NewNotifier();
  Ref<EventDispatcher> dispatchers[kPosters];
  for (auto& dispatcher : dispatchers) {
    dispatcher = NewDispatcher();
    EXPECT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
  }
  std::vector<std::atomic<int>> seen(kPosters * kEach);
  std::atomic<int> total{0};
  std::vector<std::thread> threads;
  for (int c = 0; c < kConsumers; ++c) {
    threads.emplace_back([&] {
      while (total < kPosters * kEach) {
        Handle told;
        ASSERT_TRUE(notifier->Wait(Later(), &told).ok()) << total;
        for (auto& dispatcher : dispatchers) total += Drain(*dispatcher, &seen);
      }
      notifier->Trigger(nullptr);  // for the other consumer
    });
  }
  for (int p = 0; p < kPosters; ++p) {
    threads.emplace_back([&, p] {
      for (uintptr_t i = 0; i < kEach; ++i) {
        ASSERT_TRUE(dispatchers[p]->PostSoftware(reinterpret_cast<void*>(p * kEach + i)).ok());
        if (i % 16 == 0) sched_yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& count : seen) EXPECT_EQ(count, 1);
}

TEST_F(NotifierTest, AgentsAreCalledForEachAssociation) {
  struct Loop {
    Ref<Notifier> notifier;
    Ref<EventDispatcher> dispatcher;
    std::vector<std::atomic<int>> seen = std::vector<std::atomic<int>>(1000);
    std::atomic<int> total{0};
    static void Agent(void* self, Handle) {
      auto* loop = static_cast<Loop*>(self);
      // Asks for the next call first, so that whatever comes from now on leads to it.
      EXPECT_TRUE(loop->notifier->SetAgent({&Agent, loop}).ok());
      loop->total += Drain(*loop->dispatcher, &loop->seen);
    }
  } loop;
  loop.dispatcher = NewDispatcher();
  loop.notifier = NewNotifier({&Loop::Agent, &loop});
  EXPECT_TRUE(loop.dispatcher->SetNotifier(loop.notifier.get()).ok());
  for (uintptr_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(loop.dispatcher->PostSoftware(reinterpret_cast<void*>(i)).ok());
  }
  while (loop.total < 1000) sched_yield();
  for (auto& count : loop.seen) EXPECT_EQ(count, 1);
  EXPECT_TRUE(loop.notifier->SetAgent({}).ok());
  EXPECT_TRUE(loop.dispatcher->Free().ok());
  EXPECT_TRUE(loop.notifier->Free().ok());
}

// A dispatcher is passed between two notifiers, disabled, enabled and resized, while other threads
// post, dequeue and wait.
TEST_F(NotifierTest, EverythingChangesMeanwhile) {
  constexpr int kEvents = 3000;
  Ref<Notifier> notifiers[] = {NewNotifier(), NewNotifier()};
  Ref<EventDispatcher> dispatcher = NewDispatcher();
  std::vector<std::atomic<int>> seen(kEvents);
  std::atomic<int> total{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    for (int i = 0; !stop; ++i) {
      EXPECT_TRUE(dispatcher->SetNotifier(i % 3 == 2 ? nullptr : notifiers[i % 3].get()).ok());
      dispatcher->SetEnabled(i % 2 == 0);
      (void)dispatcher->Resize(100'000 + static_cast<uint32_t>(i % 5));
      sched_yield();
    }
  });
  threads.emplace_back([&] {
    while (!stop) {
      Handle told;
      for (auto& notifier : notifiers) {
        const Error error = notifier->Wait(adapter_->DeadlineAfter(100'000), &told);
        EXPECT_TRUE(error.ok() || error.code == Code::kQueueEmpty);
      }
    }
  });
  threads.emplace_back([&] {
    while (total < kEvents) {
      Event event;
      EventDispatcher::WaitOptions options;
      options.exclusive = true;
      uint32_t more;
      if (dispatcher->Wait(adapter_->DeadlineAfter(50'000), options, &event, &more).ok()) {
        ++seen[reinterpret_cast<uintptr_t>(event.pointer)];
        ++total;
      }
      total += Drain(*dispatcher, &seen);
    }
  });
  for (uintptr_t i = 0; i < kEvents; ++i) {
    ASSERT_TRUE(dispatcher->PostSoftware(reinterpret_cast<void*>(i)).ok());
  }
  threads.back().join();
  threads.pop_back();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (auto& count : seen) EXPECT_EQ(count, 1);
  EXPECT_TRUE(dispatcher->SetNotifier(nullptr).ok());
  dispatcher->SetEnabled(true);
  Handle told;
  (void)notifiers[1]->Take(&told);
  EXPECT_TRUE(dispatcher->SetNotifier(notifiers[1].get()).ok());
  ASSERT_TRUE(dispatcher->PostSoftware(nullptr).ok());
  EXPECT_TRUE(notifiers[1]->Wait(Later(), &told).ok());
  EXPECT_EQ(told, dispatcher->handle());
}

TEST_F(NotifierTest, WaitersAreReleasedByTheLastDispatcher) {
  for (int round = 0; round < 50; ++round) {
    Ref<Notifier> notifier = NewNotifier();
    Ref<EventDispatcher> dispatcher = NewDispatcher();
    EXPECT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
    std::atomic<int> began{0};
    std::vector<std::thread> waiters;
    for (int i = 0; i < 3; ++i) {
      waiters.emplace_back([&] {
        ++began;
        Handle told = notifier.get();
        // A thread that comes after the dispatcher is gone waits in vain, as the specification
        // says; when it waits again, it finds the notifier freed.
        for (;;) {
          const Error error = notifier->Wait(adapter_->DeadlineAfter(5'000'000), &told);
          EXPECT_EQ(told, nullptr);
          if (error.ok()) return;
        }
      });
    }
    while (began < 3) sched_yield();
    EXPECT_TRUE(dispatcher->Free().ok());
    while (!notifier->Free().ok()) sched_yield();
    for (std::thread& waiter : waiters) waiter.join();
  }
}

// A trigger may stand for several dispatchers, so it outlives the one that it names.
TEST_F(NotifierTest, TriggerOfAFreedDispatcherShowsAnother) {
  Ref<Notifier> notifier = NewNotifier();
  Ref<EventDispatcher> first = NewDispatcher(), second = NewDispatcher();
  for (auto& dispatcher : {first, second}) {
    ASSERT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
    ASSERT_TRUE(dispatcher->PostSoftware(nullptr).ok());
  }
  EXPECT_TRUE(first->Free().ok());
  Handle told = nullptr;
  EXPECT_TRUE(notifier->Wait(Later(), &told).ok());
  EXPECT_EQ(told, second->handle());
  EXPECT_EQ(notifier->Take(&told).code, Code::kQueueEmpty);
}

// Also if the dispatcher had left the notifier before.
TEST_F(NotifierTest, TriggerOfADispatcherFreedElsewhereShowsAnother) {
  Ref<Notifier> notifier = NewNotifier(), elsewhere = NewNotifier();
  Ref<EventDispatcher> first = NewDispatcher(), second = NewDispatcher();
  ASSERT_TRUE(first->SetNotifier(notifier.get()).ok());
  ASSERT_TRUE(first->PostSoftware(nullptr).ok());
  ASSERT_TRUE(first->SetNotifier(elsewhere.get()).ok());
  ASSERT_TRUE(second->SetNotifier(notifier.get()).ok());
  EXPECT_TRUE(first->Free().ok());
  Handle told = nullptr;
  EXPECT_TRUE(notifier->Take(&told).ok());
  EXPECT_EQ(told, second->handle());
}

TEST_F(NotifierTest, TriggerOfTheLastFreedDispatcherShowsNone) {
  Ref<Notifier> notifier = NewNotifier();
  Ref<EventDispatcher> dispatcher = NewDispatcher();
  ASSERT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
  ASSERT_TRUE(dispatcher->PostSoftware(nullptr).ok());
  EXPECT_TRUE(dispatcher->Free().ok());
  Handle told = notifier.get();
  EXPECT_TRUE(notifier->Wait(Later(), &told).ok());
  EXPECT_EQ(told, nullptr);
}

// Setting a notifier while another thread frees the dispatcher leaves no reference behind.
TEST_F(NotifierTest, ADispatcherThatHasEndedKeepsNone) {
  Ref<Notifier> notifier = NewNotifier();
  Ref<EventDispatcher> dispatcher = NewDispatcher();
  EXPECT_TRUE(dispatcher->Free().ok());
  EXPECT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
  EXPECT_FALSE(dispatcher->notifier());
  EXPECT_TRUE(notifier->Free().ok());
}

// As a call meets a notifier that it found just before the notifier's end.
TEST_F(NotifierTest, OneThatHasEndedTakesNoAgentAndNoWaiter) {
  for (const bool destroyed : {false, true}) {
    Ref<Notifier> notifier = NewNotifier();
    if (destroyed) {
      notifier->Destroy();
    } else {
      EXPECT_TRUE(notifier->Free().ok());
    }
    EXPECT_EQ(notifier->SetAgent({[](void*, Handle) {}, nullptr}).code, Code::kInvalidHandle);
    EXPECT_EQ(notifier->agent().function, nullptr);
    Handle told = notifier.get();
    EXPECT_TRUE(notifier->Wait(adapter_->DeadlineAfter(0), &told).ok());
    EXPECT_EQ(told, nullptr);
  }
}

// The agent is told only of the end of the last dispatcher: one that goes elsewhere may come back.
TEST_F(NotifierTest, AgentStaysWhenTheLastDispatcherGoesElsewhere) {
  Ref<Notifier> notifier = NewNotifier({[](void*, Handle) {}, nullptr}), elsewhere = NewNotifier();
  Ref<EventDispatcher> dispatcher = NewDispatcher();
  for (Notifier* next : {elsewhere.get(), static_cast<Notifier*>(nullptr)}) {
    ASSERT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
    ASSERT_TRUE(dispatcher->SetNotifier(next).ok());
    EXPECT_NE(notifier->agent().function, nullptr);
  }
  ASSERT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
  EXPECT_TRUE(dispatcher->Free().ok());
  EXPECT_EQ(notifier->agent().function, nullptr);
}

// Keeps the callback thread busy with another notifier's agent until LetGo().
class BusyCallbacks {
 public:
  BusyCallbacks(const Ref<Notifier>& notifier, const Ref<EventDispatcher>& dispatcher)
      : notifier_(notifier), dispatcher_(dispatcher) {
    EXPECT_TRUE(notifier->SetAgent({&Stay, this}).ok());
    EXPECT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
    EXPECT_TRUE(dispatcher->PostSoftware(nullptr).ok());
    while (!begun_) sched_yield();
  }
  ~BusyCallbacks() {
    LetGo();
    EXPECT_TRUE(dispatcher_->Free().ok());
    EXPECT_TRUE(notifier_->Free().ok());
  }
  void LetGo() { let_go_ = true; }

 private:
  static void Stay(void* self, Handle) {
    auto* busy = static_cast<BusyCallbacks*>(self);
    busy->begun_ = true;
    while (!busy->let_go_) sched_yield();
  }
  const Ref<Notifier> notifier_;
  const Ref<EventDispatcher> dispatcher_;
  std::atomic<bool> begun_{false}, let_go_{false};
};

// What an agent was called with.
struct Heard {
  std::atomic<bool> called{false};
  Handle dispatcher = nullptr;
  static void Agent(void* self, Handle dispatcher) {
    auto* heard = static_cast<Heard*>(self);
    heard->dispatcher = dispatcher;
    heard->called = true;
  }
};

TEST_F(NotifierTest, AnAgentThatHasNotBegunIsNotCalledBehindTheEnd) {
  Heard heard, last;
  {
    BusyCallbacks busy(NewNotifier(), NewDispatcher());
    Ref<Notifier> notifier = NewNotifier({&Heard::Agent, &heard});
    Ref<EventDispatcher> dispatcher = NewDispatcher();
    ASSERT_TRUE(dispatcher->SetNotifier(notifier.get()).ok());
    ASSERT_TRUE(dispatcher->PostSoftware(nullptr).ok());
    EXPECT_EQ(notifier->agent().function, nullptr) << "it is to be called";
    ASSERT_TRUE(dispatcher->SetNotifier(nullptr).ok());
    std::thread freeing([&] { EXPECT_TRUE(notifier->Free().ok()); });
    while (notifier->SetAgent({}).ok()) sched_yield();  // until it is being freed
    busy.LetGo();
    freeing.join();
  }
  // Agents are called in order: a call of `heard` would come before this one.
  Ref<Notifier> next = NewNotifier({&Heard::Agent, &last});
  Ref<EventDispatcher> dispatcher = NewDispatcher();
  ASSERT_TRUE(dispatcher->SetNotifier(next.get()).ok());
  ASSERT_TRUE(dispatcher->PostSoftware(nullptr).ok());
  while (!last.called) sched_yield();
  EXPECT_FALSE(heard.called);
}

TEST_F(NotifierTest, AgentIsCalledForAnotherThanAFreedDispatcher) {
  for (const bool another : {false, true}) {
    Heard heard;
    BusyCallbacks busy(NewNotifier(), NewDispatcher());
    Ref<Notifier> notifier = NewNotifier({&Heard::Agent, &heard});
    Ref<EventDispatcher> first = NewDispatcher(), second = NewDispatcher();
    ASSERT_TRUE(first->SetNotifier(notifier.get()).ok());
    if (another) {
      ASSERT_TRUE(second->SetNotifier(notifier.get()).ok());
    }
    ASSERT_TRUE(first->PostSoftware(nullptr).ok());
    EXPECT_TRUE(first->Free().ok());
    busy.LetGo();
    while (!heard.called) sched_yield();
    EXPECT_EQ(heard.dispatcher, another ? second->handle() : nullptr);
    EXPECT_TRUE(second->Free().ok());
    EXPECT_TRUE(notifier->Free().ok());
  }
}

// A thread that sleeps in a wait and is then kept in a signal handler until LetGo(): it sees only
// afterwards what it was told meanwhile.
class StoppedWaiter {
 public:
  StoppedWaiter(Notifier& notifier, verbs::Deadline deadline) {
    let_go_ = stopped_ = false;
    struct sigaction action = {};
    action.sa_handler = Stay;
    sigaction(SIGUSR1, &action, nullptr);
    thread_ = std::thread([this, &notifier, deadline] {
      thread_id_ = gettid();
      error_ = notifier.Wait(deadline, &told_);
    });
    while (!Sleeps()) sched_yield();
    pthread_kill(thread_.native_handle(), SIGUSR1);
    while (!stopped_) sched_yield();
  }
  // Returns what the thread was told.
  Handle LetGo() {
    let_go_ = true;
    thread_.join();
    EXPECT_TRUE(error_.ok());
    return told_;
  }

 private:
  bool Sleeps() const {
    if (thread_id_ == 0) return false;
    std::string line;
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(thread_id_) + "/stat"), line);
    return line.find(") S ") != std::string::npos;
  }
  static void Stay(int) {
    stopped_ = true;
    while (!let_go_) sched_yield();
  }

  static inline std::atomic<bool> stopped_{false}, let_go_{false};
  std::thread thread_;
  std::atomic<pid_t> thread_id_{0};
  Error error_;
  Handle told_ = nullptr;
};

TEST_F(NotifierTest, WaiterHearsOfAnotherThanAFreedDispatcher) {
  for (const bool another : {false, true}) {
    Ref<Notifier> notifier = NewNotifier();
    Ref<EventDispatcher> first = NewDispatcher(), second = NewDispatcher();
    ASSERT_TRUE(first->SetNotifier(notifier.get()).ok());
    if (another) {
      ASSERT_TRUE(second->SetNotifier(notifier.get()).ok());
    }
    StoppedWaiter waiter(*notifier, Later());
    EXPECT_TRUE(first->PostSoftware(nullptr).ok());
    EXPECT_TRUE(first->Free().ok());
    EXPECT_EQ(waiter.LetGo(), another ? second->handle() : nullptr);
  }
}

}  // namespace
}  // namespace viaduct::core
