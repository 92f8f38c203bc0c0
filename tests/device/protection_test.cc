// A peer does not reach memory that it may not reach. How the device reports the attempt is tested
// by error_test.cc and window_test.cc.
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "tests/device/ends.h"

namespace viaduct::verbs {
namespace {

constexpr uint32_t kLocal = kLocalRead | kLocalWrite;
constexpr uint32_t kRemote = kRemoteRead | kRemoteWrite;
constexpr size_t kBytes = 100;

class ProtectionTest : public DeviceTest {
 protected:
  // What the peer of `to` tries to reach.
  struct Target {
    uint64_t address;
    Key key;
  };
  using Choice = std::function<Target(End& to)>;

  // The peer may reach memory only through windows.
  static EndOptions OfLocalMemory() {
    EndOptions options;
    options.region_access = kLocal;
    return options;
  }

  void ExpectKept(Opcode opcode, const Choice& choose, const EndOptions& options = {}) {
    End& from = NewEnd(a());
    End& to = NewEnd(b(), options);
    Connect(from, to);
    to.Put(0, Pattern(to.memory().size(), 1));
    from.Put(0, Pattern(kBytes, 2));
    const Target target = choose(to);
    ASSERT_EQ(from.PostTo(opcode, 1, kBytes, target.address, target.key), PostResult::kOk);
    EXPECT_NE(Await(from.sends()).status, Status::kSuccess);
    EXPECT_EQ(to.memory(), Pattern(to.memory().size(), 1));
    EXPECT_EQ(from.Get(0, kBytes), Pattern(kBytes, 2));
    windows_.clear();
    regions_.clear();
    DestroyEnds();
    other_domain_.reset();
  }
  void ExpectBothKept(const Choice& choose, const EndOptions& options = {}) {
    for (Opcode opcode : {Opcode::kWrite, Opcode::kRead}) {
      SCOPED_TRACE(opcode == Opcode::kWrite ? "write" : "read");
      ExpectKept(opcode, choose, options);
    }
  }

  // Registers all of the memory once more, with these rights.
  Key Register(End& to, ProtectionDomain& domain, uint32_t access) {
    auto region = to.context().Register(domain, &to.memory()[0], to.memory().size(), access);
    EXPECT_TRUE(region.ok()) << region.status();
    regions_.push_back(*std::move(region));
    return regions_.back()->key();
  }
  // Binds the first `length` bytes; may be none.
  Key Bind(End& to, MemoryWindow& window, uint32_t access, size_t length = kBytes) {
    Key key = 0;
    EXPECT_EQ(to.pair().PostBind(to.ToBind(77, window, 0, length, access), &key), PostResult::kOk);
    Expect(to.sends(), 77);
    return key;
  }
  MemoryWindow& NewWindow(End& to) {
    auto window = to.context().CreateWindow(to.domain(), WindowScope::kDomain);
    EXPECT_TRUE(window.ok()) << window.status();
    windows_.push_back(*std::move(window));
    return *windows_.back();
  }

  std::unique_ptr<ProtectionDomain> other_domain_;
  std::vector<std::unique_ptr<MemoryRegion>> regions_;
  std::vector<std::unique_ptr<MemoryWindow>> windows_;
};

TEST_F(ProtectionTest, NoMemoryGoesOnBehindTheLastAddress) {
  const std::unique_ptr<ProtectionDomain> domain = *a().CreateDomain(/*wildcard=*/false);
  void* const last_page = reinterpret_cast<void*>(~uintptr_t{4095});
  const auto region = a().Register(*domain, last_page, 2 * 4096, kLocalRead);
  EXPECT_TRUE(absl::IsInvalidArgument(region.status())) << region.status();
}

TEST_F(ProtectionTest, ByAKeyThatIsNobodys) {
  ExpectBothKept([](End& to) { return Target{to.Address(0), to.region().key() ^ 0x00550000}; });
}

TEST_F(ProtectionTest, BeyondTheEndOfARegion) {
  ExpectBothKept([](End& to) {
    return Target{to.Address(to.memory().size() - kBytes + 1), to.region().key()};
  });
}

TEST_F(ProtectionTest, BeforeTheBeginningOfARegion) {
  ExpectBothKept([](End& to) { return Target{to.Address(0) - 1, to.region().key()}; });
}

TEST_F(ProtectionTest, WritesToARegionForReads) {
  ExpectKept(Opcode::kWrite, [this](End& to) {
    return Target{to.Address(0), Register(to, to.domain(), kLocal | kRemoteRead)};
  });
}

TEST_F(ProtectionTest, ReadsOfARegionForWrites) {
  ExpectKept(Opcode::kRead, [this](End& to) {
    return Target{to.Address(0), Register(to, to.domain(), kLocal | kRemoteWrite)};
  });
}

TEST_F(ProtectionTest, WritesToALocalRegion) {
  ExpectKept(Opcode::kWrite, [this](End& to) {
    return Target{to.Address(0), Register(to, to.domain(), kLocal)};
  });
}

TEST_F(ProtectionTest, ReadsOfALocalRegion) {
  ExpectKept(Opcode::kRead, [this](End& to) {
    return Target{to.Address(0), Register(to, to.domain(), kLocal)};
  });
}

TEST_F(ProtectionTest, ARegionOfAnotherDomain) {
  ExpectBothKept([this](End& to) {
    auto domain = to.context().CreateDomain(/*wildcard=*/false);
    EXPECT_TRUE(domain.ok()) << domain.status();
    other_domain_ = *std::move(domain);
    return Target{to.Address(0), Register(to, *other_domain_, kAllAccess)};
  });
}

TEST_F(ProtectionTest, WritesWhereThePairAllowsNone) {
  EndOptions options;
  options.remote_access = kRemoteRead;
  ExpectKept(
      Opcode::kWrite,
      [](End& to) {
        return Target{to.Address(0), to.region().key()};
      },
      options);
}

TEST_F(ProtectionTest, ReadsWhereThePairAllowsNone) {
  EndOptions options;
  options.remote_access = kRemoteWrite;
  ExpectKept(
      Opcode::kRead,
      [](End& to) {
        return Target{to.Address(0), to.region().key()};
      },
      options);
}

TEST_F(ProtectionTest, ARegionThatHasEnded) {
  ExpectBothKept([this](End& to) {
    const Key key = Register(to, to.domain(), kAllAccess);
    regions_.clear();
    return Target{to.Address(0), key};
  });
}

TEST_F(ProtectionTest, BeyondTheEndOfAWindow) {
  ExpectBothKept(
      [this](End& to) {
        return Target{to.Address(1), Bind(to, NewWindow(to), kRemote)};
      },
      OfLocalMemory());
}

TEST_F(ProtectionTest, WritesThroughAWindowForReads) {
  ExpectKept(
      Opcode::kWrite,
      [this](End& to) {
        return Target{to.Address(0), Bind(to, NewWindow(to), kRemoteRead)};
      },
      OfLocalMemory());
}

TEST_F(ProtectionTest, ReadsThroughAWindowForWrites) {
  ExpectKept(
      Opcode::kRead,
      [this](End& to) {
        return Target{to.Address(0), Bind(to, NewWindow(to), kRemoteWrite)};
      },
      OfLocalMemory());
}

TEST_F(ProtectionTest, ByTheKeyOfAnEarlierBind) {
  for (const size_t next : {kBytes, size_t{0}}) {
    SCOPED_TRACE(next);
    ExpectBothKept(
        [&](End& to) {
          MemoryWindow& window = NewWindow(to);
          const Key key = Bind(to, window, kRemote);
          Bind(to, window, kRemote, next);
          return Target{to.Address(0), key};
        },
        OfLocalMemory());
  }
}

TEST_F(ProtectionTest, AWindowThatHasEnded) {
  ExpectBothKept(
      [this](End& to) {
        const Key key = Bind(to, NewWindow(to), kRemote);
        windows_.clear();
        return Target{to.Address(0), key};
      },
      OfLocalMemory());
}

TEST_F(ProtectionTest, AWindowWhoseRegionHasEnded) {
  ExpectBothKept(
      [this](End& to) {
        const Key key = Bind(to, NewWindow(to), kRemote);
        to.DestroyRegion();
        return Target{to.Address(0), key};
      },
      OfLocalMemory());
}

}  // namespace
}  // namespace viaduct::verbs
