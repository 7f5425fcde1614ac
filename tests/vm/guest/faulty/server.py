# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ports and connections: one connection is one queue. Every command passes Queue.handle, where faults strike."""

import asyncio
import os
import struct
import sys

from . import control, wire
from .controller import Controller
from .subsystem import Subsystem, status_text
from .wire import Reply, Request, refused


class Broken(Exception):
    """The host sent what no host sends; its connection is closed."""


class Queue:
    def __init__(self, port, reader, writer):
        self.port, self.subsystem = port, port.subsystem
        self.reader, self.writer = reader, writer
        self.controller = None          # until Connect
        self.number = self.size = self.head = 0
        self.held = {}                  # by command: the timer of a late answer; None when it will never come
        self.transfers = {}             # by tag: the request, and its data so far
        self.last_tag = 0

    async def serve(self):
        try:
            kind, _ = await self.pdu()
            if kind != wire.ICREQ:
                raise Broken(f"PDU {kind} before ICReq")
            self.writer.write(wire.ic_response())
            while True:
                kind, body = await self.pdu()
                if kind == wire.COMMAND:
                    self.command(body)
                elif kind == wire.H2C_DATA:
                    self.data(body)
                elif kind == wire.H2C_TERM:
                    raise Broken("the host ended the connection by H2CTermReq")
                else:
                    raise Broken(f"PDU {kind}")
                await self.writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        except Broken as broken:
            complain(f"port {self.port.number} queue {self.number}: {broken}")
        except Exception as error:
            # In one line, which a failed scenario shows; asyncio prints where it was.
            complain(f"a mistake of its own: {error!r}")
            raise
        finally:
            self.end()

    async def pdu(self):
        """Its type, and what follows the common header."""
        header = await self.reader.readexactly(wire.HEADER.size)
        kind, _, header_length, _, length = wire.HEADER.unpack(header)
        if not header_length <= length <= 72 + wire.MAX_DATA:
            raise Broken(f"PDU {kind} of {length} bytes")
        return kind, await self.reader.readexactly(length - wire.HEADER.size)

    def command(self, body):
        entry = body[:64]
        if len(entry) < 64:
            raise Broken("a command shorter than an entry")
        request = Request(entry, body[64:], self.number)
        if self.size:
            self.head = (self.head + 1) % self.size
        if not request.sends_data:
            self.handle(request)
            return
        if request.length > wire.MAX_DATA:
            self.complete(request.cid, refused(wire.INVALID_FIELD))
            return
        self.last_tag = (self.last_tag + 1) & 0xffff
        self.transfers[self.last_tag] = request, bytearray()
        self.writer.write(wire.ready_to_transfer(request.cid, self.last_tag, request.length))

    def data(self, body):
        _, tag, offset, length = wire.TRANSFER.unpack_from(body)
        if tag not in self.transfers:
            raise Broken(f"data that nobody asked for, tag {tag}")
        request, data = self.transfers[tag]
        if offset != len(data) or len(body) - wire.TRANSFER.size != length:
            raise Broken("data in disorder")
        data += body[wire.TRANSFER.size:]
        if len(data) >= request.length:
            del self.transfers[tag]
            request.data = bytes(data)
            self.handle(request)

    def handle(self, request):
        """One command that is complete: executed, noted, struck by faults, answered."""
        if self.controller is None and request.name != "connect":
            raise Broken(f"{request} before Connect")
        faults = {name: fault for name, fault in self.subsystem.faults.items() if fault.due(request, self.port.number)}
        if any(fault.instead for fault in faults.values()):
            reply = Reply()
        elif request.name == "connect":
            reply = self.connect(request)
        else:
            reply = self.controller.execute(request)
        outcome = "waits"
        if reply:
            for fault in faults.values():
                fault.strike(reply)
            outcome = status_text(reply.status)
        if faults:
            outcome += ", fault " + ", ".join(map(str, faults))
        self.subsystem.note(self.port.number, self.cntlid, request, outcome)
        if reply:
            self.answer(request.cid, reply)

    def answer(self, cid, reply):
        if reply.close:
            self.writer.close()
        elif reply.lost:
            self.held[cid] = None
        elif reply.delay:
            self.held[cid] = asyncio.get_running_loop().call_later(reply.delay, self.complete, cid, reply)
        else:
            self.complete(cid, reply)

    def complete(self, cid, reply):
        self.held.pop(cid, None)
        if self.writer.is_closing():
            return
        if reply.status == wire.SUCCESS:
            # Not writelines: Python 3.13 refuses that without any.
            self.writer.write(b"".join(wire.data_pdus(cid, reply.data)))
        self.writer.write(wire.response(cid, self.number, self.head, reply.result, reply.status))

    def abort(self, cid):
        """A command whose answer is late ends at once. One that is never answered is not even ended so."""
        if self.held.get(cid) is None:
            return False
        self.held[cid].cancel()
        self.complete(cid, Reply(status=wire.ABORT_REQUESTED))
        return True

    def connect(self, request):
        number, size = struct.unpack_from("<HH", request.entry, 42)
        if len(request.data) < 1024 or self.controller:
            return refused(wire.CONNECT_INVALID)
        cntlid = struct.unpack_from("<H", request.data, 16)[0]
        nqn, hostnqn = (request.data[at:at + 256].split(b"\0")[0].decode(errors="replace") for at in (256, 512))
        if nqn != self.subsystem.nqn:
            return refused(wire.CONNECT_INVALID)
        if number == 0:
            keep_alive = struct.unpack_from("<I", request.entry, 48)[0]
            self.controller = Controller(self.subsystem, self.port.number, hostnqn, keep_alive)
            self.subsystem.controllers.append(self.controller)
        else:
            found = [c for c in self.port.controllers() if c.cntlid == cntlid and number not in c.queues]
            if not found:
                return refused(wire.CONNECT_INVALID)
            self.controller = found[0]
        self.number, self.size = number, size + 1
        self.controller.queues[number] = self
        return Reply(result=self.controller.cntlid)

    @property
    def cntlid(self):
        return self.controller.cntlid if self.controller else 0

    def end(self):
        """The admin queue's end is the controller's."""
        self.writer.close()
        self.port.queues.discard(self)
        for timer in self.held.values():
            if timer:
                timer.cancel()
        self.held.clear()
        controller = self.controller
        if controller and controller.queues.get(self.number) is self:
            del controller.queues[self.number]
            if self.number == 0:
                self.subsystem.controllers.remove(controller)
                for queue in controller.queues.values():
                    queue.writer.close()


class Port:
    def __init__(self, subsystem, number, address):
        self.subsystem, self.number = subsystem, number
        host, _, service = address.rpartition(":")
        self.host, self.service = host, int(service)
        self.server = None
        self.queues = set()

    async def open(self):
        if self.server:
            return
        self.server = await asyncio.start_server(self._accepted, self.host, self.service)
        # 0 means any; from now on it is this one.
        self.service = self.server.sockets[0].getsockname()[1]

    def controllers(self):
        return [c for c in self.subsystem.controllers if c.port == self.number]

    async def _accepted(self, reader, writer):
        queue = Queue(self, reader, writer)
        self.queues.add(queue)
        await queue.serve()

    def close(self):
        """Nobody can connect any more, and whoever is connected loses it."""
        if self.server:
            self.server.close()
            self.server = None
        self.drop()

    def drop(self):
        for queue in self.queues:
            queue.writer.close()


def complain(text):
    print(f"faulty NVMe target: {text}", file=sys.stderr, flush=True)


async def serve(nqn, path, addresses):
    subsystem = Subsystem(nqn)
    for named in addresses:
        number, _, address = named.partition("=")
        port = Port(subsystem, int(number), address)
        await port.open()
        subsystem.ports[port.number] = port
    # Under its name only when somebody listens: whoever sees the socket may use it.
    temporary = f"{path}.new"
    server = await asyncio.start_unix_server(lambda *streams: control.answer(subsystem, *streams), temporary)
    os.rename(temporary, path)
    async with server:
        await server.serve_forever()
