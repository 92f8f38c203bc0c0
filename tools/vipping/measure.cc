#include "tools/vipping/measure.h"

#include <algorithm>
#include <cstdio>

namespace viaduct::vipping {
namespace {

using ping::kSecond;

// One credit of the server stands for this many messages of a stream.
uint32_t Batch(const Parameters& parameters) { return std::max(parameters.depth / 2, 1u); }

// Does message `n` of a stream take a receive? All sends do, and the last write of each batch.
bool IsAnnounced(const Parameters& parameters, uint64_t n) {
  return parameters.operation == Operation::kSend || (n + 1) % Batch(parameters) == 0;
}

// ---------------------------------------------------------------------------- the server's part

// Answers until the client goes, which throws Ended.
[[noreturn]] void AnswerPings(End& end, const Parameters& parameters) {
  for (uint64_t n = 0;; ++n) {
    if (parameters.silent_write()) {
      end.AwaitWrite(n);
    } else {
      end.AwaitReceives(n + 1);
    }
    end.Post(n, !parameters.silent_write());
    end.AwaitSends(end.sends_posted());
  }
}

[[noreturn]] void TakeStream(End& end, const Parameters& parameters) {
  const uint32_t per_credit = parameters.operation == Operation::kSend ? Batch(parameters) : 1;
  for (uint64_t n = 1;; ++n) {
    end.AwaitReceives(n * per_credit);
    end.PostCredit();
    end.AwaitSends(end.sends_posted());
  }
}

void IgnoreErrors(VIP_PVOID, VIP_ERROR_DESCRIPTOR*) {}

// A client's request for a connection. The destructor rejects it, unless it was accepted.
class Request {
 public:
  explicit Request(VIP_CONN_HANDLE connection) : connection_(connection) {}
  ~Request() {
    if (connection_ != nullptr) VipConnectReject(connection_);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void Accept(VIP_VI_HANDLE vi) {
    Must("VipConnectAccept", VipConnectAccept(connection_, vi));
    connection_ = nullptr;
  }

 private:
  VIP_CONN_HANDLE connection_;
};

// False: the request came from no client of this program.
bool ServeOne(const Nic& nic, const Options& options, VIP_CONN_HANDLE connection,
              const NetAddress& client, const VIP_VI_ATTRIBUTES& wanted) {
  Request request(connection);
  const std::string name = client.discriminator();
  const auto parameters = Decode(reinterpret_cast<const uint8_t*>(name.data()), name.size());
  if (!parameters) {
    std::fprintf(stderr, "vipping: a client of another version was rejected\n");
    return false;
  }
  try {
    End end(nic, *parameters, wanted.ReliabilityLevel, options.timeout);
    request.Accept(end.vi());
    if (parameters->operation == Operation::kWrite) end.ExchangeBuffers(/*first=*/false);
    if (parameters->test == Test::kLatency) AnswerPings(end, *parameters);
    TakeStream(end, *parameters);
  } catch (const Ended&) {
    return true;
  }
}

// ---------------------------------------------------------------------------- the client's part

class Progress {
 public:
  explicit Progress(const Options& options)
      : options_(options),
        watch_(options.count, options.seconds),
        next_(watch_.begin() + kSecond) {}

  uint64_t begin() const { return watch_.begin(); }

  // Prints the progress once a second. Returns the time after that.
  uint64_t Tell(uint64_t messages, uint64_t now) {
    if (now < next_ || options_.quiet) return now;
    Say(messages, now);
    return Now();
  }
  // Is the measurement over after `messages`?
  bool Over(uint64_t messages, uint64_t now) const { return watch_.Over(messages, now); }

 private:
  void Say(uint64_t messages, uint64_t now) {
    next_ = now + kSecond;
    const double seconds = static_cast<double>(now - begin()) / 1e9;
    if (options_.count != 0) {
      std::fprintf(stderr, "vipping: %.0f s, %llu of %llu messages (%.0f %%)\n", seconds,
                   static_cast<unsigned long long>(messages),
                   static_cast<unsigned long long>(options_.count),
                   100.0 * static_cast<double>(messages) / static_cast<double>(options_.count));
    } else {
      std::fprintf(stderr, "vipping: %.0f of %.0f s, %llu messages\n", seconds, options_.seconds,
                   static_cast<unsigned long long>(messages));
    }
  }

  const Options& options_;
  const ping::Stopwatch watch_;
  uint64_t next_;
};

void Ping(End& end, const Options& options, Result* result) {
  const Parameters& parameters = options.parameters;
  uint64_t n = 0;
  const auto round_trip = [&] {
    end.Post(n, !parameters.silent_write());
    if (parameters.silent_write()) {
      end.AwaitWrite(n);
    } else {
      end.AwaitReceives(n + 1);
    }
    end.AwaitSends(end.sends_posted());
    ++n;
  };
  while (n < options.warmup) round_trip();
  Progress progress(options);
  uint64_t last = progress.begin();
  do {
    round_trip();
    const uint64_t now = Now();
    result->latencies.Add((now - last) / 2);
    last = progress.Tell(++result->messages, now);
  } while (!progress.Over(result->messages, last));
  result->nanoseconds = last - progress.begin();
}

// Full batches only, so that the last message is one that the server answers.
void Stream(End& end, const Options& options, Result* result) {
  const Parameters& parameters = options.parameters;
  const uint32_t batch = Batch(parameters);
  Progress progress(options);
  uint64_t credits = 2;  // batches that the server has receives for
  uint64_t batches = 0;
  do {
    if (batches == credits) {
      end.AwaitReceives(batches - 1);
      ++credits;
    }
    for (uint32_t i = 0; i < batch; ++i, ++result->messages) {
      if (end.sends_posted() - end.sends_done() >= parameters.depth) {
        end.AwaitSends(end.sends_done() + 1);
      }
      end.Post(result->messages, IsAnnounced(parameters, result->messages));
    }
    ++batches;
  } while (!progress.Over(result->messages, progress.Tell(result->messages, Now())));
  end.AwaitReceives(batches);
  result->nanoseconds = Now() - progress.begin();
  end.AwaitSends(end.sends_posted());
}

NetAddress Find(const Nic& nic, const Options& options) {
  VIP_RETURN result = VipNSInit(nic.handle(), nullptr);
  if (result != VIP_SUCCESS) throw Failure(Complaint("VipNSInit", result));
  NetAddress found;
  std::string host = options.host;
  result = VipNSGetHostByName(nic.handle(), host.data(), found.get(), 0);
  VipNSShutdown(nic.handle());
  if (result == VIP_ERROR_NAMESERVICE) {
    throw Failure("no such host '" + host + "' (VIP_ERROR_NAMESERVICE)");
  }
  if (result != VIP_SUCCESS) throw Failure(Complaint(("host " + host).c_str(), result));
  host = found.host();
  return NetAddress(reinterpret_cast<const VIP_UINT8*>(host.data()), host.size(),
                    options.service.data(), options.service.size());
}

void Connect(const Nic& nic, const Options& options, End& end) {
  NetAddress remote = Find(nic, options);
  const auto name = Encode(options.parameters);
  NetAddress local = Own(nic, name.data(), name.size());
  const VIP_ULONG milliseconds = static_cast<VIP_ULONG>(options.timeout) * 1000;
  const uint64_t end_of_time = Now() + static_cast<uint64_t>(options.timeout) * kSecond;
  VIP_VI_ATTRIBUTES peer;
  VIP_RETURN result;
  // Client and server may have been started at the same time.
  do {
    result = VipConnectRequest(end.vi(), local.get(), remote.get(), milliseconds, &peer);
  } while (result == VIP_NO_MATCH && Now() < end_of_time);
  if (result == VIP_NO_MATCH) {
    throw Failure("nobody waits for '" + options.service + "' on " + options.host +
                  " (VIP_NO_MATCH)");
  }
  if (result != VIP_SUCCESS) {
    throw Failure(Complaint(("VipConnectRequest to " + options.host).c_str(), result));
  }
}

}  // namespace

void Serve(const Nic& nic, const Options& options) {
  VipErrorCallback(nic.handle(), nullptr, &IgnoreErrors);  // clients may go
  NetAddress local = Own(nic, options.service.data(), options.service.size());
  bool served = false;
  while (!options.once || !served) {
    NetAddress client;
    VIP_VI_ATTRIBUTES wanted;
    VIP_CONN_HANDLE connection = nullptr;
    const VIP_RETURN result =
        VipConnectWait(nic.handle(), local.get(), VIP_INFINITE, client.get(), &wanted, &connection);
    if (result != VIP_SUCCESS) throw Failure(Complaint("VipConnectWait", result));
    try {
      served = ServeOne(nic, options, connection, client, wanted);
    } catch (const Failure& failure) {
      if (options.once) throw;
      std::fprintf(stderr, "vipping: %s\n", failure.what());
    }
  }
}

Result Measure(const Nic& nic, const Options& options) {
  Result result;
  try {
    End end(nic, options.parameters, options.level, options.timeout);
    Connect(nic, options, end);
    if (options.parameters.operation == Operation::kWrite) end.ExchangeBuffers(/*first=*/true);
    if (options.parameters.test == Test::kLatency) {
      Ping(end, options, &result);
    } else {
      Stream(end, options, &result);
    }
  } catch (const Ended&) {
    throw Failure("the server went away");
  }
  return result;
}

}  // namespace viaduct::vipping
