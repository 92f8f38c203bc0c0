#include "tools/datping/measure.h"

#include <netdb.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace viaduct::datping {
namespace {

using ping::kSecond;

// ---------------------------------------------------------------------------- the server's part

// Answers until the client goes, which throws Ended.
[[noreturn]] void Answer(End& end, const Parameters& parameters) {
  if (parameters.operation == Operation::kRead) end.AwaitEnd();
  if (parameters.test == Test::kBandwidth) {
    if (parameters.operation == Operation::kWrite) end.AwaitEnd();
    for (uint64_t n = 1;; ++n) end.AwaitReceives(n);
  }
  for (uint64_t n = 0;; ++n) {
    if (parameters.silent_write()) {
      end.AwaitWrite(n);
    } else {
      end.AwaitReceives(n + 1);
    }
    end.Post(n);
    end.AwaitRequests();
  }
}

// Returns false after a failure.
bool ServeOne(const Adapter& adapter, const Options& options, Request request,
              const Parameters& parameters, const Place& remote) {
  try {
    End end(adapter, parameters, options.timeout);
    end.Accept(&request, remote);
    Answer(end, parameters);
  } catch (const Ended&) {
    return true;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "datping: %s\n", e.what());
    return false;
  }
}

// Connections of the connection test: they only come and go.
class Passers {
 public:
  Passers(const Adapter& adapter, DAT_EVD_HANDLE evd) : adapter_(adapter), evd_(evd) {}

  void Admit(Request* request) {
    DAT_EP_ATTR attributes = {};
    attributes.max_recv_dtos = attributes.max_request_dtos = 1;
    DAT_EP_HANDLE ep;
    Must("dat_ep_create", dat_ep_create(adapter_.ia(), adapter_.zone(), DAT_HANDLE_NULL,
                                        DAT_HANDLE_NULL, evd_, &attributes, &ep));
    try {
      request->Accept(ep, Parameters(), Place());
    } catch (const Failure&) {
      (void)dat_ep_free(ep);
      throw;
    }
    ++count_;
  }
  void Take(const DAT_EVENT& event) {
    if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) return;
    (void)dat_ep_free(event.event_data.connect_event_data.ep_handle);
    --count_;
  }
  // True if there is no client of the connection test: each keeps one connection until its end.
  bool empty() const { return count_ == 0; }

 private:
  const Adapter& adapter_;
  const DAT_EVD_HANDLE evd_;
  size_t count_ = 0;
};

// The threads that serve one connection each. Used by the thread that waits on `evd`: each of these
// threads wakes it by its end.
class Threads {
 public:
  explicit Threads(DAT_EVD_HANDLE evd) : evd_(evd) {}

  template <typename Work>
  void Start(Work work) {
    threads_.emplace_back([this, work = std::move(work)]() mutable {
      work();
      ++ended_;
      Wake();
    });
    ++started_;
  }
  // True if none of them is at work.
  bool empty() const { return ended_ == started_; }

 private:
  void Wake() {
    DAT_EVENT event = {};
    event.event_number = DAT_SOFTWARE_EVENT;
    (void)dat_evd_post_se(evd_, &event);  // a full dispatcher needs no wake
  }

  const DAT_EVD_HANDLE evd_;
  uint64_t started_ = 0;
  std::atomic<uint64_t> ended_{0};
  std::vector<std::jthread> threads_;  // joined before the other members go
};

// ---------------------------------------------------------------------------- the client's part

// All of these end early if another connection of the run has failed.

void Ping(End& end, const Options& options, const std::atomic<bool>& failed, Result* result) {
  const Parameters& parameters = options.parameters;
  const bool is_read = parameters.operation == Operation::kRead;
  uint64_t n = 0;
  const auto round_trip = [&] {
    end.Post(n);
    if (parameters.silent_write()) {
      end.AwaitWrite(n);
    } else if (!is_read) {
      end.AwaitReceives(n + 1);
    }
    end.AwaitRequests();
    ++n;
  };
  while (n < options.warmup && !failed) round_trip();
  const ping::Stopwatch watch(options.count, options.seconds);
  uint64_t last = watch.begin();
  do {
    round_trip();
    const uint64_t now = Now();
    result->latencies.Add(is_read ? now - last : (now - last) / 2);
    last = now;
  } while (!watch.Over(++result->messages) && !failed);
  result->nanoseconds = last - watch.begin();
}

void Stream(End& end, const Options& options, const std::atomic<bool>& failed, Result* result) {
  const ping::Stopwatch watch(options.count, options.seconds);
  do {
    end.AwaitRequests(options.parameters.depth - 1);
    end.Post(result->messages);
  } while (!watch.Over(++result->messages) && !failed);
  end.AwaitRequests();
  end.Barrier();
  result->nanoseconds = Now() - watch.begin();
}

class Host {
 public:
  Host(const std::string& name, int family) {
    addrinfo hints = {};
    hints.ai_family = family;
    addrinfo* found = nullptr;
    // A system without /etc/hosts does not know the name localhost (RFC 6761, 6.3).
    const char* const known = name != "localhost"  ? name.c_str()
                              : family == AF_INET6 ? "::1"
                                                   : "127.0.0.1";
    const int error = getaddrinfo(known, nullptr, &hints, &found);
    if (error != 0) throw Failure("host " + name + ": " + gai_strerror(error));
    std::memcpy(&address_, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
  }
  DAT_IA_ADDRESS_PTR get() const {
    return reinterpret_cast<DAT_IA_ADDRESS_PTR>(const_cast<sockaddr_storage*>(&address_));
  }

 private:
  sockaddr_storage address_ = {};
};

// Tries until the server listens: both may have been started at the same time.
std::unique_ptr<End> ConnectedEnd(const Adapter& adapter, const Options& options, const Host& host,
                                  const std::atomic<bool>& failed) {
  const uint64_t until = Now() + static_cast<uint64_t>(options.timeout) * kSecond;
  for (;;) {
    auto end = std::make_unique<End>(adapter, options.parameters, options.timeout);
    if (end->Connect(host.get(), options.service)) return end;
    if (failed || Now() > until) throw Failure("nobody listens on " + options.host);
    std::this_thread::yield();
  }
}

void ComeAndGo(const Adapter& adapter, const Options& options, const Host& host,
               const std::atomic<bool>& failed, Result* result) {
  const ping::Stopwatch watch(options.count, options.seconds);
  uint64_t last = watch.begin();
  do {
    const std::unique_ptr<End> end = ConnectedEnd(adapter, options, host, failed);
    end->Disconnect();
    const uint64_t now = Now();
    result->latencies.Add(now - last);
    last = now;
  } while (!watch.Over(++result->messages) && !failed);
  result->nanoseconds = last - watch.begin();
}

// The connections of one run. The first failure ends all.
class Run {
 public:
  Run(const Adapter& adapter, const Options& options)
      : adapter_(adapter),
        options_(options),
        host_(options.host, adapter.family()),
        waiting_(options.parameters.connections),
        results_(options.parameters.connections) {}

  std::vector<Result> All() {
    // Shows the server that this client is still there while it has no other connection.
    std::unique_ptr<End> kept;
    if (options_.parameters.test == Test::kConnect)
      kept = ConnectedEnd(adapter_, options_, host_, failed_);
    {
      std::vector<std::jthread> threads;
      try {
        for (Result& result : results_) threads.emplace_back([&] { One(&result); });
      } catch (const std::exception& e) {
        Fail(e.what());
      }
    }
    if (failed_) throw Failure(failure_);
    if (kept) kept->Disconnect();
    return std::move(results_);
  }

 private:
  void One(Result* result) {
    try {
      if (options_.parameters.test == Test::kConnect) {
        if (AwaitOthers()) ComeAndGo(adapter_, options_, host_, failed_, result);
        return;
      }
      const std::unique_ptr<End> end = ConnectedEnd(adapter_, options_, host_, failed_);
      if (!AwaitOthers()) return;
      if (options_.parameters.test == Test::kLatency) {
        Ping(*end, options_, failed_, result);
      } else {
        Stream(*end, options_, failed_, result);
      }
      end->Disconnect();
    } catch (const Ended&) {
      Fail("the server went away");
    } catch (const std::exception& e) {
      Fail(e.what());
    }
  }

  // Waits until all are there. False: one has failed.
  bool AwaitOthers() {
    --waiting_;
    while (waiting_ > 0 && !failed_) std::this_thread::yield();
    return !failed_;
  }

  void Fail(const std::string& what) {
    const std::lock_guard<std::mutex> hold(mutex_);
    if (!failed_) failure_ = what;
    failed_ = true;
  }

  const Adapter& adapter_;
  const Options& options_;
  const Host host_;  // looked up once, so that no connection's time includes it
  std::atomic<int64_t> waiting_;
  std::vector<Result> results_;
  std::mutex mutex_;  // guards `failure_`
  std::string failure_;
  std::atomic<bool> failed_{false};
};

}  // namespace

void Serve(const Adapter& adapter, const Options& options) {
  DAT_EVD_HANDLE evd;
  Must("dat_evd_create",
       dat_evd_create(adapter.ia(), 1024, DAT_HANDLE_NULL,
                      static_cast<DAT_EVD_FLAGS>(DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG |
                                                 DAT_EVD_SOFTWARE_FLAG),
                      &evd));
  DAT_PSP_HANDLE psp;
  Must("dat_psp_create",
       dat_psp_create(adapter.ia(), options.service, evd, DAT_PSP_CONSUMER_FLAG, &psp));
  Passers passers(adapter, evd);
  std::atomic<bool> in_order{true};
  Threads threads(evd);
  bool begun = false;
  while (!options.once || !begun || !threads.empty() || !passers.empty()) {
    DAT_EVENT event;
    DAT_COUNT more;
    Must("dat_evd_wait", dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more));
    if (event.event_number == DAT_SOFTWARE_EVENT) continue;
    if (event.event_number != DAT_CONNECTION_REQUEST_EVENT) {
      passers.Take(event);
      continue;
    }
    // A failure with one client does not concern the others.
    try {
      Request request(event.event_data.cr_arrival_event_data.cr_handle);
      Parameters parameters;
      Place remote;
      if (!request.Read(&parameters, &remote)) {
        std::fprintf(stderr, "datping: a client of another version was rejected\n");
        continue;
      }
      begun = true;
      if (parameters.test == Test::kConnect) {
        passers.Admit(&request);
        continue;
      }
      auto serve = [&adapter, &options, &in_order, parameters, remote,
                    mine = std::move(request)]() mutable {
        if (!ServeOne(adapter, options, std::move(mine), parameters, remote)) in_order = false;
      };
      if (options.once) {
        threads.Start(std::move(serve));
      } else {
        std::thread(std::move(serve)).detach();
      }
    } catch (const std::exception& e) {
      std::fprintf(stderr, "datping: %s\n", e.what());
      in_order = false;
    }
  }
  if (!in_order) throw Failure("the client did not end in order");
}

std::vector<Result> Measure(const Adapter& adapter, const Options& options) {
  return Run(adapter, options).All();
}

}  // namespace viaduct::datping
