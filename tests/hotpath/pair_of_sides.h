// Two connected sides of one kind, in the server's and in the client's process of a test.
#ifndef VIADUCT_TESTS_HOTPATH_PAIR_OF_SIDES_H_
#define VIADUCT_TESTS_HOTPATH_PAIR_OF_SIDES_H_

#include <gtest/gtest.h>

#include <functional>

#include "tests/bench/side.h"
#include "tests/conformance/harness/harness.h"

namespace viaduct::hotpath {

using tests::Peer;

// `body` runs on both sides, which have one connection each.
template <typename Side>
void RunConnected(const bench::SideOptions& options,
                  const std::function<void(Side&, Peer&, bool active)>& body) {
  tests::PairOptions limits;
  limits.seconds = 120;
  tests::RunPair(
      [&](Peer& peer) {
        Side side(options);
        side.Listen(tests::Port(0));
        peer.Tell("listening");
        side.Accept();
        body(side, peer, false);
      },
      [&](Peer& peer) {
        Side side(options);
        peer.Await("listening");
        side.Connect(tests::Port(0));
        body(side, peer, true);
      },
      limits);
}

// More connections, up to `count` in all.
template <typename Side>
void AddConnections(Side& side, bool active, size_t count) {
  while (side.connections() < count) {
    if (active) {
      side.Connect(tests::Port(0));
    } else {
      side.Accept();
    }
  }
}

// Both sides call this, and each gets the other's value.
template <typename T>
T Exchange(Peer& peer, const T& mine) {
  peer.Send(mine);
  return peer.Receive<T>();
}

}  // namespace viaduct::hotpath

#endif  // VIADUCT_TESTS_HOTPATH_PAIR_OF_SIDES_H_
