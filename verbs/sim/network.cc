#include "verbs/sim/network.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "verbs/sim/connection.h"

namespace viaduct::verbs {

Network::Network(SimExecutor& executor, const SimOptions& options)
    : executor_(executor), options_(options), random_(options.seed) {}

// splitmix64: a seed gives the same numbers everywhere.
Nanos Network::Delay() {
  random_ += 0x9e3779b97f4a7c15;
  uint64_t z = random_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  z ^= z >> 31;
  const uint64_t range = static_cast<uint64_t>(options_.max_delay - options_.min_delay) + 1;
  return options_.min_delay + static_cast<Nanos>(z % range);
}

SimNode& Network::AddNode() {
  auto host = 0x0a000001u + static_cast<uint32_t>(nodes_.size());
  while (Find(Address::V4(host)) != nullptr) ++host;
  return AddNode(Address::V4(host));
}

SimNode& Network::AddNode(const Address& address) {
  auto node = std::make_unique<SimNode>();
  node->number = static_cast<int>(nodes_.size()) + 1;
  node->address = address;
  nodes_.push_back(std::move(node));
  return *nodes_.back();
}

SimNode* Network::Find(const Address& address) {
  for (const std::unique_ptr<SimNode>& node : nodes_) {
    if (node->address == address) return node.get();
  }
  return nullptr;
}

void Network::Send(SimLane& lane, absl::string_view what, size_t bytes,
                   std::function<void()> deliver) {
  const Nanos at = std::max(executor_.Now() + Delay(), lane.last_arrival);
  lane.last_arrival = at;
  if (!lane.from->alive) return;
  auto packet = std::make_shared<Packet>();
  packet->from = lane.from;
  packet->to = lane.to;
  packet->what = absl::StrCat(lane.from->number, ">", lane.to->number, " ", what, " ", bytes);
  packet->deliver = std::move(deliver);
  executor_.RunAt(at, [this, packet] { Arrive(packet); });
}

void Network::Arrive(std::shared_ptr<Packet> packet) {
  if (!packet->to->alive) return;
  if (!packet->from->reachable || !packet->to->reachable) {
    kept_back_.push_back(std::move(packet));
    return;
  }
  trace_.push_back(absl::StrCat(executor_.Now(), " ", packet->what));
  packet->deliver();
}

void Network::Later(std::function<void()> event) {
  executor_.RunAt(executor_.Now() + Delay(), std::move(event));
}

void Network::Add(std::shared_ptr<SimConnection> connection) {
  if (std::find(connections_.begin(), connections_.end(), connection) != connections_.end()) return;
  connections_.push_back(std::move(connection));
}

void Network::Remove(SimConnection* connection) {
  const auto it = std::find_if(connections_.begin(), connections_.end(),
                               [=](const auto& entry) { return entry.get() == connection; });
  if (it != connections_.end()) connections_.erase(it);
}

void Network::Kill(SimNode& node) {
  node.listeners.clear();
  const std::vector<std::shared_ptr<SimConnection>> connections = connections_;
  // The notification arrives after everything that the node had sent.
  for (const std::shared_ptr<SimConnection>& connection : connections) {
    connection->TellDeathOf(node);
  }
  node.alive = false;
}

void Network::Reset(SimNode& a, SimNode& b) {
  const std::vector<std::shared_ptr<SimConnection>> connections = connections_;
  for (const std::shared_ptr<SimConnection>& connection : connections) {
    if (connection->Joins(a, b)) connection->Reset();
  }
}

void Network::SetReachable(SimNode& node, bool reachable) {
  node.reachable = reachable;
  // In the order of arrival; packets that have to wait for another node are kept back again.
  for (std::shared_ptr<Packet>& packet : std::exchange(kept_back_, {})) {
    executor_.Post([this, packet] { Arrive(packet); });
  }
}

}  // namespace viaduct::verbs
