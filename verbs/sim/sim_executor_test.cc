#include "verbs/sim/sim_executor.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace viaduct::verbs {
namespace {

TEST(SimExecutor, TimePassesBetweenEventsOnly) {
  SimExecutor executor;
  const Nanos start = executor.Now();
  std::vector<Nanos> times;
  for (Nanos delay : {300, 100, 200}) {
    executor.RunAt(start + delay, [&] { times.push_back(executor.Now() - start); });
  }
  EXPECT_EQ(executor.Now(), start);
  while (executor.Step()) {
  }
  EXPECT_EQ(times, (std::vector<Nanos>{100, 200, 300}));
}

TEST(SimExecutor, EventsOfOneInstantKeepTheirOrder) {
  SimExecutor executor;
  std::vector<int> order;
  executor.RunAt(10, [&] {
    order.push_back(0);
    executor.Post([&] { order.push_back(3); });
    executor.RunAt(0, [&] { order.push_back(4); });  // a time in the past means now
  });
  executor.RunAt(10, [&] { order.push_back(1); });
  executor.RunAt(10, [&] { order.push_back(2); });
  while (executor.Step()) {
  }
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(executor.Now(), 10);
}

TEST(SimExecutor, CancelledEventsNeverRun) {
  SimExecutor executor;
  bool ran = false;
  const Executor::TimerId id = executor.RunAt(5, [&] { ran = true; });
  EXPECT_NE(id, 0u);
  EXPECT_TRUE(executor.Cancel(id));
  EXPECT_FALSE(executor.Cancel(id));
  EXPECT_FALSE(executor.Step());
  EXPECT_FALSE(ran);
}

TEST(SimExecutor, AnEventCannotCancelItself) {
  SimExecutor executor;
  Executor::TimerId id = 0;
  bool cancelled = true;
  id = executor.RunAt(5, [&] {
    EXPECT_TRUE(executor.OnExecutor());
    cancelled = executor.Cancel(id);
  });
  EXPECT_FALSE(executor.OnExecutor());
  executor.Step();
  EXPECT_FALSE(cancelled);
}

TEST(SimExecutor, DrainRunsWhatWasPostedAndNoMore) {
  SimExecutor executor;
  std::vector<int> order;
  executor.Post([&] {
    order.push_back(1);
    executor.Post([&] { order.push_back(3); });
  });
  executor.Post([&] { order.push_back(2); });
  executor.RunAt(1, [&] { order.push_back(4); });
  executor.Drain();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
  EXPECT_EQ(executor.Now(), 0);
}

TEST(SimExecutor, RunUntilEndsAtTheDeadline) {
  SimExecutor executor;
  int events = 0;
  for (Nanos at : {10, 20, 30}) executor.RunAt(at, [&] { ++events; });
  EXPECT_FALSE(executor.RunUntil([] { return false; }, Deadline::At(25)));
  EXPECT_EQ(events, 2);
  EXPECT_EQ(executor.Now(), 25);
  EXPECT_TRUE(executor.RunUntil([&] { return events == 3; }, Deadline::Infinite()));
  EXPECT_FALSE(executor.RunUntil([] { return false; }, Deadline::Infinite()));
  EXPECT_EQ(executor.Now(), 30);
}

TEST(SimParker, RunsTheSimulationUntilItIsUnparked) {
  SimExecutor executor;
  std::unique_ptr<Parker> parker = executor.NewParker();
  executor.RunAt(40, [&] { parker->Unpark(); });
  EXPECT_EQ(parker->Park(Deadline::At(39)), ParkResult::kTimedOut);
  EXPECT_EQ(executor.Now(), 39);
  EXPECT_EQ(parker->Park(Deadline::Infinite()), ParkResult::kUnparked);
  EXPECT_EQ(executor.Now(), 40);
  parker->Unpark();
  parker->Unpark();
  EXPECT_EQ(parker->Park(Deadline::Infinite()), ParkResult::kUnparked);
  EXPECT_EQ(parker->Park(Deadline::At(0)), ParkResult::kTimedOut);
}

TEST(SimExecutorDeathTest, WhoeverWaitsForEverIsFound) {
  SimExecutor executor;
  std::unique_ptr<Parker> parker = executor.NewParker();
  EXPECT_DEATH(parker->Park(Deadline::Infinite()), "parks for ever");
  executor.Post([&] { parker->Park(Deadline::At(5)); });
  executor.RunAt(1, [] {});
  EXPECT_DEATH(executor.Step(), "waits for other events");
}

}  // namespace
}  // namespace viaduct::verbs
