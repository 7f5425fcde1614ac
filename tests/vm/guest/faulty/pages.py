# SPDX-License-Identifier: LGPL-2.1-or-later
"""Identify data and log pages, as they are without faults. Offsets: NVMe base specification 2.0."""

import struct
import zlib

from .subsystem import ANA_STATES

PAGE = 4096
LOG_CHANGED = 0x04
LOG_ANA = 0x0c
MAX_COMMANDS = 128          # of one queue
IN_CAPSULE = 4096           # bytes of data that the host may send in one PDU with its command
SUPPORTED_ADMIN = (0x02, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x18)
SUPPORTED_IO = (0x00, 0x01, 0x02)


def text(string, length):
    return string.encode()[:length].ljust(length)


class Page(bytearray):
    """4,096 bytes, filled by offset."""

    def __init__(self):
        super().__init__(PAGE)

    def put(self, offset, layout, *values):
        struct.pack_into(f"<{layout}", self, offset, *values)


def identify_controller(controller):
    get = controller.setting
    page = Page()
    serial = f"{zlib.crc32(controller.subsystem.nqn.encode()):08x}"
    page.put(4, "20s40s8s", text(serial, 20), text("nsheal faulty target", 40), text("1", 8))
    page.put(76, "BBHI", get("cmic"), get("mdts"), controller.cntlid, get("vs"))
    page.put(92, "I", get("oaes"))
    page.put(111, "B", get("cntrltype"))
    page.put(258, "BBBB", 3, get("aerl"), 0x03, get("lpa"))     # ACL, AERL, FRMW: one slot, read-only
    page.put(266, "HH", 343, 353)           # temperatures, Kelvin: the kernel's hwmon asks
    page.put(320, "H", 10)                  # KAS, 100 ms; the kernel refuses 0
    page.put(342, "BBII", 10, 0x1f, get("groups"), get("groups"))       # ANATT in s; ANACAP: all states
    page.put(512, "BBHI", 0x66, 0x44, MAX_COMMANDS, get("nn"))
    page.put(536, "II", 1 | 1 << 20, get("mnan"))       # SGLS: SGLs, and offsets in capsules
    page.put(768, "256s", controller.subsystem.nqn.encode())
    page.put(1792, "IIHBB", (64 + IN_CAPSULE) // 16, 1, 0, 0, 1)        # IOCCSZ, IORCSZ in 16 bytes; MSDBD
    return bytes(page)


def identify_namespace(space, port):
    page = Page()
    blocks = space.blocks(port)
    page.put(0, "QQQ", blocks, blocks, blocks)
    page.put(30, "B", 0 if space.port else 1)       # NMIC: shared
    page.put(92, "I", space.get("group", port))
    page.put(104, "16s8s", space.get("nguid", port) or b"", space.get("eui64", port) or b"")
    page.put(128, "HBB", 0, 9, 0)                   # one format, of blocks of 2^9 bytes
    return bytes(page)


def independent_namespace(space, port):
    page = Page()
    page.put(1, "B", 0 if space.port else 1)
    page.put(4, "I", space.get("group", port))
    page.put(14, "B", 1)                            # NSTAT: ready
    return bytes(page)


def descriptors(space, port, csi):
    """CNS 03h. An identifier that is None has no descriptor; one that is zero has."""
    found = [(1, space.get("eui64", port)), (2, space.get("nguid", port)), (3, space.get("uuid", port))]
    if csi:
        found.append((4, bytes([space.get("csi", port)])))
    data = b"".join(struct.pack("<BB2x", kind, len(value)) + value for kind, value in found if value is not None)
    return data.ljust(PAGE, b"\0")


def nsid_list(nsids):
    """At most 1,024 of them."""
    return struct.pack(f"<{len(nsids)}I", *nsids).ljust(PAGE, b"\0")


def smart_log():
    page = Page()
    page.put(0, "BHBB", 0, 300, 100, 10)            # warnings, temperature in Kelvin, spare and its threshold in %
    return bytes(page[:512])


def effects_log(overridden):
    """Opcodes of admin commands from 0, of I/O commands from 256 on; bit 0: supported."""
    effects = dict.fromkeys((*SUPPORTED_ADMIN, *(256 + opcode for opcode in SUPPORTED_IO)), 1)
    effects.update(overridden)
    page = Page()
    for opcode, bits in effects.items():
        page.put(4 * opcode, "I", bits)
    return bytes(page)


def ana_log(subsystem, port, groups_only):
    groups = subsystem.ana_groups(port)
    log = struct.pack("<QH6x", subsystem.ana_changes, len(groups))
    for group, nsids in groups.items():
        nsids = [] if groups_only else nsids
        log += struct.pack("<IIQB15x", group, len(nsids), subsystem.ana_changes,
                           ANA_STATES[subsystem.ana_state(group, port)])
        log += struct.pack(f"<{len(nsids)}I", *nsids)
    return log
