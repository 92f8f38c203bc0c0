#include "verbs/base/anchor.h"

#include <memory>

#include "gtest/gtest.h"
#include "verbs/base/control_thread.h"

namespace viaduct::verbs {
namespace {

ControlThread& Loop() { return **ControlThread::Get(); }

// Counts its calls, and may be destroyed during one.
class Ship {
 public:
  Ship() { anchor_->Begin(this); }
  ~Ship() {
    anchor_->End();
    Loop().Drain();
  }
  void Hail() { anchor_->Post(Loop()); }

  int* calls = nullptr;
  std::unique_ptr<Ship>* sinks = nullptr;

 private:
  void Answer() {
    const auto anchor = anchor_;
    const bool ends = sinks != nullptr;
    ++*calls;
    if (ends) sinks->reset();
    EXPECT_EQ(anchor->Get() == nullptr, ends);
  }

  const std::shared_ptr<Anchor<&Ship::Answer, Ship>> anchor_ =
      std::make_shared<Anchor<&Ship::Answer, Ship>>();
};

TEST(AnchorTest, CallsAnObjectThatIs) {
  int calls = 0;
  Ship ship;
  ship.calls = &calls;
  ship.Hail();
  Loop().Drain();
  EXPECT_EQ(calls, 1);
}

TEST(AnchorTest, DoesNotCallOneThatHasEnded) {
  int calls = 0;
  Loop().RunAndWait([&] {
    Ship ship;
    ship.calls = &calls;
    ship.Hail();
  });
  Loop().Drain();
  EXPECT_EQ(calls, 0);
}

TEST(AnchorTest, CallsAtOnceOnlyWhatIs) {
  Ship ship;
  int calls = 0;
  ship.calls = &calls;
  const auto anchor = std::make_shared<Anchor<&Ship::Hail, Ship>>();
  Loop().RunAndWait([&] { anchor->Call(); });
  Loop().Drain();
  EXPECT_EQ(calls, 0) << "not begun";
  anchor->Begin(&ship);
  Loop().RunAndWait([&] { anchor->Call(); });
  Loop().Drain();
  EXPECT_EQ(calls, 1);
}

TEST(AnchorTest, TellsACallThatItsObjectHasEnded) {
  int calls = 0;
  auto ship = std::make_unique<Ship>();
  ship->calls = &calls;
  ship->Hail();
  Loop().Drain();
  Loop().RunAndWait([&] { ship->sinks = &ship; });
  ship->Hail();
  Loop().Drain();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(ship, nullptr);
}

TEST(AnchorTest, EndSaysWhetherItHadBegun) {
  Ship ship;
  const auto anchor = std::make_shared<Anchor<&Ship::Hail, Ship>>();
  EXPECT_EQ(anchor->Get(), nullptr);
  EXPECT_FALSE(anchor->End());
  anchor->Begin(&ship);
  EXPECT_EQ(anchor->Get(), &ship);
  EXPECT_TRUE(anchor->End());
  EXPECT_FALSE(anchor->End());
}

}  // namespace
}  // namespace viaduct::verbs
