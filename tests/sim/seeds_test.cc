// Random programs on a few processes, one for each seed, and what must hold in all of them.
//
//   - a call is refused exactly where the state table refuses it
//   - every attempt, active or passive, has exactly one outcome; every connection one end
//   - every posted request completes once, also through flushes
//   - when all is quiet, an endpoint is connected exactly if it heard so, and its peer is too: a
//     report of the device that the table took for impossible would leave one side behind
//   - a dispatcher has room for the events that are still to come, and keeps no more
//   - no handle and no object stays
//   - the same seed gives the same run
//
// VIADUCT_LONG in the environment: 10,000 seeds instead of 300. VIADUCT_SEED: that one alone.
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "dat/core/handle_table.h"
#include "gtest/gtest.h"
#include "tests/sim/engine.h"

namespace viaduct::core {
namespace {

using State = EndpointState;
using Input = EndpointInput;
using verbs::DisconnectMode;

constexpr int kNodes = 3;
constexpr int kEnds = 4;
constexpr int kOperations = 250;
constexpr size_t kMostPosted = 64;
constexpr verbs::Nanos kDatGrace = 5 * kMilli;

// splitmix64, like the simulated network's.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x2545f4914f6cdd1d + 1) {}
  uint64_t Below(uint64_t n) {
    state_ += 0x9e3779b97f4a7c15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % n;
  }
  bool OneIn(uint64_t n) { return Below(n) == 0; }

 private:
  uint64_t state_;
};

// An end and what is known of it from the calls that succeeded and the events that came.
struct Watched {
  Watched(Node& node, const EndpointAttributes& attributes)
      : end(node, attributes), address(node.address()) {}
  State state() const { return end->state(); }

  End end;
  const verbs::Address address;
  Ref<ServicePoint> reserved;
  bool attempt = false;    // begun, and no outcome yet
  bool connected = false;  // established, and no end yet
  uint64_t next_id = 1;
  absl::flat_hash_set<uint64_t> posted;  // and not complete
};

struct Process {
  std::unique_ptr<Node> node;
  Ref<ServicePoint> points[3];
  std::vector<Ref<ConnectionRequest>> undecided;
  std::vector<std::unique_ptr<Watched>> ends;
  bool reachable = true;

  // Ends must go before their node; requests and points would keep it alive.
  void Clear() {
    ends.clear();
    undecided.clear();
    for (Ref<ServicePoint>& point : points) point = {};
    node.reset();
  }
};

class Run {
 public:
  explicit Run(uint64_t seed) : random_(seed), options_(Options(seed)), simulation_(options_) {
    for (Process& process : processes_) Start(process);
  }
  ~Run() {
    for (Process& process : processes_) process.Clear();
  }

  // Runs the program; returns what happened, line by line.
  std::vector<std::string> Go() {
    for (int i = 0; i < kOperations && !testing::Test::HasFailure(); ++i) {
      Operate();
      Listen();
    }
    if (!testing::Test::HasFailure()) Finish();
    for (const std::string& line : simulation_.trace()) story_.push_back(line);
    return std::move(story_);
  }

 private:
  static verbs::SimOptions Options(uint64_t seed) {
    verbs::SimOptions options;
    options.seed = seed;
    options.window = seed % 3 == 0 ? 2 : 32;
    return options;
  }
  static ServiceName NameOf(uint64_t which) {
    return ServiceName::FromQualifier(which == 0 ? 5000 : (uint64_t{1} << 40) + which);
  }

  void Start(Process& process) {
    process.node = std::make_unique<Node>(simulation_);
    process.reachable = true;
    for (int i = 0; i < kEnds; ++i) process.ends.push_back(MakeEnd(process));
    for (uint64_t i = 0; i < 3; ++i) TogglePoint(process, i);
  }
  std::unique_ptr<Watched> MakeEnd(Process& process) {
    EndpointAttributes attributes;
    attributes.keep_receives_on_failure = random_.OneIn(2);
    attributes.flush_on_unreachable = random_.OneIn(2);
    return std::make_unique<Watched>(*process.node, attributes);
  }
  Process& AnyProcess() { return processes_[random_.Below(kNodes)]; }
  Watched& AnyEnd(Process& process) { return *process.ends[random_.Below(kEnds)]; }

  // Mostly an unconnected end, if there is one.
  Watched& IdleEnd(Process& process) {
    for (const std::unique_ptr<Watched>& watched : process.ends) {
      if (watched->state() == State::kUnconnected && !random_.OneIn(8)) return *watched;
    }
    return AnyEnd(process);
  }
  // Mostly a connected end, if there is one.
  Watched& BusyEnd(Process& process) {
    for (const std::unique_ptr<Watched>& watched : process.ends) {
      if (watched->state() == State::kConnected && !random_.OneIn(3)) return *watched;
    }
    return AnyEnd(process);
  }

  void RunFor(verbs::Nanos duration) {
    verbs::SimExecutor& executor = simulation_.executor();
    executor.RunUntil([] { return false; }, verbs::Deadline::After(executor, duration));
  }
  void Note(const std::string& what) {
    story_.push_back(absl::StrCat(simulation_.executor().Now(), " ", what));
  }
  // The engine must have answered a call as the table says; returns whether the call succeeded.
  bool Agrees(State before, Input input, Error error) {
    const bool allowed = Next(before, input).verdict != Verdict::kInvalid;
    EXPECT_EQ(error.ok(), allowed)
        << EndpointInputName(input) << " in " << EndpointStateName(before) << ": code "
        << static_cast<int>(error.code) << ", detail " << static_cast<int>(error.detail);
    Note(absl::StrCat(EndpointInputName(input), " in ", EndpointStateName(before)));
    return error.ok();
  }

  void Operate() {
    Process& process = AnyProcess();
    Watched& watched = AnyEnd(process);
    switch (random_.Below(20)) {
      case 0:
      case 1:
      case 2:
        return Connect(process, watched);
      case 3:
      case 4:
      case 5:
      case 6:
        return Decide(process);
      case 7:
      case 8:
        return Disconnect(watched);
      case 9:
      case 10:
        return PostSend(BusyEnd(process));
      case 11:
      case 12:
        return PostReceive(BusyEnd(process));
      case 13:
      case 14:
        return Reset(watched);
      case 15:
        return Rarely(process);
      default:
        return RunFor(
            static_cast<verbs::Nanos>(random_.Below(random_.OneIn(8) ? 40 * kMilli : kMilli / 5)));
    }
  }

  void Connect(Process& process, Watched& watched) {
    const State before = watched.state();
    Error error;
    Watched& other = AnyEnd(process);
    const verbs::Deadline deadline = verbs::Deadline::After(
        simulation_.executor(), static_cast<verbs::Nanos>(random_.Below(100 * kMilli)));
    if (&other != &watched && other.state() == State::kConnected) {
      error = watched.end->DuplicateConnect(*other.end, deadline, Bytes("again"), kDatGrace);
    } else {
      // Sometimes a name that nobody serves.
      Node& to = *AnyProcess().node;
      const ServiceName name = NameOf(random_.Below(random_.OneIn(4) ? 5 : 2));
      error = random_.OneIn(3) ? watched.end.ConnectVipl(to, name, 30 * kMilli, deadline)
                               : watched.end.Connect(to, name, "hello", deadline, kDatGrace);
    }
    if (Agrees(before, Input::kConnect, error)) Begin(watched);
  }

  void Begin(Watched& watched) {
    EXPECT_FALSE(watched.attempt || watched.connected);
    watched.attempt = true;
  }

  void Decide(Process& process) {
    while (Ref<ConnectionRequest> request = process.node->NextRequest()) {
      process.undecided.push_back(std::move(request));
    }
    if (process.undecided.empty()) return;
    const size_t which = random_.Below(process.undecided.size());
    const Ref<ConnectionRequest> request = process.undecided[which];
    Error error;
    switch (random_.Below(6)) {
      case 0:
        error = request->Reject(Bytes("no"));
        EXPECT_TRUE(error.ok());
        break;
      case 1:
        request->Destroy();
        break;
      case 2:  // refused where nobody serves the name
        error = request->HandOff(NameOf(random_.Below(4)));
        break;
      default:
        if (request->endpoint()) {
          error = AcceptOwn(process, *request);
        } else {
          Watched& watched = IdleEnd(process);
          const State before = watched.state();
          error = request->Accept(&*watched.end, Bytes("yes"));
          if (Agrees(before, Input::kAcceptExplicit, error)) Begin(watched);
        }
    }
    if (error.ok()) process.undecided.erase(process.undecided.begin() + which);
  }

  Error AcceptOwn(Process& process, ConnectionRequest& request) {
    const Error error = request.Accept(nullptr, Bytes("yes"));
    for (const std::unique_ptr<Watched>& watched : process.ends) {
      if (&*watched->end != request.endpoint().get()) continue;
      EXPECT_TRUE(error.ok());
      Begin(*watched);
      return error;
    }
    EXPECT_EQ(error, InvalidState(StateDetail::kEndpointZone)) << "made for the request";
    return error;
  }

  void Disconnect(Watched& watched) {
    const State before = watched.state();
    if (before == State::kActivePending && !random_.OneIn(4)) return;  // otherwise few get further
    const bool abrupt = random_.OneIn(2);
    const Error error =
        watched.end->Disconnect(abrupt ? DisconnectMode::kAbrupt : DisconnectMode::kGraceful);
    (void)Agrees(before, abrupt ? Input::kDisconnectAbrupt : Input::kDisconnectGraceful, error);
  }

  void Reset(Watched& watched) {
    RunFor(0);  // Reset runs what is due, which may change the state
    const State before = watched.state();
    const Error error = watched.end->Reset();
    (void)Agrees(before, Input::kReset, error);
  }

  void PostSend(Watched& watched) {
    if (watched.posted.size() >= kMostPosted) return;
    const uint64_t id = watched.next_id++;
    const uint16_t flags = random_.OneIn(2) ? verbs::kConfirm : 0;
    const Error error = watched.end.Send(id, flags);
    if (Agrees(watched.state(), Input::kPostRequest, error)) watched.posted.insert(id);
  }

  void PostReceive(Watched& watched) {
    if (watched.posted.size() >= kMostPosted) return;
    const uint64_t id = watched.next_id++;
    const Error error = watched.end.Receive(id);
    const char* const state = EndpointStateName(watched.state());
    EXPECT_TRUE(error.ok()) << "allowed in every state, and in " << state;
    Note(absl::StrCat("post receive in ", state));
    if (error.ok()) watched.posted.insert(id);
  }

  void Rarely(Process& process) {
    Process& other = AnyProcess();
    switch (random_.Below(8)) {
      case 0:                            // a process dies, another one starts
        if (!process.reachable) return;  // nobody would hear of it
        Note("kill");
        simulation_.Kill(process.node->context());
        process.Clear();
        return Start(process);
      case 1:
        Note("reset connections");
        return simulation_.ResetConnections(process.node->context(), other.node->context());
      case 2:
      case 3:
        Note("reachable or not");
        process.reachable = !process.reachable;
        return simulation_.SetReachable(process.node->context(), process.reachable);
      case 4:
        return TogglePoint(process, random_.Below(3));
      case 5:
        return Reserve(process, AnyEnd(process));
      case 6: {
        std::unique_ptr<Watched>& watched = process.ends[random_.Below(kEnds)];
        const State before = watched->state();
        const Error error = watched->end->Free();
        if (Agrees(before, Input::kFree, error)) watched = MakeEnd(process);
        return;
      }
      default: {
        Watched& watched = AnyEnd(process);
        const bool idle = watched.state() == State::kUnconnected;
        EXPECT_EQ(watched.end->FlushPosted().ok(), idle);
        Listen();
        if (idle) {
          EXPECT_TRUE(watched.posted.empty()) << "a flush that left something";
        }
      }
    }
  }

  // 0: a direct name; 1: a hashed one, with a shared point; 2: with endpoints of the provider.
  void TogglePoint(Process& process, uint64_t which) {
    Ref<ServicePoint>& point = process.points[which];
    if (point) {
      EXPECT_TRUE(point->Free().ok());
      point = {};
      return;
    }
    ServicePoint::Options options;
    options.name = NameOf(which);
    options.shared = which == 1;
    options.provider_endpoint = which == 2;
    point = process.node->Listen(options);
  }

  void Reserve(Process& process, Watched& watched) {
    if (watched.state() == State::kReserved) {
      EXPECT_TRUE(watched.reserved->Free().ok());
      EXPECT_EQ(watched.state(), State::kUnconnected);
      return;
    }
    const State before = watched.state();
    const Error error =
        ServicePoint::CreateReserved(process.node->adapter(), NameOf(3), *watched.end,
                                     process.node->requests(), &watched.reserved);
    if (error.code == Code::kConnQualInUse) {  // by another end
      EXPECT_EQ(watched.state(), before);
      return;
    }
    (void)Agrees(before, Input::kReserve, error);
  }

  // Takes every event and checks it against what is known.
  void Listen() {
    int number = 0;
    for (Process& process : processes_) {
      for (const std::unique_ptr<Watched>& watched : process.ends) {
        ++number;
        Event event;
        while (watched->end.events().Dequeue(&event).ok()) {
          Note(absl::StrCat(number, " ", Word(event)));
          Hear(*watched, event);
        }
        EXPECT_EQ(watched->connected, watched->state() == State::kConnected ||
                                          watched->state() == State::kDisconnectPending);
        EXPECT_EQ(watched->attempt, watched->state() == State::kActivePending ||
                                        watched->state() == State::kCompletionPending);
        EXPECT_EQ(watched->end.events().kept_room(), EventsToCome(watched->state()));
        if (watched->state() == State::kDisconnected) {
          EXPECT_TRUE(watched->posted.empty()) << "not flushed";
        }
      }
    }
  }

  void Hear(Watched& watched, const Event& event) {
    switch (event.type) {
      case EventType::kCompletion:
        EXPECT_EQ(watched.posted.erase(event.cookie), 1u) << "completed twice: " << Word(event);
        return;
      case EventType::kEstablished:
        EXPECT_TRUE(watched.attempt) << "a second outcome";
        watched.attempt = false;
        watched.connected = true;
        return;
      case EventType::kPeerRejected:
      case EventType::kNonPeerRejected:
      case EventType::kTimedOut:
      case EventType::kUnreachable:
      case EventType::kAcceptCompletionError:
        EXPECT_TRUE(watched.attempt) << "a second outcome";
        watched.attempt = false;
        return;
      case EventType::kBroken:
        EXPECT_TRUE(watched.connected) << "a second end";
        watched.connected = false;
        return;
      case EventType::kDisconnected:
        EXPECT_NE(watched.attempt, watched.connected) << "a second end";
        watched.attempt = watched.connected = false;
        return;
      default:
        ADD_FAILURE() << Word(event);
    }
  }

  // Lets everything come to its end.
  void Finish() {
    for (Process& process : processes_) {
      process.reachable = true;
      simulation_.SetReachable(process.node->context(), true);
    }
    RunFor(kSecond);
    for (Process& process : processes_) {
      while (Ref<ConnectionRequest> request = process.node->NextRequest()) request->Destroy();
      for (const Ref<ConnectionRequest>& request : process.undecided) request->Destroy();
      process.undecided.clear();
    }
    RunFor(kSecond);
    Listen();
    ForEach([&](Watched& watched) {
      EXPECT_FALSE(watched.attempt) << "an attempt without outcome";
      if (watched.connected) {
        EXPECT_TRUE(HasPeer(watched)) << "connected to nobody";
      }
    });
    ForEach([&](Watched& watched) {
      if (watched.connected) {
        EXPECT_TRUE(watched.end->Disconnect(DisconnectMode::kAbrupt).ok());
      }
    });
    RunFor(kSecond);
    Listen();
    ForEach([&](Watched& watched) {
      EXPECT_FALSE(watched.connected) << "a connection without end";
      if (watched.state() == State::kReserved) {
        EXPECT_TRUE(watched.reserved->Free().ok());
      }
      if (watched.state() == State::kUnconnected) {
        EXPECT_TRUE(watched.end->FlushPosted().ok());
      }
    });
    Listen();
    ForEach([&](Watched& watched) {
      EXPECT_TRUE(watched.posted.empty()) << watched.posted.size() << " requests never completed";
    });
  }

  template <typename Call>
  void ForEach(Call call) {
    for (Process& process : processes_) {
      for (const std::unique_ptr<Watched>& watched : process.ends) call(*watched);
    }
  }
  bool HasPeer(const Watched& one) {
    bool found = false;
    ForEach([&](Watched& other) {
      const State state = other.state();
      if (&other == &one || (state != State::kConnected && state != State::kDisconnectPending)) {
        return;
      }
      if (other.end->remote_address() != one.address) return;
      if (one.end->remote_address() != other.address) return;
      found = found || other.end->remote_qualifier() == one.end->local_port() ||
              one.end->remote_qualifier() == other.end->local_port();
    });
    return found;
  }

  Random random_;
  const verbs::SimOptions options_;
  verbs::Simulation simulation_;
  Process processes_[kNodes];
  std::vector<std::string> story_;
};

// An abort names its seed too.
volatile std::sig_atomic_t playing = 0;
void OnAbort(int) {
  char text[] = "aborted in VIADUCT_SEED=          \n";
  char* digit = text + sizeof(text) - 3;
  for (int seed = playing; seed != 0; seed /= 10) *digit-- = static_cast<char>('0' + seed % 10);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, sizeof(text) - 1);
}

std::vector<std::string> Play(uint64_t seed) {
  playing = static_cast<std::sig_atomic_t>(seed);
  std::signal(SIGABRT, OnAbort);
  const size_t handles = HandleTable::Size();
  std::vector<std::string> story;
  {
    Run run(seed);
    story = run.Go();
  }
  EXPECT_EQ(HandleTable::Size(), handles) << "handles that nobody freed";
  return story;
}

TEST(SeedsTest, InvariantsHold) {
  uint64_t first = 1;
  uint64_t last = std::getenv("VIADUCT_LONG") != nullptr ? 10'000 : 300;
  if (const char* one = std::getenv("VIADUCT_SEED")) {
    first = last = std::strtoull(one, nullptr, 10);
  }
  for (uint64_t seed = first; seed <= last; ++seed) {
    SCOPED_TRACE(absl::StrCat("VIADUCT_SEED=", seed));
    const std::vector<std::string> story = Play(seed);
    if (!HasFailure()) continue;
    for (const std::string& line : story) std::fprintf(stderr, "%s\n", line.c_str());
    FAIL() << "repeat it with --test_env=VIADUCT_SEED=" << seed;
  }
}

TEST(SeedsTest, SeedRepeatsItsRun) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("VIADUCT_SEED=", seed));
    const std::vector<std::string> story = Play(seed);
    EXPECT_GT(story.size(), 200u);
    EXPECT_TRUE(story == Play(seed));
  }
  EXPECT_NE(Play(1), Play(2));
}

}  // namespace
}  // namespace viaduct::core
