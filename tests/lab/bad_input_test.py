#!/usr/bin/env python3
"""What a program over an RDMA device is told when something is wrong, and what the log says to do about it."""

import os
import unittest

from tests.lab import lab

_PROGRAM = os.path.realpath("tests/lab/bad_input")
_VIA = os.path.realpath("tests/lab/bad_input_via")
_CUT = {"dat": os.path.realpath("tests/lab/cut_dat"), "via": os.path.realpath("tests/lab/cut_via")}
_MODULE = os.path.dirname(os.path.realpath("verbs/rdma/libviaduct-rdma.so.1"))

# Other programs at ports: one hangs up, the others say nothing. None speaks another protocol: siw of kernel 6.1 follows a
# null pointer when bytes that are no answer look like one with private data (cm_event_handler, kmemdup).
_STRANGERS = """
import socket, threading, time
def serve(port, hangs_up):
    listening = socket.create_server(("10.9.0.1", port))
    def run():
        talk, _ = listening.accept()
        talk.recv(10)
        if hangs_up: talk.close()
        else: time.sleep(1000)
    threading.Thread(target=run, daemon=True).start()
serve(7001, True)
serve(7002, False)
serve(7199, False)
print("ready", flush=True)
time.sleep(1000)
"""

# A peer that offers to speak first, as MPA's peers do. It speaks when ours has said that all is done, and sees it hang up.
_MUTE = """
import socket, time
talk = socket.create_connection(("10.9.0.1", 7199))
talk.sendall(b"MPA ID Req Frame" + bytes.fromhex("1002000480018001"))
answer = talk.recv(100)
while "open again" not in open("said").read(): time.sleep(0.1)
talk.sendall(bytes.fromhex("000ec140000000010000000000000000") + bytes(4))
print("the peer has an answer of %d bytes, and then %d" % (len(answer), len(talk.recv(100))), flush=True)
"""

_NOBODY = "nobody listens at that port: is the server started, and on this port?"
_CURES_OVER_SIW = {
    "192.0.2.77 7000": "no way there: see ip route get, ip neighbour and rdma link",
    "10.9.0.1 7000": _NOBODY,
}

_SETUP = """
cd /tmp
export LD_LIBRARY_PATH=%(module)s
# A user without rights, who may reach what was built, wherever that is; root may lock what it likes.
for folder in $(dirname %(program)s) %(module)s; do
  while [ $folder != / ]; do chmod o+x $folder; folder=$(dirname $folder); done
done
user() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
run() { timeout 60 %(program)s "$@" 2>&1; }
run_via() { timeout 60 %(via)s "$@" 2>&1; }
echo 'lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "%(device)s" ""' >lab.conf
echo 'lab u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.9.0.1" ""' >address.conf
"""

# The client in namespace a, a server on the other kind of device in b; each device's name is that of its namespace.
_LINK = """
cd /tmp
cat >link.conf <<'END'
a u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.1" ""
b u2.0 nonthreadsafe default libdapl-viaduct.so.2 viaduct.0.1 "10.8.0.2" ""
END
export DAT_OVERRIDE=/tmp/link.conf LD_LIBRARY_PATH=%(module)s
VIADUCT_WIRE=%(server)s ip netns exec b %(serve)s b serve >served 2>&1 & server=$!
for _ in $(seq 200); do ip netns exec b ss -ltn | grep -q :7197 && break; sleep 0.1; done
step() { # NAME COMMAND...
  echo "==== $1"
  log="log of $1"
  shift
  VIADUCT_LOG=debug VIADUCT_WIRE=%(client)s timeout 100 ip netns exec a "$@" >out 2>"$log"
  status=$?
  grep -v -E '^viaduct: (info|debug): ' "$log"
  cat out
  echo "status $status"
}
step connected %(cut)s 10.8.0.2 'ip -n b link set vb down'
step 'peer down' %(connect)s 10.8.0.2 7000
%(own_down)s
kill $server
wait $server
echo '==== served'
cat served
echo '==== logs'
tail -n +1 'log of '*
"""


class BadInput(unittest.TestCase):
    def _parts(self, output):
        """Maps the rest of each line that begins with ==== to the lines after it."""
        return dict(part.split("\n", 1) for part in output.split("==== ")[1:])

    def _run(self, driver, script):
        values = {"program": _PROGRAM, "via": _VIA, "module": _MODULE, "device": driver + "0"}
        status, output = lab.run(driver, _SETUP % values + script % values + "\ntrue")
        self.assertEqual(status, 0, output)
        self.assertNotRegex(output, "(?m)^status [^0]")
        return output

    def _expect(self, output, *lines):
        """Fails unless the output has these lines, or parts of lines, in this order."""
        at = 0
        for line in lines:
            found = output.find(line, at)
            self.assertNotEqual(found, -1, "'%s' in\n%s" % (line, output))
            at = found + len(line)

    def test_no_device(self):
        output = self._run("none", """
run siw0 open
echo "status $?"
VIADUCT_WIRE=rdma run soft0 open
echo "status $?"
""")
        first, second, _ = output.split("status 0\n")
        self.assertIn("open: DAT_PROVIDER_NOT_FOUND", first.splitlines())
        self.assertIn("this host has no RDMA device that can be used", second)
        self.assertIn("open: DAT_PROVIDER_NOT_FOUND", second.splitlines())

    def _rights(self, driver):
        output = self._run(driver, """
chmod 600 /dev/infiniband/*
export DAT_OVERRIDE=/tmp/lab.conf
user timeout 60 %(program)s lab open 2>&1
echo "status $?"
echo and of VIPL
user timeout 60 %(via)s %(device)s open 2>&1
echo "status $?"
echo and by its address
DAT_OVERRIDE=/tmp/address.conf VIADUCT_WIRE=rdma user timeout 60 %(program)s lab open 2>&1 | sort
echo "status ${PIPESTATUS[0]}"
""")
        must = "must be open to this user"
        self._expect(output, "/dev/infiniband/", must, "open: DAT_PROVIDER_NOT_FOUND", "and of VIPL", must,
                     'there is an RDMA device "%s0", but not for this process' % driver, "open: VIP_ERROR_RESOURCE",
                     "and by its address", "open: DAT_INSUFFICIENT_RESOURCES", must)

    def _memory(self, driver):
        output = self._run(driver, """
ulimit -l 64
for face in %(program)s %(via)s; do
  user timeout 60 $face %(device)s memory 2>&1 | sort
  echo "status ${PIPESTATUS[0]}"
done
""")
        cure = "a process may lock 64 KiB here: raise it with ulimit -l"
        self._expect(output, "open: DAT_SUCCESS", "register: DAT_INSUFFICIENT_RESOURCES", cure,
                     "open: VIP_SUCCESS", "register: VIP_ERROR_RESOURCE", cure)

    def _removal(self, driver):
        output = self._run(driver, """
run %(device)s hold >held & holder=$!
for _ in $(seq 300); do grep -q 'other side: EST' held && break; sleep 0.1; done
run_via %(device)s wait >waited & waiter=$!
for _ in $(seq 300); do grep -q 'open: VIP_SUCCESS' waited && break; sleep 0.1; done
rdma link delete %(device)s
wait $holder
echo "status $?"
wait $waiter
echo "status $?"
sort held
echo and of VIPL
sort waited
""")
        cure = "close its adapters and open them again when ibv_devices shows it"
        self._expect(output, "close: DAT_SUCCESS", "one side: BROKEN", "one side: ESTABLISHED", "open again: DAT_PROVIDER_NOT_FOUND",
                     "other side: ESTABLISHED", "the adapter: IA_CATASTROPHIC", "the device is being removed", cure,
                     "and of VIPL", "close: VIP_SUCCESS", "the NIC: VIP_ERROR_CATASTROPHIC", cure,
                     "wait: VIP_ERROR_RESOURCE")
        # The side that is notified first hangs up on the other.
        self.assertRegex(output, "other side: (BROKEN|DISCONNECTED)")

    def _peers(self, driver, command, addresses):
        """Maps each ADDRESS PORT, or other words, to what the command said of it, log included, while the strangers run."""
        output = self._run(driver, """
export VIADUCT_LOG=info
python3 -c '%s' >ready & strangers=$!
for _ in $(seq 300); do grep -q ready ready && break; sleep 0.1; done
""" % _STRANGERS.replace("%", "%%") + "\n".join(
            "echo '==== %s'; %s %s; echo status $?" % (each, command, each) for each in addresses) + "\nkill $strangers")
        said = self._parts(output)
        for peer in addresses:
            self.assertIn("status 0\n", said[peer], output)
        return said

    def _expect_cures(self, said, cures):
        """Fails unless the log says what to do about each peer."""
        for peer, cure in cures.items():
            self.assertIn(cure, said[peer])

    # To the kernel, a peer that hangs up before it has answered is the same as one that rejects.
    def test_peers_over_siw(self):
        addresses = ("192.0.2.77 7000", "10.9.0.1 7000", "10.9.0.1 7001", "10.9.0.1 7002")
        said = self._peers("siw", "run siw0 connect", addresses)
        self.assertIn("outcome: UNREACHABLE\n", said["192.0.2.77 7000"])
        self.assertIn("outcome: NON_PEER_REJECTED\n", said["10.9.0.1 7000"])
        self.assertIn("outcome: PEER_REJECTED\n", said["10.9.0.1 7001"])
        self.assertIn("outcome: TIMED_OUT\n", said["10.9.0.1 7002"])
        self._expect_cures(said, _CURES_OVER_SIW)

    def test_peers_of_vipl_over_siw(self):
        addresses = ("192.0.2.77 7000", "10.9.0.1 7000", "10.9.0.1 7001", "10.9.0.1 7002")
        said = self._peers("siw", "run_via siw0", addresses)
        self.assertIn("outcome: VIP_NOT_REACHABLE, VIP_STATE_ERROR\n", said["192.0.2.77 7000"])
        self.assertIn("outcome: VIP_NO_MATCH, VIP_STATE_IDLE\n", said["10.9.0.1 7000"])
        self.assertIn("outcome: VIP_REJECT, VIP_STATE_IDLE\n", said["10.9.0.1 7001"])
        self.assertIn("outcome: VIP_TIMEOUT, VIP_STATE_IDLE\n", said["10.9.0.1 7002"])
        self._expect_cures(said, _CURES_OVER_SIW)

    def test_a_taken_port_over_siw(self):
        said = self._peers("siw", "run siw0", ("hold",))["hold"]
        self.assertIn("listen: DAT_CONN_QUAL_IN_USE\n", said)
        self.assertIn("siw0: port 7199 of 10.9.0.1 is taken; rdma resource show cm_id, or ss -ltnp, may say by whom", said)

    # Until the peer has spoken, the kernel blocks everybody who tries to end the connection.
    def test_an_accept_is_given_up_over_siw(self):
        output = self._run("siw", """
mkfifo go
run siw0 give-up <go >said & server=$!
exec 3>go
for _ in $(seq 300); do grep -q listen said && break; sleep 0.1; done
timeout 60 python3 -c '%s'
exec 3>&-
wait $server
echo "status $?"
cat said
""" % _MUTE.replace("%", "%%"))
        self._expect(output, "the peer has an answer of 24 bytes, and then 0", "status 0", "accept: DAT_SUCCESS",
                     "disconnect: DAT_SUCCESS", "free: DAT_SUCCESS", "close: DAT_SUCCESS", "open again: DAT_SUCCESS")

    # The kernel holds a port that siw listens at.
    def test_a_port_that_siw_has(self):
        output = self._run("siw", """
run siw0 hold >held & holder=$!
for _ in $(seq 300); do grep -q 'other side: EST' held && break; sleep 0.1; done
DAT_OVERRIDE=/tmp/address.conf VIADUCT_WIRE=iwarp run lab hold
echo "status $?"
rdma link delete siw0
wait $holder
""")
        self._expect(output, "open: DAT_SUCCESS", "listen: DAT_CONN_QUAL_IN_USE", "status 0")

    # The kernel asks the wire for any address there, and dummy0 takes every packet.
    def test_peers_over_rxe(self):
        said = self._peers("rxe", "run rxe0 connect", ("192.0.2.77 7000", "10.9.0.1 7000", "10.9.0.1 7002"))
        self.assertRegex(said["192.0.2.77 7000"], "outcome: (UNREACHABLE|TIMED_OUT)\n")
        for nobody in ("10.9.0.1 7000", "10.9.0.1 7002"):
            self.assertIn("outcome: NON_PEER_REJECTED\n", said[nobody])
        self._expect_cures(said, {"10.9.0.1 7000": _NOBODY})

    def test_peers_of_vipl_over_rxe(self):
        said = self._peers("rxe", "run_via rxe0", ("192.0.2.77 7000", "10.9.0.1 7000", "10.9.0.1 7002"))
        self.assertRegex(said["192.0.2.77 7000"],
                         "outcome: (VIP_NOT_REACHABLE, VIP_STATE_ERROR|VIP_TIMEOUT, VIP_STATE_IDLE)\n")
        for nobody in ("10.9.0.1 7000", "10.9.0.1 7002"):
            self.assertIn("outcome: VIP_NO_MATCH, VIP_STATE_IDLE\n", said[nobody])
        self._expect_cures(said, {"10.9.0.1 7000": _NOBODY})

    def _cut(self, face, client, server):
        """Cuts links; returns what was said when connected, with the peer's link down, and with the own link down."""
        values = {"module": _MODULE, "client": client, "server": server, "serve": _CUT["dat"]}
        if face == "dat":
            values.update(cut=_CUT["dat"] + " a", connect=_PROGRAM + " a connect")
            values["own_down"] = "ip -n a link set va down; step 'own down' %(connect)s 10.8.0.2 7000" % values
        else:
            values.update(cut=_CUT["via"] + " 10.8.0.1", connect=_VIA + " 10.8.0.1")
            values["own_down"] = "step 'own down' %(connect)s 10.8.0.2 7000 'ip link set va down'" % values
        status, output = lab.run("siw", _LINK % values, net="namespaces", seconds=250)
        self.assertEqual(status, 0, output)
        said = self._parts(output)
        for part in ("connected", "peer down", "own down", "served", "logs"):
            print("%s:\n%s" % (part, said[part]), flush=True)
        return said["connected"], said["peer down"], said["own down"]

    # The driver may find the connection lost before the program ends it.
    def _cut_dat(self, client, server):
        connected, peer_down, own_down = self._cut("dat", client, server)
        self.assertRegex(connected, "^connecting: ESTABLISHED\nthe end: (DISCONNECTED|BROKEN)\nrequests: flushed\n"
                         "connecting: UNREACHABLE\nclosed\nstatus 0\n$")
        for said in (peer_down, own_down):
            self.assertIn("outcome: UNREACHABLE\nstatus 0\n", said)

    # Either nothing answered, or the kernel found before the limit that there is no neighbour.
    def _cut_via(self, client, server):
        connected, peer_down, own_down = self._cut("via", client, server)
        self.assertRegex(connected, "^(viaduct: warn: .*: VIP_ERROR_CONN_LOST: connection lost\n)?"
                         "connecting: VIP_SUCCESS\nthe end: VIP_STATE_IDLE\nrequests: flushed\nconnecting: "
                         "(VIP_TIMEOUT\nthe VI: VIP_STATE_IDLE|VIP_NOT_REACHABLE\nthe VI: VIP_STATE_ERROR)\nclosed\nstatus 0\n$")
        self.assertRegex(peer_down, "outcome: (VIP_TIMEOUT, VIP_STATE_IDLE|VIP_NOT_REACHABLE, VIP_STATE_ERROR)\nstatus 0\n")
        self.assertIn("outcome: VIP_NOT_REACHABLE, VIP_STATE_ERROR\nstatus 0\n", own_down)

    def test_cut_link_of_dat_over_siw(self):
        self._cut_dat("rdma", "iwarp")

    def test_cut_link_of_dat_towards_siw(self):
        self._cut_dat("iwarp", "rdma")

    def test_cut_link_of_vipl_over_siw(self):
        self._cut_via("rdma", "iwarp")

    def test_cut_link_of_vipl_towards_siw(self):
        self._cut_via("iwarp", "rdma")

    def test_rights_over_siw(self):
        self._rights("siw")

    def test_rights_over_rxe(self):
        self._rights("rxe")

    def test_memory_over_siw(self):
        self._memory("siw")

    def test_memory_over_rxe(self):
        self._memory("rxe")

    def test_removal_over_siw(self):
        self._removal("siw")

    def test_removal_over_rxe(self):
        self._removal("rxe")


if __name__ == "__main__":
    lab.main()
