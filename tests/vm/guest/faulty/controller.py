# SPDX-License-Identifier: LGPL-2.1-or-later
"""One controller: a host's association through one port. Executes commands; knows nothing of faults."""

from . import pages, wire
from .subsystem import BLOCK
from .wire import Reply, refused

# Registers: offset, bytes.
CAP, VS, CC, CSTS = 0x00, 0x08, 0x14, 0x1c
CC_ENABLE, CC_SHUTDOWN = 0x1, 0xc000
CSTS_READY, CSTS_SHUTDOWN_COMPLETE = 0x1, 0x8

FEATURE_QUEUES, FEATURE_NOTICES, FEATURE_KEEP_ALIVE = 0x07, 0x0b, 0x0f

# Notices: the bit of OAES and of feature 0Bh, and what an AER is completed with: type, information << 8, log << 16.
NOTICES = {"ns": (1 << 8, 0x040002), "ana": (1 << 11, 0x0c0302)}
NOTICE_OF_LOG = {pages.LOG_CHANGED: "ns", pages.LOG_ANA: "ana"}


class Controller:
    def __init__(self, subsystem, port, hostnqn, keep_alive):
        self.subsystem, self.port, self.hostnqn = subsystem, port, hostnqn
        self.cntlid = subsystem.next_cntlid()
        self.queues = {}                # by number
        self.cc = self.csts = 0
        self.features = {FEATURE_QUEUES: 0, FEATURE_NOTICES: 0, FEATURE_KEEP_ALIVE: keep_alive}
        self.waiting = []               # AERs
        self.pending = []               # notices that no AER was there for
        self.masked = set()             # notices sent whose log was not read since
        self.changed = set()            # NSIDs, for log 04h

    def setting(self, name):
        return self.subsystem.setting(name, self.port)

    # --- commands ---------------------------------------------------------------------------------------------------

    def execute(self, request):
        """The reply, or None for an AER that waits."""
        if request.group == "io":
            return self._io(request)
        command = getattr(self, "_" + request.name.replace("-", "_"), None)
        return command(request) if command else refused(wire.INVALID_OPCODE)

    def _io(self, request):
        if request.name not in wire.FIELDS:
            return refused(wire.INVALID_OPCODE)
        space = self.subsystem.namespace(request.nsid, self.port)
        if space is None:
            return refused(wire.INVALID_NAMESPACE)
        state = self.subsystem.ana_state(space.get("group", self.port), self.port)
        if state in wire.ANA_STATUS and self.setting("cmic") & 0x08:
            return Reply(status=wire.ANA_STATUS[state])
        if request.name == "flush":
            return Reply()
        if request.slba + request.blocks > space.blocks(self.port):
            return refused(wire.LBA_OUT_OF_RANGE)
        if request.name == "read":
            return Reply(space.read(request.slba * BLOCK, request.blocks * BLOCK))
        if len(request.data) != request.blocks * BLOCK:
            return refused(wire.INVALID_FIELD)
        space.write(request.slba * BLOCK, request.data)
        return Reply()

    def _property_get(self, request):
        css = 1 << 37 | (1 << 43 if self.setting("csi") else 0)
        # MQES, contiguous queues, and 15 times 500 ms to become ready.
        registers = {CAP: css | 15 << 24 | 1 << 16 | pages.MAX_COMMANDS - 1, VS: self.setting("vs"), CC: self.cc,
                     CSTS: self.csts}
        if request.cdw11 not in registers:
            return refused(wire.INVALID_FIELD)
        return Reply(result=registers[request.cdw11])

    def _property_set(self, request):
        if request.cdw11 != CC:
            return refused(wire.INVALID_FIELD)
        self.cc = request.cdw12
        self.csts = CSTS_READY if self.cc & CC_ENABLE else 0
        if self.cc & CC_SHUTDOWN:
            self.csts |= CSTS_SHUTDOWN_COMPLETE
        return Reply()

    def _identify(self, request):
        cns = request.cdw10 & 0xff
        # The version that brought it; what a controller is too old for, it refuses.
        since, answer = {
            0x00: (0x10000, self._identify_namespace),
            0x01: (0x10000, lambda _: Reply(pages.identify_controller(self))),
            0x02: (0x10100, self._active_list),
            0x03: (0x10300, self._descriptors),
            0x05: (0x20000, self._nothing_more),
            0x06: (0x10400, self._nothing_more),
            0x08: (0x20000, self._independent_namespace),
        }.get(cns, (None, None))
        if since is None or self.setting("vs") < since:
            return refused(wire.INVALID_FIELD)
        return answer(request)

    def _space(self, request):
        return self.subsystem.namespace(request.nsid, self.port)

    def _identify_namespace(self, request):
        space = self._space(request)
        if space:
            return Reply(pages.identify_namespace(space, self.port))
        # An inactive NSID has zeros; one that can never be is refused.
        valid = 0 < request.nsid <= self.setting("nn")
        return Reply(bytes(pages.PAGE)) if valid else refused(wire.INVALID_NAMESPACE)

    def _active_list(self, request):
        if request.nsid >= 0xfffffffe:
            return refused(wire.INVALID_NAMESPACE)
        nsids = [space.nsid for space in self.subsystem.listed(self.port) if space.nsid > request.nsid]
        return Reply(pages.nsid_list(nsids[:pages.PAGE // 4]))

    def _descriptors(self, request):
        space = self._space(request)
        if space is None:
            return refused(wire.INVALID_NAMESPACE)
        return Reply(pages.descriptors(space, self.port, self.setting("csi")))

    def _independent_namespace(self, request):
        space = self._space(request)
        return Reply(pages.independent_namespace(space, self.port)) if space else refused(wire.INVALID_NAMESPACE)

    def _nothing_more(self, request):
        """CNS 05h, 06h: what is particular to the NVM command set. Nothing is."""
        return Reply(bytes(pages.PAGE)) if request.cdw11 >> 24 == 0 else refused(wire.INVALID_FIELD)

    def _get_log(self, request):
        lid, rae, lsp = request.fields["lid"], request.fields["rae"], request.fields["lsp"]
        length = ((request.cdw11 & 0xffff) << 16 | request.cdw10 >> 16) * 4 + 4
        offset = request.cdw13 << 32 | request.cdw12
        if lid == 0x01:
            log = bytes(64)
        elif lid == 0x02:
            log = pages.smart_log()
        elif lid == pages.LOG_CHANGED:
            # More than it holds: "look at all of them".
            log = pages.nsid_list(sorted(self.changed) if len(self.changed) <= 1024 else [0xffffffff])
            # As the kernel's target: all of it or nothing.
            if length != len(log) or offset:
                return refused(wire.INVALID_FIELD)
        elif lid == 0x05 and self.setting("lpa") & 0x02:
            log = pages.effects_log(self.subsystem.effects[self.port])
        elif lid == pages.LOG_ANA and self.setting("cmic") & 0x08:
            log = pages.ana_log(self.subsystem, self.port, lsp & 1)
        else:
            return refused(wire.INVALID_LOG_PAGE)
        if not rae:
            self._log_was_read(lid)
        return Reply(log[offset:offset + length].ljust(length, b"\0"))

    def _log_was_read(self, lid):
        self.masked.discard(NOTICE_OF_LOG.get(lid))
        if lid == pages.LOG_CHANGED:
            self.changed.clear()

    def _get_features(self, request):
        fid, select = request.fields["fid"], request.cdw10 >> 8 & 7
        if fid not in self.features:
            return refused(wire.INVALID_FIELD)
        # Current, default, saved, capabilities: it can be changed.
        return Reply(result=(self.features[fid], 0, self.features[fid], 4)[select] if select < 4 else 0)

    def _set_features(self, request):
        fid = request.fields["fid"]
        if fid not in self.features:
            return refused(wire.INVALID_FIELD)
        self.features[fid] = request.cdw11
        # The number of queues is answered with how many there are: as many as wanted.
        return Reply(result=request.cdw11 if fid == FEATURE_QUEUES else 0)

    def _keep_alive(self, _):
        # A controller does not end when it stays out: the machine may be slow, and its end is seen by the connection's.
        return Reply()

    def _abort(self, request):
        queue = self.queues.get(request.cdw10 & 0xffff)
        aborted = queue is not None and queue.abort(request.cdw10 >> 16)
        return Reply(result=0 if aborted else 1)

    def _aer(self, request):
        if len(self.waiting) > self.setting("aerl"):
            return refused(wire.AER_LIMIT)
        if self.pending:
            return Reply(result=NOTICES[self.pending.pop(0)][1])
        self.waiting.append(request.cid)
        return None

    # --- notices ----------------------------------------------------------------------------------------------------

    def notify(self, kind):
        """Sends a notice, if the host wants it, has read the log since the last, and none is being dropped."""
        bit, result = NOTICES[kind]
        if not self.features[FEATURE_NOTICES] & self.setting("oaes") & bit:
            outcome = "unwanted"
        elif self.port in self.subsystem.notices_off:
            outcome = "dropped"
        elif kind in self.masked:
            outcome = "masked"
        else:
            self.masked.add(kind)
            outcome = "sent" if self.waiting else "pending"
            if self.waiting:
                self.queues[0].complete(self.waiting.pop(0), Reply(result=result))
            else:
                self.pending.append(kind)
        self.subsystem.note_notice(self.port, self.cntlid, kind, outcome)
