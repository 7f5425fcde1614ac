# SPDX-License-Identifier: LGPL-2.1-or-later
"""NVMe/TCP as bytes: PDUs, commands, completions; and the names that commands have in faults and in the trace."""

import struct

# PDU types and flags: NVMe/TCP transport specification, 3.6.2.
ICREQ, ICRESP, H2C_TERM, C2H_TERM, COMMAND, RESPONSE, H2C_DATA, C2H_DATA, R2T = 0, 1, 2, 3, 4, 5, 6, 7, 9
DATA_LAST = 0x04

HEADER = struct.Struct("<BBBBI")        # type, flags, length of the header, offset of the data, length of all
TRANSFER = struct.Struct("<HHII4x")     # after it in data and R2T PDUs: command, transfer tag, offset, length
COMPLETION = struct.Struct("<QHHHH")    # result, head of the queue, queue, command, status << 1
COMMAND_LENGTH = 72                     # header and submission queue entry
MAX_DATA = 0x20000                      # bytes in one data PDU

# Status codes, type in bits 8 to 10, as the kernel and nvme-cli print them.
SUCCESS = 0x000
INVALID_OPCODE = 0x001
INVALID_FIELD = 0x002
ABORT_REQUESTED = 0x007
INVALID_NAMESPACE = 0x00b
LBA_OUT_OF_RANGE = 0x080
AER_LIMIT = 0x105
INVALID_LOG_PAGE = 0x109
CONNECT_INVALID = 0x182
ANA_STATUS = {"persistent-loss": 0x301, "inaccessible": 0x302, "change": 0x303}
DNR = 0x4000                            # do not retry

FABRICS = 0x7f
FABRICS_NAMES = {0x00: "property-set", 0x01: "connect", 0x04: "property-get"}
ADMIN_NAMES = {0x02: "get-log", 0x06: "identify", 0x08: "abort", 0x09: "set-features", 0x0a: "get-features",
               0x0c: "aer", 0x18: "keep-alive"}
IO_NAMES = {0x00: "flush", 0x01: "write", 0x02: "read"}

# What a command can be chosen by, besides the port and the queue.
FIELDS = {
    "identify": ("cns", "nsid", "csi"),
    "get-log": ("lid", "rae", "lsp", "nsid"),
    "get-features": ("fid", "nsid"),
    "set-features": ("fid", "value", "nsid"),
    "property-get": ("offset",),
    "property-set": ("offset", "value"),
    "connect": (),
    "abort": (),
    "aer": (),
    "keep-alive": (),
    "flush": ("nsid",),
    "read": ("nsid", "slba", "blocks"),
    "write": ("nsid", "slba", "blocks"),
}
GROUPS = {"admin": tuple(ADMIN_NAMES.values()), "io": tuple(IO_NAMES.values()),
          "fabrics": tuple(FABRICS_NAMES.values())}


class Request:
    """One command, as it came. Data that the host sends with it is in `data` when it is executed."""

    def __init__(self, entry, data, queue):
        self.entry = entry
        self.data = data
        self.queue = queue
        self.opcode, self.cid, self.nsid = entry[0], *struct.unpack_from("<xxHI", entry)
        self.length = struct.unpack_from("<I", entry, 32)[0]    # of the data that its descriptor names
        self.in_capsule = entry[39] == 0x01
        self.cdw10, self.cdw11, self.cdw12, self.cdw13 = struct.unpack_from("<4I", entry, 40)
        self.name, self.group = self._name()
        if self.name == "connect":
            self.queue = self.cdw10 >> 16       # the one that it makes
        values = {"cns": self.cdw10 & 0xff, "lid": self.cdw10 & 0xff, "fid": self.cdw10 & 0xff, "nsid": self.nsid,
                  "csi": self.cdw11 >> 24, "rae": self.cdw10 >> 15 & 1, "lsp": self.cdw10 >> 8 & 0x7f,
                  "value": self.cdw12 if self.opcode == FABRICS else self.cdw11, "offset": self.cdw11,
                  "slba": self.slba, "blocks": self.blocks}
        self.fields = {field: values[field] for field in FIELDS.get(self.name, ())}

    def _name(self):
        if self.opcode == FABRICS:
            return FABRICS_NAMES.get(self.entry[4], f"fabrics-{self.entry[4]:#04x}"), "fabrics"
        names, group = (IO_NAMES, "io") if self.queue else (ADMIN_NAMES, "admin")
        return names.get(self.opcode, f"{group}-{self.opcode:#04x}"), group

    @property
    def slba(self):
        return self.cdw11 << 32 | self.cdw10

    @property
    def blocks(self):
        return (self.cdw12 & 0xffff) + 1

    @property
    def sends_data(self):
        """The host sends it after the command, when asked by R2T."""
        return self.opcode != FABRICS and self.opcode & 3 == 1 and self.length and not self.in_capsule

    def __str__(self):
        # Set numbers that administrators know in hexadecimal are printed so.
        return " ".join([self.name, *(f"{field}={value:#x}" if field in ("value", "offset", "lid", "fid", "cns")
                                      else f"{field}={value}" for field, value in self.fields.items())])


class Reply:
    """What goes back: `data`, then the completion. Faults change it on its way out."""

    def __init__(self, data=b"", result=0, status=SUCCESS):
        self.data = data
        self.result = result
        self.status = status
        self.delay = 0          # seconds
        self.lost = False       # never sent
        self.close = False      # the connection is closed instead


def refused(status):
    return Reply(status=status | DNR)


def ic_response():
    # No digests: the kernel does not ask for them unless told to.
    return HEADER.pack(ICRESP, 0, 128, 0, 128) + struct.pack("<HBBI", 0, 0, 0, MAX_DATA).ljust(120, b"\0")


def ready_to_transfer(cid, tag, length):
    return HEADER.pack(R2T, 0, 24, 0, 24) + TRANSFER.pack(cid, tag, 0, length)


def data_pdus(cid, data):
    for offset in range(0, len(data), MAX_DATA):
        piece = data[offset:offset + MAX_DATA]
        flags = DATA_LAST if offset + len(piece) == len(data) else 0
        yield HEADER.pack(C2H_DATA, flags, 24, 24, 24 + len(piece)) + TRANSFER.pack(cid, 0, offset, len(piece)) + piece


def response(cid, queue, head, result, status):
    return HEADER.pack(RESPONSE, 0, 24, 0, 24) + COMPLETION.pack(result, head, queue, cid, status << 1)
