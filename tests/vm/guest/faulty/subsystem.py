# SPDX-License-Identifier: LGPL-2.1-or-later
"""What there is: the subsystem, its namespaces, ANA states and settings, each alike for all ports or not."""

import collections
import time

from . import wire
from .words import Bad, default_uuid, identifier, number, size

BLOCK = 512
CHUNK = 65536               # bytes; what was never written takes no memory
TRACE_LENGTH = 200000       # commands

ANA_STATES = {"optimized": 0x1, "non-optimized": 0x2, "inaccessible": 0x3, "persistent-loss": 0x4, "change": 0xf}

# What `map` and `change` take.
PROPERTIES = {"uuid": identifier(16), "nguid": identifier(16), "eui64": identifier(8), "csi": number, "size": size,
              "group": number}


def version(text):
    major, _, minor = text.partition(".")
    return number(major) << 16 | number(minor or "0") << 8


# What `set` takes: a converter, and the value to begin with. Fields of Identify Controller, unless said.
SETTINGS = {
    "vs": (version, version("1.4")),
    "csi": (number, 1),             # CAP.CSS bit 43: the host may look at command sets, and needs their descriptor
    "cmic": (number, 0x0b),         # several ports, several controllers, ANA
    "oaes": (number, 0x900),        # notices offered: namespace attribute, ANA
    "lpa": (number, 0x06),          # commands-supported log, offsets in logs
    "cntrltype": (number, 1),
    "nn": (number, 1024),
    "mnan": (number, 1024),
    "groups": (number, 32),         # ANAGRPMAX, NANAGRPID
    "mdts": (number, 5),
    "aerl": (number, 3),
}


class Namespace:
    """One NSID. `port`: it is private to it, else None. Properties may differ between ports."""

    def __init__(self, nsid, port, properties):
        self.nsid, self.port = nsid, port
        self.properties = {"uuid": default_uuid(nsid), "nguid": None, "eui64": None, "csi": 0, "size": 64 << 20,
                           "group": 1, **properties}
        self.differing = collections.defaultdict(dict)
        self.chunks = {}

    def get(self, name, port):
        return self.differing[port].get(name, self.properties[name])

    def change(self, properties, ports):
        if ports is None:
            self.properties.update(properties)
        for port in ports or ():
            self.differing[port].update(properties)

    def blocks(self, port):
        return self.get("size", port) // BLOCK

    def read(self, offset, length):
        data = bytearray()
        while length:
            start = offset % CHUNK
            piece = min(length, CHUNK - start)
            chunk = self.chunks.get(offset // CHUNK)
            data += chunk[start:start + piece] if chunk else bytes(piece)
            offset, length = offset + piece, length - piece
        return bytes(data)

    def write(self, offset, data):
        while data:
            start = offset % CHUNK
            piece = min(len(data), CHUNK - start)
            self.chunks.setdefault(offset // CHUNK, bytearray(CHUNK))[start:start + piece] = data[:piece]
            offset, data = offset + piece, data[piece:]


class Subsystem:
    def __init__(self, nqn):
        self.nqn = nqn
        self.namespaces = {}            # (NSID, port it is private to or None)
        self.ports = {}
        self.controllers = []           # in the order in which they connected
        self.last_cntlid = 0
        self.settings = collections.defaultdict(dict)       # by port
        self.effects = collections.defaultdict(dict)        # by port: bits by opcode
        self.ana = collections.defaultdict(dict)            # by port: state by group
        self.ana_changes = 0
        self.notices_off = set()        # ports
        self.faults = {}                # by the number that `fault` said
        self.trace = collections.deque(maxlen=TRACE_LENGTH)

    def setting(self, name, port):
        return self.settings[port].get(name, SETTINGS[name][1])

    def namespace(self, nsid, port):
        return self.namespaces.get((nsid, port)) or self.namespaces.get((nsid, None))

    def listed(self, port):
        """The namespaces attached to that port's controllers, by NSID."""
        return sorted((space for space in self.namespaces.values() if space.port in (None, port)),
                      key=lambda space: space.nsid)

    def ana_state(self, group, port):
        return self.ana[port].get(group, "optimized")

    def ana_groups(self, port):
        """Those that have namespaces, or a state that somebody set."""
        groups = {group: [] for group in self.ana[port]}
        for space in self.listed(port):
            groups.setdefault(space.get("group", port), []).append(space.nsid)
        return dict(sorted(groups.items()))

    def chosen_ports(self, on):
        """All ports, or those that `on` accepts."""
        ports = [port for port in self.ports if on is None or on(port)]
        if not ports:
            raise Bad("on=: no such port")
        return ports

    def next_cntlid(self):
        # Never one again: the host may not have let go of the old controller.
        self.last_cntlid += 1
        return self.last_cntlid

    def note(self, port, cntlid, request, outcome):
        """Into the trace, from which commands are counted."""
        fields = {**request.fields, "on": port, "qid": request.queue}
        self.trace.append(Entry(request.name, request.group, fields, cntlid, f"{request}: {outcome}"))

    def note_notice(self, port, cntlid, kind, outcome):
        fields = {"type": kind, "on": port, "qid": 0, "outcome": outcome}
        self.trace.append(Entry("notice", "notice", fields, cntlid, f"notice {kind}: {outcome}"))


class Entry:
    """One line of the trace. Its time is that of the kernel's log and of /proc/uptime."""

    def __init__(self, name, group, fields, cntlid, text):
        self.time = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.name, self.group, self.fields, self.cntlid, self.text = name, group, fields, cntlid, text

    def __str__(self):
        return f"{self.time:.3f} on={self.fields['on']} cntlid={self.cntlid} qid={self.fields['qid']} {self.text}"


def status_text(status):
    return "ok" if status == wire.SUCCESS else f"status {status:#x}"
