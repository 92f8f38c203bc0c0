"""Debian's DAT programs between two ends: the shell functions of their tests in the lab.

An end is a shell function of the test: it runs a command with a library, on what the test uses as a host. `listening NAMESPACE
PORT`, also a function of the test, waits until somebody listens there. Both ends call their adapter `lab`, because dtest's
client uses its server's name for it.
"""

DTEST = (
    "-b 64",  # waiting
    "-p -b 64",  # polling
    "-c -b 64",  # by a notifier
    "-t -b 4096",
    "-W -b 64",  # ping-pong by RDMA writes
)
DTESTSRQ = ("-b 1024 -c 1 -S 1", "-b 1024 -c 10 -S 1", "-b 1024 -c 10 -S 0")
DTESTX = ("", "-p")  # with counters
# What comes before and after the address in dapltest's command line.
DAPLTEST = (
    ("-T T -i 20 -t 1 -w 1", "client SR 256 server SR 256"),
    ("-T T -i 20 -t 1 -w 1", "client SR 256 server RW 4096 server SR 256"),
    ("-T T -i 20 -t 1 -w 1", "client SR 256 server RR 4096 server SR 256"),
    ("-T T -i 10 -t 2 -w 4", "client SR 256 server RW 4096 server SR 256 client SR 4096 server RR 4096 server SR 256"),
    ("-T T -V -P -i 20 -t 1 -w 1", "client SR 1024 3 -f server SR 1024 3 -f"),
    ("-T P -m b -i 50 -p 4", "RW 4096 2"),
    ("-T P -m p -i 50 -p 4", "RR 4096 2"),
)

FUNCTIONS = r"""
show() { sed 's/^/    /' "$1" | tail -n 25; }
ulimit -c unlimited
echo /tmp/core >/proc/sys/kernel/core_pattern
show_core() { # PROGRAM: where it crashed, if it did
  [ ! -e core ] || ! command -v gdb || gdb -batch -ex 'thread apply all backtrace' "$(command -v $1)" core 2>&1 | tail -n 60
  rm -f core
}
# OFED's servers talk first. siw resets a connection if an FPDU lies behind the answer in its socket when it reads that:
# dtest's server is then connected, and its client rejected, or told EINVAL where its library is OFED's; dapltest's waits for
# ever, with its client, of whom our log says why.
reset_by_siw() {
  [ "$LAB_DRIVER" = siw ] && grep -q -e NON_PEER_REJECTED -e 'CONN_ERR event=0x6 status=-22 ' client.out &&
    grep -q 'CONNECTED!' server.out
}
stuck_by_siw() { # STATUS
  [ "$LAB_DRIVER $1" = "siw 124" ] && grep -q 'info: .* answers, but not as one that takes connections' client.out
}
verdict() { # NAME TEXT CLIENT'S-STATUS SERVER'S-STATUS PROGRAM: both ends say the text and leave with 0
  if grep -q "$2" server.out && grep -q "$2" client.out && [ "$3 $4" = "0 0" ]; then
    echo "$1: passed"
  else
    echo "$1: failed: exit status $3 and the server's $4"; show client.out; show server.out; show_core $5
  fi
}
dtest_pair() { # SERVER NAMESPACE CLIENT ADDRESS OPTIONS
  for _ in 1 2 3; do
    $1 dtest -P lab -s $5 >server.out 2>&1 &
    server=$!
    listening $2 15828
    $3 dtest -P lab -h $4 $5 >client.out 2>&1
    status=$?
    wait $server
    server=$?
    reset_by_siw || break
  done
  verdict "$3 calls: dtest $5" 'DAPL Test Complete. PASSED' $status $server dtest
}
said_pair() { # PROGRAM PORT TEXT SERVER NAMESPACE CLIENT ADDRESS OPTIONS
  $4 $1 -P lab -s $8 >server.out 2>&1 &
  server=$!
  listening $5 $2
  $6 $1 -P lab -h $7 $8 >client.out 2>&1
  status=$?
  wait $server
  verdict "$6 calls: $1 $8" "$3" $status $? $1
}
# It takes whatever comes for a connection for success, and dies of a reject without private data: the log says why one came.
dtestcm_pair() { # SERVER NAMESPACE CLIENT ADDRESS
  VIADUCT_LOG=info said_pair dtestcm 45248 'ALL 20 CONNECTED' $1 $2 $3 $4 '-c 20 -b 5'
}
dapltest_serve() { # SERVER NAMESPACE
  serves="$1 $2"
  limit=400 $1 dapltest -T S -D lab -n 45278 >server.out 2>&1 &
  server=$!
  listening $2 45278
}
dapltest_call() { # CLIENT ADDRESS OPTIONS OPERATIONS
  for _ in 1 2 3; do
    VIADUCT_LOG=info $1 dapltest $3 -s $2 -D lab -n 45278 $4 >client.out 2>&1
    status=$?
    stuck_by_siw $status || break
    pkill -x dapltest
    wait $server
    dapltest_serve $serves
  done
  # It is 0 after a failure, too.
  if [ $status = 0 ] && grep -q -E 'Stats|raw:' client.out &&
    ! grep -v '^viaduct: info: ' client.out | grep -q -i -E 'error|failed|unexpected'; then
    echo "$1 calls: dapltest $3 $4: passed"
  else
    echo "$1 calls: dapltest $3 $4: failed: exit status $status"; show client.out; show_core dapltest
  fi
}
dapltest_quit() { # CLIENT ADDRESS
  $1 dapltest -T Q -s $2 -D lab -n 45278 >client.out 2>&1
  status=$?
  wait $server
  echo "$1 calls: dapltest -T Q: $status and the server $?"
  grep -i -E 'error|failed|unexpected' server.out | sed 's/^/the server: /'
}
"""

# own: our libdat2. plugin: Debian's libdat2 with our provider. debian: Debian's with OFED's provider.
_LIBRARIES = r"""
set -u
cd /tmp
echo 'lab u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "dummy0 0" ""' >debian.conf
echo "lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 \"${LAB_DRIVER}0 1\" \"\"" >own.conf
echo "lab u2.0 nonthreadsafe default %(provider)s viaduct.0.1 \"${LAB_DRIVER}0 1\" \"\"" >plugin.conf
limit=60
debian() { timeout $limit env DAT_OVERRIDE=/tmp/debian.conf "$@" </dev/null; }
own() { timeout $limit env DAT_OVERRIDE=/tmp/own.conf LD_LIBRARY_PATH=%(own)s:%(engine)s:%(rdma)s VIADUCT_QUEUE_EMPTY=bare \
  "$@" </dev/null; }
plugin() { timeout $limit env DAT_OVERRIDE=/tmp/plugin.conf LD_LIBRARY_PATH=%(engine)s:%(rdma)s "$@" </dev/null; }
listening() { # NAMESPACE PORT; rxe's listeners are no sockets
  for _ in $(seq 200); do
    { ss -ltn; rdma resource show cm_id | grep LISTEN; } | grep -q ":$2 " && return
    sleep 0.1
  done
}
"""


def libraries(own, engine, rdma, provider=""):
    """The ends of one host with an RDMA device, by the folders of our libraries and the path of our provider."""
    return _LIBRARIES % {"own": own, "engine": engine, "rdma": rdma, "provider": provider}


def dtests(client, server, namespace, address):
    """(commands, the lines that they print when all passes) of dtest and dtestcm."""
    commands, expected = [], []
    for options in DTEST:
        commands.append("dtest_pair %s %s %s %s '%s'" % (server, namespace, client, address, options))
        expected.append("%s calls: dtest %s: passed" % (client, options))
    commands.append("dtestcm_pair %s %s %s %s" % (server, namespace, client, address))
    expected.append("%s calls: dtestcm -c 20 -b 5: passed" % client)
    return commands, expected


def shared_receives(client, server, namespace, address):
    """The same of dtestsrq."""
    return _said("dtestsrq", 45248, "SRQ Test Complete", DTESTSRQ, client, server, namespace, address)


def extensions(client, server, namespace, address):
    """The same of dtestx, which needs immediate data and atomics."""
    return _said("dtestx", 15828, "immed/atomic test PASSED", DTESTX, client, server, namespace, address)


def _said(program, port, text, all_options, client, server, namespace, address):
    commands = ["said_pair %s %d '%s' %s %s %s %s '%s'" % (program, port, text, server, namespace, client, address, options)
                for options in all_options]
    return commands, ["%s calls: %s %s: passed" % (client, program, options) for options in all_options]


def dapltests(client, server, namespace, address):
    """The same of dapltest."""
    commands, expected = ["dapltest_serve %s %s" % (server, namespace)], []
    for options, operations in DAPLTEST:
        commands.append("dapltest_call %s %s '%s' '%s'" % (client, address, options, operations))
        expected.append("%s calls: dapltest %s %s: passed" % (client, options, operations))
    commands.append("dapltest_quit %s %s" % (client, address))
    expected.append("%s calls: dapltest -T Q: 0 and the server 0" % client)
    return commands, expected


def judge(case, output, expected):
    """Fails unless the output has these lines and no other verdict, nor a server's complaint."""
    said = [line for line in output.splitlines() if " calls" in line or line.startswith("the server: ")]
    case.assertEqual(said, expected, output)
