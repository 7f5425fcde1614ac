#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test machine's faulty NVMe/TCP target (tests/vm/FAULTY.md), asked by a small host of its own instead of a kernel.

What goes over the wire is written down here a second time on purpose: nothing of the target is imported.
"""

import os
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

GUEST = Path(__file__).resolve().parent / "vm" / "guest"
NQN = "nqn.2024-01.test.nsheal:faulty"
LIMIT = 10              # seconds until a silent target has failed
SILENCE = 0.3           # seconds after which no answer is taken for none
DNR = 0x4000


def uuid_of(nsid):
    return bytes.fromhex(f"5ca1ab1e000040008000{nsid:012d}")


class Silence(Exception):
    """No answer came."""


class Queue:
    """A connection to a controller: one queue of a host."""

    def __init__(self, port, number=0, cntlid=0xffff, nqn=NQN):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        self.cid = 0
        self.answers = {}               # by command: data, status, result
        self.data = {}
        self.socket.sendall(struct.pack("<BBBBIHBBI", 0, 0, 128, 0, 128, 0, 0, 0, 0).ljust(128, b"\0"))
        if self.pdu()[0] != 1:
            raise AssertionError("no ICResp")
        data = struct.pack("<16sH238x256s256s", b"host", cntlid, nqn.encode(), b"nqn.host").ljust(1024, b"\0")
        entry = struct.pack("<HHHBxI", 0, number, 31, 0, 60000)
        self.status, result = self.send(0x7f, fctype=1, tail=entry, capsule=data, wait=True)[1:]
        self.cntlid = result & 0xffff

    def close(self):
        self.socket.close()

    def receive(self, length):
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def pdu(self):
        kind, _, _, _, length = struct.unpack("<BBBBI", self.receive(8))
        return kind, self.receive(length - 8)

    def send(self, opcode, nsid=0, cdw=(), data=b"", capsule=b"", fctype=None, tail=b"", wait=True):
        """One command. `capsule` goes with it, `data` when it is asked for, `tail` is CDW10 and on, as bytes."""
        self.cid += 1
        tail = tail or struct.pack(f"<{len(cdw)}I", *cdw)
        # A descriptor without data has length 0; else the target would ask for data of commands that have none.
        kind, length = (0x01, len(capsule)) if capsule else (0x5a, 4096 if opcode & 3 == 2 else len(data))
        head = struct.pack("<BBHI", opcode, 0x40, self.cid, nsid if fctype is None else fctype)
        entry = (head.ljust(24, b"\0") + struct.pack("<QI3xB", 0, length, kind) + tail).ljust(64, b"\0")
        self.socket.sendall(struct.pack("<BBBBI", 4, 0, 72, 72 if capsule else 0, 72 + len(capsule)) + entry + capsule)
        self.data[self.cid] = data
        return self.answer(self.cid) if wait else self.cid

    def answer(self, cid, limit=LIMIT):
        """Data, status, result of that command; others that come meanwhile are kept."""
        self.socket.settimeout(limit)
        received = b""
        while cid not in self.answers:
            try:
                kind, body = self.pdu()
            except TimeoutError:
                raise Silence from None
            if kind == 9:               # R2T
                asked, tag, offset, length = struct.unpack_from("<HHII", body)
                self.hand_over(asked, tag, offset, length)
            elif kind == 7:
                asked, _, offset, length = struct.unpack_from("<HHII", body)
                received = self.answers.setdefault(("data", asked), bytearray())
                if offset != len(received) or len(body) != 16 + length:
                    raise AssertionError("data in disorder")
                received += body[16:]
            elif kind == 5:
                result, _, _, asked, status = struct.unpack("<QHHHH", body)
                self.answers[asked] = bytes(self.answers.pop(("data", asked), b"")), status >> 1, result
            else:
                raise AssertionError(f"PDU {kind}")
        return self.answers.pop(cid)

    def hand_over(self, cid, tag, offset, length):
        # In two pieces, as a host does that may send less at a time than was asked for.
        data = self.data[cid][offset:offset + length]
        half = len(data) // 2
        for at, piece in ((0, data[:half]), (half, data[half:])):
            self.socket.sendall(struct.pack("<BBBBIHHII4x", 6, 0, 24, 24, 24 + len(piece), cid, tag, offset + at,
                                            len(piece)) + piece)

    def silent(self, cid):
        try:
            self.answer(cid, SILENCE)
        except Silence:
            return True
        return False

    # --- the commands that tests use ---

    def identify(self, cns, nsid=0, csi=0, **more):
        return self.send(0x06, nsid, (cns, csi << 24), **more)

    def nsids(self, after=0):
        data, status, _ = self.identify(2, after)
        assert status == 0, f"status {status:#x}"
        return [nsid for nsid in struct.unpack("<1024I", data) if nsid]

    def identifiers(self, nsid):
        """By descriptor type."""
        data, found, at = self.identify(3, nsid)[0], {}, 0
        while data[at]:
            found[data[at]] = data[at + 4:at + 4 + data[at + 1]]
            at += 4 + data[at + 1]
        return found

    def log(self, lid, rae=0, lsp=0, length=4096, offset=0, **more):
        return self.send(0x02, 0xffffffff, (lid | lsp << 8 | rae << 15 | (length // 4 - 1) << 16, 0, offset), **more)

    def set_notices(self, bits):
        return self.send(0x09, cdw=(0x0b, bits))

    def wait_for_notice(self):
        return self.send(0x0c, wait=False)

    def keep_alive(self):
        return self.send(0x18)[1]

    def write(self, nsid, block, data, in_capsule=False):
        return self.send(0x01, nsid, (block, 0, len(data) // 512 - 1), **{"capsule" if in_capsule else "data": data})[1]

    def read(self, nsid, block, blocks):
        return self.send(0x02, nsid, (block, 0, blocks - 1))


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = f"{directory.name}/control"
        self.target = subprocess.Popen(
            [sys.executable, "-B", "-m", "faulty", "run", "--nqn", NQN, "--control", self.path, "1=127.0.0.1:0",
             "2=127.0.0.1:0"], env={**os.environ, "PYTHONPATH": str(GUEST)}, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end_target)
        deadline = time.monotonic() + LIMIT
        while not os.path.exists(self.path):
            self.assertLess(time.monotonic(), deadline, "the target does not come up")
            time.sleep(0.02)
        self.ports = [int(line.split()[1].rpartition(":")[2]) for line in self.ctl("ports").splitlines()]

    def end_target(self):
        self.target.terminate()
        self.assertNotIn("Traceback", self.target.communicate(timeout=LIMIT)[1])

    def raw_ctl(self, words):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(LIMIT)
            connection.connect(self.path)
            connection.sendall(words.encode() + b"\n")
            return b"".join(iter(lambda: connection.recv(65536), b"")).decode()

    def ctl(self, words):
        verdict, _, text = self.raw_ctl(words).partition("\n")
        self.assertEqual(verdict, "ok", words)
        return text

    def count(self, words):
        return int(self.ctl(f"count {words}"))

    def connect(self, port=1, **more):
        queue = Queue(self.ports[port - 1], **more)
        self.addCleanup(queue.close)
        return queue

    def map(self, *nsids):
        for nsid in nsids:
            self.ctl(f"map {nsid}")


class Connecting(Case):
    def test_each_connection_is_a_controller_of_its_own(self):
        first, second = self.connect(1), self.connect(2)
        self.assertEqual((first.status, second.status), (0, 0))
        self.assertNotEqual(first.cntlid, second.cntlid)
        for queue in first, second:
            data = queue.identify(1)[0]
            self.assertEqual(struct.unpack_from("<H", data, 78)[0], queue.cntlid)
            self.assertEqual(data[768:1024].rstrip(b"\0"), NQN.encode())
            self.assertEqual(data[76] & 0x0a, 0x0a, "several controllers, ANA")
            self.assertEqual(struct.unpack_from("<I", data, 92)[0], 0x900)

    def test_another_nqn_is_refused(self):
        self.assertEqual(self.connect(nqn=NQN + "x").status, 0x182 | DNR)

    def test_an_io_queue_needs_its_controller_on_that_port(self):
        admin = self.connect(1)
        self.assertEqual(self.connect(1, number=1, cntlid=admin.cntlid).status, 0)
        self.assertEqual((self.count("connect qid=0"), self.count("connect qid=1")), (1, 1))
        self.assertEqual(self.connect(2, number=1, cntlid=admin.cntlid).status, 0x182 | DNR)
        self.assertEqual(self.connect(1, number=2, cntlid=admin.cntlid + 1).status, 0x182 | DNR)

    def test_the_end_of_the_admin_queue_ends_the_others(self):
        admin = self.connect()
        io = self.connect(number=1, cntlid=admin.cntlid)
        admin.close()
        with self.assertRaises((EOFError, ConnectionError)):
            io.pdu()
        self.assertEqual(self.ctl("controllers"), "")

    def test_registers(self):
        queue = self.connect()
        get = lambda offset: queue.send(0x7f, fctype=4, cdw=(0, offset))
        self.assertEqual(get(0)[2] >> 37 & 1, 1, "the NVM command set")
        self.assertEqual(get(8)[2], 0x10400)
        self.assertEqual(get(0x1c)[2], 0)
        queue.send(0x7f, fctype=0, cdw=(0, 0x14, 0x460001))
        self.assertEqual((get(0x14)[2], get(0x1c)[2]), (0x460001, 1), "ready")
        queue.send(0x7f, fctype=0, cdw=(0, 0x14, 0x464001))
        self.assertEqual(get(0x1c)[2] & 0xc, 0x8, "shut down")
        self.assertEqual(get(0x44)[1], 0x2 | DNR)

    def test_ports_close_and_open(self):
        queue = self.connect(2)
        self.ctl("close on=2")
        with self.assertRaises((EOFError, ConnectionError)):
            queue.pdu()
        with self.assertRaises(ConnectionError):
            self.connect(2)
        self.connect(1)
        self.ctl("open on=2")
        self.assertEqual(self.connect(2).status, 0)
        other = self.connect(1)
        self.ctl("drop on=1")
        with self.assertRaises((EOFError, ConnectionError)):
            other.pdu()
        self.assertEqual(self.connect(1).status, 0)

    def test_nonsense_ends_the_connection_only(self):
        for nonsense in (b"GET / HTTP/1.0\r\n\r\n" * 9, struct.pack("<BBBBI", 4, 0, 72, 0, 72) + bytes(64)):
            raw = socket.create_connection(("127.0.0.1", self.ports[0]), LIMIT)
            raw.sendall(nonsense)
            try:
                self.assertEqual(raw.recv(1), b"")
            except ConnectionError:
                pass
            raw.close()
        self.assertEqual(self.connect().status, 0)


class Namespaces(Case):
    def test_the_list_is_sorted_and_goes_on_after_1024(self):
        self.ctl("map 900-1100")
        self.ctl("map 1-899")
        queue = self.connect()
        self.assertEqual(queue.nsids(), list(range(1, 1025)))
        self.assertEqual(queue.nsids(1024), list(range(1025, 1101)))
        self.assertEqual(queue.identify(2, 0xffffffff)[1], 0xb | DNR)
        self.ctl("unmap 1-1022,1025-1099")
        self.assertEqual(queue.nsids(), [1023, 1024, 1100])
        self.assertEqual(struct.unpack_from("<II", queue.log(4)[0]), (0xffffffff, 0), "more than the log holds")

    def test_identifiers(self):
        self.map(1)
        self.ctl("map 2 uuid=none nguid=5ca1ab1e000000000000000000000002 eui64=5ca1ab1e00000002")
        self.ctl("map 3 uuid=0 size=1M group=3")
        queue = self.connect()
        self.assertEqual(queue.identifiers(1), {3: uuid_of(1), 4: b"\0"})
        nguid, eui64 = bytes.fromhex("5ca1ab1e000000000000000000000002"), bytes.fromhex("5ca1ab1e00000002")
        self.assertEqual(queue.identifiers(2), {1: eui64, 2: nguid, 4: b"\0"})
        self.assertEqual(queue.identifiers(3)[3], bytes(16))
        data = queue.identify(0, 2)[0]
        self.assertEqual((data[104:120], data[120:128]), (nguid, eui64))
        data = queue.identify(0, 3)[0]
        self.assertEqual(struct.unpack_from("<QQ", data), (2048, 2048))
        self.assertEqual((data[30], data[92]), (1, 3), "shared, its ANA group")

    def test_what_is_not_there(self):
        self.map(1)
        queue = self.connect()
        self.assertEqual(queue.identify(0, 2)[:2], (bytes(4096), 0))
        self.assertEqual(queue.identify(0, 4711)[1], 0xb | DNR)
        self.assertEqual(queue.identify(3, 2)[1], 0xb | DNR)
        self.ctl("unmap 1")
        self.assertEqual(queue.nsids(), [])
        self.assertEqual(queue.identify(0x13)[1], 0x2 | DNR)

    def test_controllers_that_differ(self):
        self.map(1)
        self.ctl(f"change 1 uuid={uuid_of(7).hex()} size=0 on=2")
        first, second = self.connect(1), self.connect(2)
        self.assertEqual((first.identifiers(1)[3], second.identifiers(1)[3]), (uuid_of(1), uuid_of(7)))
        self.assertEqual(second.identify(0, 1)[0][:16], bytes(16))

    def test_a_private_one_is_of_one_port(self):
        self.ctl("map 1 private=2")
        self.ctl(f"map 1 private=1 uuid={uuid_of(5).hex()}")
        self.ctl("map 2 private=1")
        first, second = self.connect(1), self.connect(2)
        self.assertEqual((first.nsids(), second.nsids()), ([1, 2], [1]))
        self.assertEqual((first.identifiers(1)[3], second.identifiers(1)[3]), (uuid_of(5), uuid_of(1)))
        self.assertEqual(first.identify(0, 1)[0][30], 0)

    def test_older_controllers(self):
        self.map(1)
        queue = self.connect()
        for version, answers in (("1.2", (0, 0x2 | DNR)), ("1.0", (0x2 | DNR, 0x2 | DNR)), ("1.3", (0, 0))):
            self.ctl(f"set vs={version}")
            self.assertEqual((queue.identify(2)[1], queue.identify(3, 1)[1]), answers, version)
        self.ctl("set csi=0")
        self.assertEqual(queue.identifiers(1), {3: uuid_of(1)})

    def test_data(self):
        self.map(1)
        admin = self.connect()
        io = self.connect(number=1, cntlid=admin.cntlid)
        self.assertEqual(io.read(1, 0, 8)[:2], (bytes(4096), 0))
        data = os.urandom(98304)
        self.assertEqual(io.write(1, 100, data), 0)
        self.assertEqual(io.write(1, 99, b"x" * 1024, in_capsule=True), 0)
        self.assertEqual(io.read(1, 99, 193)[0], b"x" * 1024 + data[512:])
        last = (64 << 20) // 512 - 1
        self.assertEqual(io.write(1, last, b"y" * 512), 0)
        self.assertEqual(io.write(1, last, b"y" * 1024), 0x80 | DNR)
        self.assertEqual(io.read(1, last, 2)[1], 0x80 | DNR)
        self.assertEqual(io.read(2, 0, 1)[1], 0xb | DNR)
        self.assertEqual(io.send(0x00, 1)[1], 0)
        self.assertEqual(io.send(0x19, 1)[1], 0x1 | DNR)


class Faults(Case):
    def test_never_concerns_that_command_only(self):
        self.map(1, 2)
        queue = self.connect()
        number = self.ctl("fault never identify cns=3 nsid=2")
        cid = queue.identify(3, 2, wait=False)
        self.assertEqual(queue.identifiers(1)[3], uuid_of(1))
        self.assertEqual(queue.keep_alive(), 0)
        self.assertTrue(queue.silent(cid))
        self.ctl(f"clear {number}")
        self.assertTrue(queue.silent(cid), "what was swallowed stays so")
        self.assertEqual(queue.identifiers(2)[3], uuid_of(2))

    def test_on_one_controller(self):
        first, second = self.connect(1), self.connect(2)
        self.ctl("fault identify cns=2 on=2 fail=0x6")
        self.assertEqual((first.identify(2)[1], second.identify(2)[1]), (0, 0x6))

    def test_how_often(self):
        queue = self.connect()
        statuses = lambda count: [queue.identify(1)[1] for _ in range(count)]
        for words, wanted in (("once", [0x6, 0, 0, 0]), ("times=2", [0x6, 0x6, 0, 0]), ("", [0x6] * 4),
                              ("skip=2 once", [0, 0, 0x6, 0]), ("skip=1", [0, 0x6, 0x6, 0x6])):
            self.ctl(f"fault identify cns=1 fail=0x6 {words}")
            self.assertEqual(statuses(4), wanted, words)
            self.ctl("clear")
        self.assertEqual(statuses(1), [0])

    def test_what_fails_is_not_done(self):
        queue = self.connect()
        queue.set_notices(0x100)
        self.ctl("fault set-features fid=0x0b fail=0x4002 once")
        self.assertEqual(queue.set_notices(0x900)[1], 0x4002)
        self.assertEqual(queue.send(0x0a, cdw=(0x0b,))[2], 0x100)

    def test_late(self):
        self.map(1)
        queue = self.connect()
        self.ctl("fault identify cns=2 late=0.5 once")
        begun = time.monotonic()
        cid = queue.identify(2, wait=False)
        self.assertEqual(queue.keep_alive(), 0)
        self.assertLess(time.monotonic() - begun, 0.5, "the next is not held up")
        self.assertEqual(struct.unpack_from("<I", queue.answer(cid)[0])[0], 1)
        self.assertGreaterEqual(time.monotonic() - begun, 0.5)

    def test_close(self):
        queue = self.connect()
        self.ctl("fault get-log lid=0x0c close once")
        queue.log(0x0c, wait=False)
        with self.assertRaises((EOFError, ConnectionError)):
            queue.pdu()
        self.assertEqual(self.connect().log(0x0c)[1], 0)

    def test_lists(self):
        self.map(1, 2, 3, 5)
        queue = self.connect()
        for words, wanted in (("zeros", []), ("short=2", [1, 2]), ("without=2,5", [1, 3]),
                              ("with=4", [1, 2, 3, 4, 5]), ("unsorted", [5, 3, 2, 1]), ("short=3 unsorted", [3, 2, 1])):
            self.ctl(f"fault identify cns=2 {words} once")
            self.assertEqual(queue.nsids(), wanted, words)
        self.assertEqual(queue.nsids(), [1, 2, 3, 5])
        self.ctl("fault identify cns=2 ones once")
        self.assertEqual(queue.identify(2)[0], b"\xff" * 4096)

    def test_identifiers_all_zero(self):
        self.map(1)
        self.ctl("fault identify cns=0,3 nsid=1 zeros")
        queue = self.connect()
        self.assertEqual(queue.identifiers(1), {})
        self.assertEqual(queue.identify(0, 1)[0], bytes(4096))

    def test_groups_and_ranges(self):
        queue = self.connect()
        self.ctl("fault admin fail=0x6 times=2")
        self.assertEqual((queue.keep_alive(), queue.identify(1)[1], queue.keep_alive()), (0x6, 0x6, 0))
        self.ctl("fault identify cns=0-3 nsid=1,7-9 fail=0x6")
        self.assertEqual([queue.identify(0, nsid)[1] for nsid in (1, 6, 7, 9, 10)], [0x6, 0, 0x6, 0x6, 0])
        self.ctl("fault admin-0x81 fail=0x7")
        self.assertEqual((queue.send(0x81)[1], queue.send(0x82)[1]), (0x7, 0x1 | DNR))

    def test_connecting_can_fail(self):
        self.ctl("fault connect on=1 fail=0x182 once")
        self.assertEqual((self.connect(2).status, self.connect(1).status, self.connect(1).status), (0, 0x182, 0))

    def test_abort(self):
        queue = self.connect()
        self.ctl("fault identify cns=1 late=0.5")
        self.ctl("fault identify cns=2 never")
        late, lost = queue.identify(1, wait=False), queue.identify(2, wait=False)
        self.assertEqual(queue.send(0x08, cdw=(late << 16,))[1:], (0, 0))
        self.assertEqual(queue.answer(late)[1], 0x7)
        time.sleep(0.5)
        self.assertTrue(queue.silent(late), "answered once")
        self.assertEqual(queue.send(0x08, cdw=(lost << 16,))[1:], (0, 1))
        self.assertTrue(queue.silent(lost))

    def test_the_trace_counts(self):
        self.map(1, 2)
        first, second = self.connect(1), self.connect(2)
        self.ctl("fault identify cns=3 nsid=2 on=2 never")
        self.ctl("forget")
        first.nsids(), first.identifiers(1), first.log(4, rae=1), second.nsids()
        second.identify(3, 2, wait=False), second.keep_alive()
        for words, wanted in (("identify", 4), ("identify cns=2", 2), ("identify cns=2 on=1", 1),
                              ("get-log lid=4 rae=1", 1),
                              ("get-log rae=0", 0), ("identify cns=3 nsid=2", 1), ("keep-alive", 1), ("any", 6),
                              ("admin on=2", 3), ("io", 0)):
            self.assertEqual(self.count(words), wanted, words)
        self.assertRegex(self.ctl("trace identify nsid=2"),
                         r"^\d+\.\d+ on=2 cntlid=\d+ qid=0 identify cns=0x3 nsid=2 csi=0: ok, fault 1\n$")

    def test_what_is_not_understood_is_refused(self):
        self.map(1)
        before = self.ctl("faults"), self.ctl("namespaces")
        for words in ("nonsense", "", "map", "map x", "map 1", "map 0", "map 2 uuid=12", "map 2-", "map 9-8",
                      "map 2 colour=red", "map 2 private=9", "unmap 2", "unmap 1 loud", "change 2 size=1M",
                      "change 1 uuid=x", "change 1 on=9 size=1M", "ana 1 good", "ana 1", "ana 1 optimized on=9",
                      "notices maybe", "mask smart", "set vs=x", "set x=1", "effects 512 1", "effects 9", "fault",
                      "fault never", "fault identify", "fault identify lid=4 never", "fault identify cns=x never",
                      "fault identify never=1", "fault identify fail", "fault identify fail=x",
                      "fault identify late=-1", "fault identity never", "fault identify cns=2 short=2 twice",
                      "fault identify abort never", "clear 9", "count identify x=1", "close on=3", "faults 1"):
            answer = self.raw_ctl(words)
            self.assertNotEqual(answer.partition("\n")[0], "ok", words)
            self.assertGreater(len(answer), 3, words)
        self.assertEqual((self.ctl("faults"), self.ctl("namespaces")), before)


class Notices(Case):
    NAMESPACE, ANA = 0x040002, 0x0c0302

    def test_sent_to_those_who_want_them(self):
        first, second = self.connect(1), self.connect(2)
        first.set_notices(0x900), second.set_notices(0x800)
        waiting, other = first.wait_for_notice(), second.wait_for_notice()
        self.map(3)
        self.assertEqual(first.answer(waiting)[1:], (0, self.NAMESPACE))
        self.assertTrue(second.silent(other))
        self.ctl("ana 1 non-optimized")
        self.assertEqual(second.answer(other)[2], self.ANA)
        self.assertEqual(struct.unpack_from("<II", first.log(4)[0]), (3, 0))

    def test_not_before_feature_0b_is_set_nor_beyond_what_is_offered(self):
        queue = self.connect()
        waiting = queue.wait_for_notice()
        self.map(1)
        self.ctl("set oaes=0x800")
        queue.set_notices(0x900)
        self.map(2)
        self.assertTrue(queue.silent(waiting))
        self.assertEqual((self.count("notice outcome=unwanted"), self.count("notice type=ns outcome=sent")), (2, 0))
        self.ctl("set oaes=0x100")
        self.map(3)
        self.assertEqual(queue.answer(waiting)[2], self.NAMESPACE)

    def test_silence_leaves_the_log(self):
        queue = self.connect()
        queue.set_notices(0x900)
        waiting = queue.wait_for_notice()
        self.ctl("map 1 silent")
        self.ctl("notices off")
        self.map(2)
        self.ctl("ana 1 inaccessible")
        self.assertTrue(queue.silent(waiting))
        self.assertEqual(self.count("notice outcome=dropped"), 2)
        self.assertEqual(queue.send(0x0a, cdw=(0x0b,))[2], 0x900, "the host cannot tell")
        self.ctl("notices on")
        self.map(3)
        self.assertEqual(queue.answer(waiting)[2], self.NAMESPACE)
        self.assertEqual(struct.unpack_from("<4I", queue.log(4)[0]), (1, 2, 3, 0))
        self.assertEqual(queue.log(4)[0], bytes(4096), "read once")

    def check_masked(self, queue):
        waiting = queue.wait_for_notice()
        self.map(8)
        self.assertTrue(queue.silent(waiting))
        queue.log(4, rae=1)
        self.ctl("unmap 8")
        self.assertTrue(queue.silent(waiting), "read with RAE it stays masked")
        self.assertEqual(queue.log(4, length=1024)[1], 0x2 | DNR)
        self.assertEqual(queue.log(4)[1], 0)
        self.map(9)
        self.assertEqual(queue.answer(waiting)[2], self.NAMESPACE)

    def test_masked_until_the_log_is_read(self):
        queue = self.connect()
        queue.set_notices(0x900)
        waiting = queue.wait_for_notice()
        self.map(1)
        self.assertEqual(queue.answer(waiting)[2], self.NAMESPACE)
        self.check_masked(queue)

    def test_masked_by_command(self):
        first, second = self.connect(1), self.connect(2)
        first.set_notices(0x900), second.set_notices(0x900)
        waiting = second.wait_for_notice()
        self.ctl("mask ns on=1")
        self.assertIn("on=1 cntlid=1 queues=1 notices=0x900 masked=ns host=nqn.host\n", self.ctl("controllers"))
        self.check_masked(first)
        self.assertEqual(second.answer(waiting)[2], self.NAMESPACE)

    def test_a_new_controller_is_not_masked(self):
        queue = self.connect()
        self.ctl("mask ns")
        queue.close()
        queue = self.connect()
        queue.set_notices(0x900)
        waiting = queue.wait_for_notice()
        self.map(1)
        self.assertEqual(queue.answer(waiting)[2], self.NAMESPACE)

    def test_without_an_aer_it_waits_for_one(self):
        queue = self.connect()
        queue.set_notices(0x900)
        self.map(1)
        self.assertEqual(queue.answer(queue.wait_for_notice())[2], self.NAMESPACE)

    def test_how_many_aers(self):
        queue = self.connect()
        for _ in range(4):
            queue.wait_for_notice()
        self.assertEqual(queue.send(0x0c)[1], 0x105 | DNR)


class Logs(Case):
    def groups(self, queue, lsp=0):
        """By group: state, NSIDs."""
        data, status, _ = queue.log(0x0c, rae=1, lsp=lsp)
        self.assertEqual(status, 0)
        found, at = {}, 16
        for _ in range(struct.unpack_from("<H", data, 8)[0]):
            group, count, _, state = struct.unpack_from("<IIQB", data, at)
            found[group] = state, list(struct.unpack_from(f"<{count}I", data, at + 32))
            at += 32 + 4 * count
        return found

    def test_ana(self):
        self.map(1, 2)
        self.ctl("map 3 group=2")
        first, second = self.connect(1), self.connect(2)
        self.assertEqual(self.groups(first), {1: (1, [1, 2]), 2: (1, [3])})
        changes = first.log(0x0c)[0][0]
        self.ctl("ana 2 inaccessible silent on=1")
        self.ctl("ana 7 persistent-loss silent")
        self.assertEqual(self.groups(first), {1: (1, [1, 2]), 2: (3, [3]), 7: (4, [])})
        self.assertEqual(self.groups(first, lsp=1), {1: (1, []), 2: (3, []), 7: (4, [])})
        self.assertEqual(self.groups(second), {1: (1, [1, 2]), 2: (1, [3]), 7: (4, [])})
        self.assertGreater(first.log(0x0c)[0][0], changes)
        whole = first.log(0x0c)[0]
        self.assertEqual(first.log(0x0c, offset=16, length=64)[0], whole[16:80], "in pieces")
        self.assertEqual(self.count("notice"), 0)

    def test_io_through_a_path_that_ana_forbids(self):
        self.map(1)
        admin = self.connect()
        io = self.connect(number=1, cntlid=admin.cntlid)
        for state, status in (("inaccessible", 0x302), ("persistent-loss", 0x301), ("change", 0x303),
                              ("non-optimized", 0)):
            self.ctl(f"ana 1 {state}")
            self.assertEqual(io.read(1, 0, 1)[1], status, state)
        self.ctl("ana 1 inaccessible")
        self.ctl("set cmic=0x03")
        self.assertEqual(io.read(1, 0, 1)[1], 0)
        self.assertEqual(admin.log(0x0c)[1], 0x109 | DNR, "without ANA there is no such log")

    def test_effects(self):
        queue = self.connect()
        effects = lambda: struct.unpack("<1024I", queue.log(0x05)[0])
        self.assertEqual((effects()[0x06], effects()[0x09], effects()[0x14], effects()[256 + 1]), (1, 1, 0, 1))
        self.ctl("effects 0x09 0x20011 on=1")
        self.assertEqual(effects()[0x09], 0x20011)
        self.assertEqual(struct.unpack("<1024I", self.connect(2).log(0x05)[0])[0x09], 1)
        self.ctl("set lpa=0x04")
        self.assertEqual(queue.log(0x05)[1], 0x109 | DNR)
        self.assertEqual(queue.identify(1)[0][261], 0x04)

    def test_health(self):
        data, status, _ = self.connect().log(0x02, length=512)
        self.assertEqual((status, struct.unpack_from("<H", data, 1)[0]), (0, 300))


if __name__ == "__main__":
    unittest.main()
