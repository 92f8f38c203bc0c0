// The DAT side of a connection: an adapter, one endpoint, one registered buffer.
#ifndef VIADUCT_TESTS_CONFORMANCE_CROSS_DAT_END_H_
#define VIADUCT_TESTS_CONFORMANCE_CROSS_DAT_END_H_

#include <dat2/udat.h>

#include <string>

namespace viaduct::tests {

class DatEnd {
 public:
  DatEnd();
  ~DatEnd();
  DatEnd(const DatEnd&) = delete;
  DatEnd& operator=(const DatEnd&) = delete;

  void Listen(DAT_CONN_QUAL qualifier);
  // The same for a moment, if nobody else has it.
  DAT_RETURN TryToListen(DAT_CONN_QUAL qualifier);
  // The next request and what it shows.
  DAT_CR_HANDLE NextRequest(DAT_CR_PARAM* shown);
  void Accept(DAT_CR_HANDLE request);
  DAT_RETURN Connect(DAT_CONN_QUAL qualifier);
  // After an attempt that failed, which flushed the posted receives: as new.
  void Reset();
  // The next connection event, or 0 after 10 s.
  DAT_EVENT_NUMBER NextConnectionEvent();

  void PostReceive();
  // What the next receive brought.
  std::string NextMessage();
  void Send(const std::string& text);

  DAT_EP_HANDLE ep = DAT_HANDLE_NULL;

 private:
  DAT_LMR_TRIPLET Segment(size_t offset, size_t length);
  DAT_EVD_HANDLE NewEvd(DAT_EVD_FLAGS flags);

  DAT_IA_HANDLE ia_ = DAT_HANDLE_NULL;
  DAT_PZ_HANDLE pz_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE requests_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE connections_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE receives_ = DAT_HANDLE_NULL;
  DAT_EVD_HANDLE sends_ = DAT_HANDLE_NULL;
  DAT_LMR_CONTEXT context_ = 0;
  char bytes_[8192] = {};
};

}  // namespace viaduct::tests

#endif  // VIADUCT_TESTS_CONFORMANCE_CROSS_DAT_END_H_
