# SPDX-License-Identifier: LGPL-2.1-or-later
"""Faults: which commands, what happens to them, how often. A new one is a function below with @action above it.

An action gets the reply as it would have gone out, and the value written after its name, converted.
"""

import struct

from . import wire
from .words import Bad, number, number_list, numbers, seconds

ACTIONS = {}


def action(convert=None, instead=False):
    """Registers the function under its name. `instead`: the command is not executed at all."""
    def register(function):
        function.convert, function.instead = convert, instead
        ACTIONS[function.__name__.strip("_").replace("_", "-")] = function
        return function
    return register


@action(instead=True)
def never(reply, _):
    """no answer, ever"""
    reply.lost = True


@action(number, instead=True)
def fail(reply, status):
    """=STATUS: refused with it, as nvme-cli prints it: 0x2 Invalid Field, 0x6 Internal Error; 0x4006: do not retry"""
    reply.status = status


@action(instead=True)
def close(reply, _):
    """the connection is closed in place of an answer"""
    reply.close = True


@action(seconds)
def late(reply, delay):
    """=SECONDS: the answer of now, so much later; what comes after it is not held up"""
    reply.delay = delay


@action()
def zeros(reply, _):
    """the data is all zero: an empty list, no identifiers, capacity 0"""
    reply.data = bytes(len(reply.data))


@action()
def ones(reply, _):
    """every bit of the data is set"""
    reply.data = b"\xff" * len(reply.data)


@action(number)
def short(reply, count):
    """=N: a list of NSIDs ends after N"""
    put_list(reply, get_list(reply)[:count])


@action(number_list)
def without(reply, absent):
    """=NSID,...: a list of NSIDs lacks these"""
    put_list(reply, [nsid for nsid in get_list(reply) if nsid not in absent])


@action(number_list)
def with_(reply, more):
    """=NSID,...: a list of NSIDs has these too"""
    put_list(reply, sorted({*get_list(reply), *more}))


@action()
def unsorted(reply, _):
    """a list of NSIDs is in descending order"""
    put_list(reply, get_list(reply)[::-1])


def get_list(reply):
    """A list of NSIDs ends at the first zero."""
    entries = struct.unpack(f"<{len(reply.data) // 4}I", reply.data)
    return list(entries[:entries.index(0)] if 0 in entries else entries)


def put_list(reply, entries):
    length = len(reply.data)
    reply.data = struct.pack(f"<{len(entries)}I", *entries).ljust(length, b"\0")[:length]


NOTICE_FIELDS = ("type", "outcome")     # the only ones that are words


class Match:
    """Chooses commands: a name, a group or `any`, and fields."""

    def __init__(self, words):
        self.tests, self.name, fields = {}, None, ()
        for word in words:
            key, equals, value = word.partition("=")
            if equals and (key in ("on", "qid") or key in fields):
                self.tests[key] = value.__eq__ if key in NOTICE_FIELDS else numbers(value)
            elif not equals and self.name is None:
                self.name, fields = word, self._fields(word)
            else:
                raise Bad(f"{word}: not understood")
        if self.name is None:
            raise Bad("which command? identify, get-log, ... or admin, io, fabrics, any")

    @staticmethod
    def _fields(name):
        """Those that every command of that name or group may have; a mistaken one is refused."""
        if name in wire.FIELDS:
            return wire.FIELDS[name]
        if name in wire.GROUPS:
            return {field for member in wire.GROUPS[name] for field in wire.FIELDS[member]}
        if name == "any":
            return {field for fields in wire.FIELDS.values() for field in fields}
        if name == "notice":
            return NOTICE_FIELDS         # in the trace only
        # admin-0x14: a command that has no name here.
        if name.partition("-")[0] in wire.GROUPS:
            return ()
        raise Bad(f"{name}: no such command")

    def fits(self, name, group, fields):
        if self.name not in (name, group, "any"):
            return False
        return all(key in fields and test(fields[key]) for key, test in self.tests.items())


class Fault:
    """One rule. Its actions happen in the order in which they were written."""

    def __init__(self, words):
        self.text = " ".join(words)
        self.actions, choosing = [], []
        self.skip, self.left = 0, None      # None: for ever
        for word in words:
            name, equals, value = word.partition("=")
            if name in ACTIONS:
                self.actions.append((ACTIONS[name], self._value(name, value if equals else None)))
            elif word == "once":
                self.left = 1
            elif name == "times" and equals:
                self.left = number(value)
            elif name == "skip" and equals:
                self.skip = number(value)
            else:
                choosing.append(word)
        if not self.actions:
            raise Bad(f"what shall happen? {', '.join(ACTIONS)}")
        self.match = Match(choosing)
        self.instead = any(function.instead for function, _ in self.actions)

    @staticmethod
    def _value(name, value):
        convert = ACTIONS[name].convert
        if (convert is None) != (value is None):
            raise Bad(f"{name}: {'takes no value' if convert is None else 'needs a value'}")
        return convert(value) if convert else None

    def due(self, request, port):
        """Whether it strikes this command; counts it if so."""
        if self.left == 0 or not self.match.fits(request.name, request.group, about(request, port)):
            return False
        if self.skip:
            self.skip -= 1
            return False
        if self.left is not None:
            self.left -= 1
        return True

    def strike(self, reply):
        for function, value in self.actions:
            function(reply, value)


def about(request, port):
    return {**request.fields, "on": port, "qid": request.queue}
