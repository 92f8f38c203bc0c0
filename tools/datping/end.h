// One end of a measurement: an endpoint, its dispatchers and buffers, through only the functions of
// <dat2/udat.h>. Each end is used by one thread; ends may share an adapter. Every failure throws
// Failure; the end of the connection throws Ended.
#ifndef VIADUCT_TOOLS_DATPING_END_H_
#define VIADUCT_TOOLS_DATPING_END_H_

#include <dat2/udat.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tools/datping/parameters.h"
#include "tools/ping/program.h"

namespace viaduct::datping {

using ping::Ended;
using ping::Failure;
using ping::Now;

// Throws unless `value` is success.
void Must(const std::string& call, DAT_RETURN value);

class Adapter {
 public:
  explicit Adapter(const std::string& name);
  ~Adapter();
  Adapter(const Adapter&) = delete;
  Adapter& operator=(const Adapter&) = delete;

  DAT_IA_HANDLE ia() const { return ia_; }
  DAT_PZ_HANDLE zone() const { return zone_; }
  // The family of its address: AF_INET or AF_INET6.
  int family() const;

 private:
  DAT_IA_HANDLE ia_ = nullptr;
  DAT_PZ_HANDLE zone_ = nullptr;
};

// A client's request for a connection. The destructor rejects it, unless it was accepted.
class Request {
 public:
  explicit Request(DAT_CR_HANDLE handle) : handle_(handle) {}
  Request(Request&& from) noexcept : handle_(std::exchange(from.handle_, DAT_HANDLE_NULL)) {}
  ~Request();

  // False: the client is of another version.
  bool Read(Parameters* parameters, Place* place) const;
  void Accept(DAT_EP_HANDLE ep, const Parameters& parameters, const Place& place);

 private:
  DAT_CR_HANDLE handle_;
};

class End {
 public:
  // Not connected, with `depth` receives posted. A constructor that throws leaves nothing behind.
  End(const Adapter& adapter, const Parameters& parameters, int timeout_seconds);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // ---- becoming connected
  // False: nobody listens there yet; the end may try again.
  bool Connect(DAT_IA_ADDRESS_PTR host, DAT_CONN_QUAL service);
  void Accept(Request* request, const Place& remote);

  // ---- afterwards
  // Posts one message of the measurement, number `n` of this end.
  void Post(uint64_t n);
  // Waits until all posted requests but `left` have completed.
  void AwaitRequests(uint64_t left = 0);
  // Waits until that many messages have come since the connection; each receive is posted again.
  void AwaitReceives(uint64_t count);
  // Waits until the other end's silent write number `n` is in memory.
  void AwaitWrite(uint64_t n);
  // Waits until everything that was posted has arrived.
  void Barrier();
  // Waits while the other end reads and writes here; when it goes, throws Ended.
  [[noreturn]] void AwaitEnd();
  void Disconnect();

 private:
  static constexpr uint32_t kLeastBytes = 8;

  // Makes nothing yet that the destructor has to release.
  End(const Parameters& parameters, int timeout_seconds);

  void PostReceive();
  void PostMessage(uint32_t bytes);
  DAT_EVENT NextConnectionEvent(DAT_TIMEOUT patience);
  // Takes what has completed; unless the end polls, sleeps until something has.
  void Look(DAT_EVD_HANDLE evd);
  bool Dequeue(DAT_EVD_HANDLE evd);
  // The number of completions; while it grows, the other end is not silent.
  uint64_t come() const { return requests_done_ + receives_done_; }
  void Took(const DAT_EVENT& event);
  DAT_TIMEOUT Patience() const { return static_cast<DAT_TIMEOUT>(timeout_seconds_) * 1'000'000; }

  const Parameters parameters_;
  const int timeout_seconds_;
  std::vector<char> memory_;  // in-buffer, out-buffer
  uint32_t room_;             // of each buffer
  DAT_LMR_HANDLE lmr_ = nullptr;
  DAT_LMR_CONTEXT context_ = 0;
  Place own_;
  Place remote_;
  DAT_CNO_HANDLE cno_ = nullptr;
  DAT_EVD_HANDLE receive_evd_ = nullptr;
  DAT_EVD_HANDLE request_evd_ = nullptr;
  DAT_EVD_HANDLE connect_evd_ = nullptr;
  DAT_EP_HANDLE ep_ = nullptr;
  uint64_t requests_posted_ = 0;
  uint64_t requests_done_ = 0;
  uint64_t receives_done_ = 0;
};

}  // namespace viaduct::datping

#endif  // VIADUCT_TOOLS_DATPING_END_H_
