// dat_ep_disconnect: uDAPL 1.2, the page of that name; DAT checklist 105-115.
#include <signal.h>

#include "tests/conformance/dat/side.h"

namespace viaduct::tests {
namespace {

constexpr DAT_CLOSE_FLAGS kFlags[] = {DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG};

void ExpectRefused(DAT_EP_HANDLE ep, DAT_EP_STATE state) {
  for (DAT_CLOSE_FLAGS flags : kFlags) {
    EXPECT_EQ(StateOf(ep), state);
    EXPECT_TRUE(Fails(dat_ep_disconnect(ep, flags), DAT_INVALID_STATE));
    EXPECT_EQ(StateOf(ep), state);
  }
}

TEST(EpDisconnect, C105_UnconnectedAndReserved) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    ExpectRefused(ep, DAT_EP_STATE_UNCONNECTED);
    DAT_RSP_HANDLE rsp;
    Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
    ExpectRefused(ep, DAT_EP_STATE_RESERVED);
    EXPECT_TRUE(IsEmpty(side.connect_evd));
  });
}

TEST(EpDisconnect, C105_PassiveAndTentative) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        DAT_RSP_HANDLE rsp;
        Must(dat_rsp_create(side.ia, Port(0), ep, side.cr_evd, &rsp));
        side.Listen(Port(1), DAT_PSP_PROVIDER_FLAG);
        peer.Tell("listening");
        NextRequest(side.cr_evd);
        ExpectRefused(ep, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
        peer.Tell("passive done");
        DAT_EP_HANDLE tentative = ParametersOf(NextRequest(side.cr_evd)).local_ep_handle;
        ExpectRefused(tentative, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
        peer.Tell("done");
      },
      [](Peer& peer) {
        Side side;
        peer.Await("listening");
        side.Connect(side.NewEp(), Port(0));
        peer.Await("passive done");
        side.Connect(side.NewEp(), Port(1));
        peer.Await("done");
      });
}

TEST(EpDisconnect, C106_DisconnectedIsNoOp) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    for (DAT_CLOSE_FLAGS flags : kFlags) {
      EXPECT_EQ(dat_ep_disconnect(ep, flags), DAT_RETURN{DAT_SUCCESS});
      EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
    }
    EXPECT_TRUE(IsEmpty(side.connect_evd));
  });
}

TEST(EpDisconnect, C107_AbortsTheActiveAttempt) {
  for (DAT_CLOSE_FLAGS flags : kFlags) {
    RunPair(
        [=](Peer& peer) {
          Side side;
          side.Listen(Port(0));
          peer.Tell("listening");
          DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
          peer.Tell("arrived");
          peer.Await("aborted");
          DAT_EP_HANDLE ep = side.NewEp();
          Must(side.TryAccept(cr, ep));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, ep);
          EXPECT_TRUE(IsEmpty(side.connect_evd));
        },
        [=](Peer& peer) {
          Side side;
          DAT_EP_HANDLE ep = side.NewEp();
          for (uint64_t i = 1; i <= 3; ++i) side.PostReceive(ep, i);
          peer.Await("listening");
          side.Connect(ep, Port(0));
          peer.Await("arrived");
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
          Must(dat_ep_disconnect(ep, flags));
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          side.ExpectFlushedReceives(ep, 1, 3);
          EXPECT_TRUE(IsEmpty(side.connect_evd));
          peer.Tell("aborted");
        });
  }
}

// On a device where the accept completes the connection, this disconnects a connection.
TEST(EpDisconnect, C107_AbortsTheAccept) {
  for (DAT_CLOSE_FLAGS flags : kFlags) {
    RunPair(
        [=](Peer& peer) {
          Side side;
          DAT_EP_HANDLE ep = side.NewEp();
          side.PostReceive(ep, 1);
          side.PostReceive(ep, 2);
          side.Listen(Port(0));
          peer.Tell("listening");
          DAT_CR_HANDLE cr = NextRequest(side.cr_evd).cr_handle;
          StoppedPeer stopped(peer);
          Must(side.TryAccept(cr, ep));
          const bool pending = StateOf(ep) == DAT_EP_STATE_COMPLETION_PENDING;
          Must(dat_ep_disconnect(ep, flags));
          if (pending) {
            EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
          } else {
            NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
          }
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
          side.ExpectFlushedReceives(ep, 1, 2);
          peer.Tell("aborted");
          stopped.Continue();
          peer.Await("done");
        },
        [=](Peer& peer) {
          Side side;
          DAT_EP_HANDLE ep = side.NewEp();
          peer.Await("listening");
          side.Connect(ep, Port(0));
          // The accept's answer may have arrived already: then the end follows it.
          peer.Await("aborted");
          DAT_EVENT event = Next(side.connect_evd);
          if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
            event = Next(side.connect_evd);
            EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
                        event.event_number == DAT_CONNECTION_EVENT_BROKEN);
          }
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
          peer.Tell("done");
        });
  }
}

TEST(EpDisconnect, C108_AbruptCompletesEverything) {
  constexpr uint64_t kReceives = 10, kReads = 4;
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 1 << 20);
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Send(memory.Remote());
        peer.Await("done");
      },
      [=](Peer& peer) {
        Side side;
        Memory memory(side, 1 << 20);
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 1; i <= kReceives; ++i) side.PostReceive(ep, i);
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        StoppedPeer stopped(peer);  // the reads cannot end
        DAT_LMR_TRIPLET local = memory.Local(0, memory.bytes.size());
        for (uint64_t i = 1; i <= kReads; ++i) {
          Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(i), &remote,
                                     DAT_COMPLETION_DEFAULT_FLAG));
        }
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        bool failed = false;
        for (uint64_t i = 1; i <= kReads; ++i) {
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_FALSE(failed && done.status == DAT_DTO_SUCCESS) << "a success after a failure";
          failed |= done.status != DAT_DTO_SUCCESS;
        }
        EXPECT_TRUE(failed);
        side.ExpectFlushedReceives(ep, 1, kReceives);
        EXPECT_TRUE(IsEmpty(side.request_evd));
        DAT_BOOLEAN receive_idle = DAT_FALSE, request_idle = DAT_FALSE;
        Must(dat_ep_get_status(ep, nullptr, &receive_idle, &request_idle));
        EXPECT_EQ(receive_idle, DAT_TRUE);
        EXPECT_EQ(request_idle, DAT_TRUE);
        stopped.Continue();
        peer.Tell("done");
      });
}

// The receiver takes its time: every message is delivered and every request succeeds.
TEST(EpDisconnect, C109_GracefulFinishesWhatWasPosted) {
  constexpr uint64_t kMessages = 64;
  constexpr size_t kBytes = 16384;
  RunPair(
      [=](Peer& peer) {
        Side side;
        Memory memory(side, kMessages * kBytes), target(side, kBytes);
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        peer.Send(target.Remote());
        peer.Await("disconnecting");
        for (uint64_t i = 0; i < kMessages; ++i) {
          DAT_LMR_TRIPLET piece = memory.Local(i * kBytes, kBytes);
          Must(dat_ep_post_recv(ep, 1, &piece, Cookie(i), DAT_COMPLETION_DEFAULT_FLAG));
        }
        for (uint64_t i = 0; i < kMessages; ++i) {
          const auto done = NextCompletion(side.receive_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
          EXPECT_EQ(done.transfered_length, kBytes);
        }
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_EQ(target.bytes, Pattern(kBytes));
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      },
      [=](Peer& peer) {
        Side side;
        Memory memory(side, kBytes);
        const std::vector<uint8_t> pattern = Pattern(kBytes);
        std::copy(pattern.begin(), pattern.end(), memory.bytes.begin());
        DAT_EP_HANDLE ep = side.NewEp();
        side.PostReceive(ep, 500);
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        DAT_LMR_TRIPLET local = memory.Local(0, kBytes);
        for (uint64_t i = 0; i < kMessages; ++i) {
          Must(dat_ep_post_send(ep, 1, &local, Cookie(2 * i), DAT_COMPLETION_DEFAULT_FLAG));
          Must(dat_ep_post_rdma_write(ep, 1, &local, Cookie(2 * i + 1), &remote,
                                      DAT_COMPLETION_DEFAULT_FLAG));
        }
        Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
        peer.Tell("disconnecting");
        for (uint64_t i = 0; i < 2 * kMessages; ++i) {
          const auto done = NextCompletion(side.request_evd);
          EXPECT_EQ(done.user_cookie.as_64, i);
          EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
        }
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        side.ExpectFlushedReceives(ep, 500, 500);
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      });
}

// Runs `body` while the endpoint drains: the peer is stopped, so the endpoint's read, with the
// cookie 1, cannot end.
void WhileDraining(const std::function<void(Side&, DAT_EP_HANDLE, DAT_LMR_TRIPLET,
                                            const DAT_RMR_TRIPLET&, StoppedPeer&)>& body) {
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 4096);
        DAT_EP_HANDLE ep = side.NewEp();
        side.AcceptFrom(peer, ep, Port(0));
        peer.Send(memory.Remote());
        const DAT_EVENT event = Next(side.connect_evd);
        EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
                    event.event_number == DAT_CONNECTION_EVENT_BROKEN);
        EXPECT_TRUE(IsEmpty(side.connect_evd));
        peer.Await("done");
      },
      [&](Peer& peer) {
        Side side;
        Memory memory(side, 4096);
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        StoppedPeer stopped(peer);
        DAT_LMR_TRIPLET local = memory.Local(0, 4096);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECT_PENDING);
        body(side, ep, local, remote, stopped);
        stopped.Continue();
        peer.Tell("done");
      });
}

TEST(EpDisconnect, C110_NoNewRequestsWhileDraining) {
  WhileDraining([](Side& side, DAT_EP_HANDLE ep, DAT_LMR_TRIPLET local,
                   const DAT_RMR_TRIPLET& remote, StoppedPeer& stopped) {
    EXPECT_TRUE(Fails(side.TrySend(ep, 2), DAT_INVALID_STATE));
    EXPECT_TRUE(Fails(
        dat_ep_post_rdma_write(ep, 1, &local, Cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG),
        DAT_INVALID_STATE));
    EXPECT_TRUE(
        Fails(dat_ep_post_rdma_read(ep, 1, &local, Cookie(2), &remote, DAT_COMPLETION_DEFAULT_FLAG),
              DAT_INVALID_STATE));
    Memory memory(side, 64);
    DAT_RMR_HANDLE window;
    DAT_RMR_CONTEXT context;
    Must(dat_rmr_create(side.pz, &window));
    EXPECT_TRUE(Fails(BindRmr(window, memory.lmr, memory.Local(0, 64), DAT_MEM_PRIV_ALL_FLAG, ep,
                              Cookie(2), DAT_COMPLETION_DEFAULT_FLAG, &context),
                      DAT_INVALID_STATE));
    Must(dat_rmr_free(window));
    side.PostReceive(ep, 3);  // allowed in every state
    EXPECT_TRUE(IsEmpty(side.connect_evd));
    stopped.Continue();
    const auto done = NextCompletion(side.request_evd);
    EXPECT_EQ(done.user_cookie.as_64, 1u);
    EXPECT_EQ(done.status, DAT_DTO_SUCCESS);
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
    side.ExpectFlushedReceives(ep, 3, 3);
    EXPECT_TRUE(IsEmpty(side.request_evd));
  });
}

TEST(EpDisconnect, C111_SecondGracefulHasNoEffect) {
  WhileDraining([](Side& side, DAT_EP_HANDLE ep, DAT_LMR_TRIPLET, const DAT_RMR_TRIPLET&,
                   StoppedPeer& stopped) {
    EXPECT_EQ(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG), DAT_RETURN{DAT_SUCCESS});
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECT_PENDING);
    stopped.Continue();
    EXPECT_EQ(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
    EXPECT_TRUE(IsEmpty(side.connect_evd));
  });
}

TEST(EpDisconnect, C111_AbruptEscalates) {
  WhileDraining(
      [](Side& side, DAT_EP_HANDLE ep, DAT_LMR_TRIPLET, const DAT_RMR_TRIPLET&, StoppedPeer&) {
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_NE(NextCompletion(side.request_evd).status, DAT_DTO_SUCCESS);
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      });
}

TEST(EpDisconnect, C112_SuccessesPrecedeTheDisconnectOnASharedDispatcher) {
  static constexpr uint64_t kMessages = 32;
  auto make = [](Side& side, DAT_EVD_HANDLE* evd) {
    *evd = side.NewEvd(static_cast<DAT_EVD_FLAGS>(DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG), 256);
    DAT_EP_HANDLE ep;
    Must(dat_ep_create(side.ia, side.pz, *evd, *evd, *evd, nullptr, &ep));
    return ep;
  };
  // No success may follow the disconnect; flushes may.
  auto drain = [](DAT_EVD_HANDLE evd, uint64_t completions) {
    uint64_t successes = 0;
    bool disconnected = false;
    for (uint64_t i = 0; i < completions + 1; ++i) {
      const DAT_EVENT event = Next(evd);
      if (event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED) {
        EXPECT_FALSE(disconnected);
        disconnected = true;
        continue;
      }
      ASSERT_EQ(event.event_number, DAT_DTO_COMPLETION_EVENT);
      if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
        EXPECT_FALSE(disconnected) << "a success behind the disconnect";
        ++successes;
      }
    }
    EXPECT_TRUE(disconnected);
    EXPECT_GE(successes, kMessages);
    EXPECT_TRUE(IsEmpty(evd));
  };
  RunPair(
      [=](Peer& peer) {
        Side side;
        DAT_EVD_HANDLE evd;
        DAT_EP_HANDLE ep = make(side, &evd);
        for (uint64_t i = 0; i < kMessages + 2; ++i) side.PostReceive(ep, i);
        side.Listen(Port(0));
        peer.Tell("listening");
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep));
        Next(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        peer.Await("done");  // all events are queued by now
        drain(evd, kMessages + 2);
      },
      [=](Peer& peer) {
        Side side;
        DAT_EVD_HANDLE evd;
        DAT_EP_HANDLE ep = make(side, &evd);
        side.PostReceive(ep, 1000);
        peer.Await("listening");
        side.Connect(ep, Port(0));
        Next(evd, DAT_CONNECTION_EVENT_ESTABLISHED);
        for (uint64_t i = 0; i < kMessages; ++i) Must(side.TrySend(ep, i));
        Must(dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
        drain(evd, kMessages + 1);
        peer.Tell("done");
      });
}

TEST(EpDisconnect, C113_InvalidFlag) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Await("done");
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        side.ConnectTo(peer, ep, Port(0));
        for (int flags : {2, 3, 77, -1}) {
          EXPECT_TRUE(Fails(dat_ep_disconnect(ep, static_cast<DAT_CLOSE_FLAGS>(flags)),
                            DAT_INVALID_PARAMETER, DAT_INVALID_ARG2));
        }
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_CONNECTED);
        peer.Tell("done");
      });
}

// One side disconnects, or the other, or both at once: each side sees one end.
TEST(EpDisconnect, C114_OneEventPerConnection) {
  constexpr int kConnections = 12;
  auto end = [](Side& side, DAT_EP_HANDLE ep, bool mine, DAT_CLOSE_FLAGS flags) {
    if (mine) Must(dat_ep_disconnect(ep, flags));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
    EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
    Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
  };
  RunPair(
      [=](Peer& peer) {
        Side side;
        for (int i = 0; i < kConnections; ++i) {
          DAT_EP_HANDLE ep = side.NewEp();
          side.AcceptFrom(peer, ep, Port(0));
          end(side, ep, i % 3 != 0, kFlags[i % 2]);
          peer.Tell("ended");
          peer.Await("ended");
        }
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      },
      [=](Peer& peer) {
        Side side;
        for (int i = 0; i < kConnections; ++i) {
          DAT_EP_HANDLE ep = side.NewEp();
          side.ConnectTo(peer, ep, Port(0));
          end(side, ep, i % 3 != 1, kFlags[i / 2 % 2]);
          peer.Tell("ended");
          peer.Await("ended");
        }
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      });
}

TEST(EpDisconnect, C114_ReconnectAfterReset) {
  RunPair(
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        for (int i = 0; i < 3; ++i) {
          side.AcceptFrom(peer, ep, Port(0));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          Must(dat_ep_reset(ep));
          EXPECT_EQ(StateOf(ep), DAT_EP_STATE_UNCONNECTED);
        }
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        for (int i = 0; i < 3; ++i) {
          side.ConnectTo(peer, ep, Port(0));
          Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
          NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
          Must(dat_ep_reset(ep));
        }
      });
}

// The accept's private data does not come with the end, and the remote address is forgotten.
TEST(EpDisconnect, S_NothingOfTheConnectionIsLeft) {
  RunPair(
      [](Peer& peer) {
        Side side;
        side.Listen(Port(0));
        peer.Tell("listening");
        DAT_EP_HANDLE ep = side.NewEp();
        Must(side.TryAccept(NextRequest(side.cr_evd).cr_handle, ep, Pattern(10)));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
      },
      [](Peer& peer) {
        Side side;
        DAT_EP_HANDLE ep = side.NewEp();
        peer.Await("listening");
        side.Connect(ep, Port(0));
        NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_ESTABLISHED, ep);
        EXPECT_EQ(ParametersOf(ep).remote_port_qual, Port(0));
        Must(dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
        const auto event = NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_DISCONNECTED, ep);
        EXPECT_EQ(event.private_data_size, 0);
        EXPECT_EQ(event.private_data, nullptr);
        Must(dat_ep_reset(ep));
        EXPECT_EQ(ParametersOf(ep).remote_ia_address_ptr, nullptr);
        EXPECT_EQ(ParametersOf(ep).remote_port_qual, DAT_PORT_QUAL{0});
      });
}

TEST(EpDisconnect, C115_PeerKilled) {
  PairOptions options;
  options.server_is_killed = true;
  RunPair(
      [](Peer& peer) {
        Side side;
        Memory memory(side, 4096);
        side.AcceptFrom(peer, side.NewEp(), Port(0));
        peer.Send(memory.Remote());
        peer.AwaitEnd();
      },
      [](Peer& peer) {
        Side side;
        Memory memory(side, 4096);
        DAT_EP_HANDLE ep = side.NewEp();
        for (uint64_t i = 1; i <= 3; ++i) side.PostReceive(ep, i);
        side.ConnectTo(peer, ep, Port(0));
        const auto remote = peer.Receive<DAT_RMR_TRIPLET>();
        StoppedPeer stopped(peer);
        DAT_LMR_TRIPLET local = memory.Local(0, 4096);
        Must(dat_ep_post_rdma_read(ep, 1, &local, Cookie(1), &remote, DAT_COMPLETION_DEFAULT_FLAG));
        kill(peer.pid(), SIGKILL);
        const DAT_EVENT event = Next(side.connect_evd);
        EXPECT_TRUE(event.event_number == DAT_CONNECTION_EVENT_BROKEN ||
                    event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED);
        EXPECT_EQ(StateOf(ep), DAT_EP_STATE_DISCONNECTED);
        // A kernel or a device may have served the read from the stopped process's memory.
        const DAT_DTO_COMPLETION_EVENT_DATA read = NextCompletion(side.request_evd);
        EXPECT_TRUE(read.status != DAT_DTO_SUCCESS || Wire() == "rdma");
        side.ExpectFlushedReceives(ep, 1, 3);
        EXPECT_TRUE(IsEmpty(side.connect_evd));
      },
      options);
}

TEST(EpDisconnect, S_PostsAfterDisconnectAreFlushed) {
  RunAlone([] {
    Side side;
    DAT_EP_HANDLE ep = side.NewEp();
    side.Connect(ep, Port(0));
    NextConnection(side.connect_evd, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, ep);
    side.PostReceive(ep, 1);
    side.ExpectFlushedReceives(ep, 1, 1);
    Must(side.TrySend(ep, 2));
    const auto done = NextCompletion(side.request_evd);
    EXPECT_EQ(done.user_cookie.as_64, 2u);
    EXPECT_EQ(done.status, DAT_DTO_ERR_FLUSHED);
  });
}

}  // namespace
}  // namespace viaduct::tests
