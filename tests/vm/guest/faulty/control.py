# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a scenario can tell the target. A new command is a function below with @command above it; `help` prints them.

Everywhere on=PORT or on=1,3 limits it to these ports' controllers; without, it is for all.
"""

from .controller import NOTICES
from .faults import ACTIONS, Fault, Match
from .subsystem import ANA_STATES, PROPERTIES, SETTINGS, Namespace
from .words import Bad, number, number_list, numbers, sort_out

COMMANDS = {}
ON = {"on": numbers}


def command(function):
    COMMANDS[function.__name__.strip("_")] = function
    return function


async def answer(subsystem, reader, writer):
    """One line in; `ok` and text, or what was wrong, out."""
    name, *words = (await reader.readline()).decode().split() or [""]
    try:
        if name not in COMMANDS:
            raise Bad("no such command; help lists them")
        result = COMMANDS[name](subsystem, words)
        text = await result if hasattr(result, "__await__") else result
        writer.write(f"ok\n{text or ''}".encode())
    except Bad as bad:
        writer.write(f"{bad}\n".encode())
    except OSError as error:
        writer.write(f"{error.strerror}\n".encode())
    writer.close()


def lines(items):
    return "".join(f"{item}\n" for item in items)


# --- namespaces -----------------------------------------------------------------------------------------------------

@command
def map_(subsystem, words):
    """NSID[,N-M] [uuid=|nguid=|eui64=HEX, 0, none] [size=64M] [group=1] [csi=0] [private=PORT] [silent]: namespaces"""
    (nsids,), properties, flags = sort_out(words, 1, {**PROPERTIES, "private": number}, ("silent",))
    port = properties.pop("private", None)
    if port is not None and port not in subsystem.ports:
        raise Bad(f"private={port}: no such port")
    for nsid in number_list(nsids):
        if not 0 < nsid < 0xffffffff:
            raise Bad(f"{nsid}: not an NSID")
        if any(subsystem.namespace(nsid, p) for p in ([port] if port else subsystem.ports)):
            raise Bad(f"{nsid} is mapped")
        subsystem.namespaces[nsid, port] = Namespace(nsid, port, properties)
        changed(subsystem, nsid, port, flags)


@command
def unmap(subsystem, words):
    """NSID[,N-M] [private=PORT] [silent]: they are gone"""
    (nsids,), values, flags = sort_out(words, 1, {"private": number}, ("silent",))
    port = values.get("private")
    for nsid in number_list(nsids):
        if subsystem.namespaces.pop((nsid, port), None) is None:
            raise Bad(f"{nsid} is not mapped")
        changed(subsystem, nsid, port, flags)


@command
def change(subsystem, words):
    """NSID[,N-M] [properties as of map] [on=] [silent]: others from now on; with on= the controllers differ"""
    (nsids,), properties, flags = sort_out(words, 1, {**PROPERTIES, **ON}, ("silent",))
    on = properties.pop("on", None)
    ports = subsystem.chosen_ports(on) if on else None
    for nsid in number_list(nsids):
        spaces = [space for (n, _), space in subsystem.namespaces.items() if n == nsid]
        if not spaces:
            raise Bad(f"{nsid} is not mapped")
        for space in spaces:
            space.change(properties, ports)
        changed(subsystem, nsid, None, flags, on)


def changed(subsystem, nsid, private, flags, on=None):
    """To whom it may concern: log 04h, and a notice unless `silent`."""
    for controller in list(subsystem.controllers):
        if private in (None, controller.port) and (on is None or on(controller.port)):
            controller.changed.add(nsid)
            if "silent" not in flags:
                controller.notify("ns")


@command
def ana(subsystem, words):
    """GROUP STATE [on=] [silent]: optimized, non-optimized, inaccessible, persistent-loss, change"""
    (group, state), values, flags = sort_out(words, 2, ON, ("silent",))
    if state not in ANA_STATES:
        raise Bad(f"{state}: one of {', '.join(ANA_STATES)}")
    subsystem.ana_changes += 1
    for port in subsystem.chosen_ports(values.get("on")):
        subsystem.ana[port][number(group)] = state
        if "silent" not in flags:
            notify_all(subsystem, "ana", lambda other, port=port: other == port)


# --- notices --------------------------------------------------------------------------------------------------------

@command
def notices(subsystem, words):
    """on|off [on=]: off drops every one, whatever feature 0Bh says"""
    (how,), values, _ = sort_out(words, 1, ON)
    ports = subsystem.chosen_ports(values.get("on"))
    if how not in ("on", "off"):
        raise Bad(f"{how}: on or off")
    (subsystem.notices_off.update if how == "off" else subsystem.notices_off.difference_update)(ports)


@command
def mask(subsystem, words):
    """ns|ana [on=]: as if one had been sent and its log never read: none goes until it is, with RAE 0"""
    kind, on = kind_and_ports(words)
    for controller in subsystem.controllers:
        if on is None or on(controller.port):
            controller.masked.add(kind)


@command
def notify(subsystem, words):
    """ns|ana [on=]: a notice for nothing"""
    notify_all(subsystem, *kind_and_ports(words))


def kind_and_ports(words):
    (kind,), values, _ = sort_out(words, 1, ON)
    if kind not in NOTICES:
        raise Bad(f"{kind}: one of {', '.join(NOTICES)}")
    return kind, values.get("on")


def notify_all(subsystem, kind, on):
    for controller in list(subsystem.controllers):
        if on is None or on(controller.port):
            controller.notify(kind)


# --- faults ---------------------------------------------------------------------------------------------------------

@command
def fault(subsystem, words):
    """COMMAND [FIELD=N,M-O...] [on=] ACTION... [once|times=N] [skip=N]: prints its number"""
    made = Fault(words)
    name = max(subsystem.faults, default=0) + 1
    subsystem.faults[name] = made
    return f"{name}\n"


@command
def clear(subsystem, words):
    """[NUMBER...]: these faults are over, or all. What was never answered stays so"""
    for name in [number(word) for word in words] or list(subsystem.faults):
        if subsystem.faults.pop(name, None) is None:
            raise Bad(f"{name}: no such fault")


@command
def faults(subsystem, words):
    """those in force, and how often they will strike yet"""
    sort_out(words)
    return lines(f"{name}: {fault.text}{'' if fault.left is None else f' ({fault.left} left)'}"
                 for name, fault in subsystem.faults.items())


# --- settings -------------------------------------------------------------------------------------------------------

@command
def set_(subsystem, words):
    """NAME=VALUE... [on=]: fields of Identify Controller and others; the kernel reads most only when it connects"""
    _, values, _ = sort_out(words, 0, {**{name: convert for name, (convert, _) in SETTINGS.items()}, **ON})
    for port in subsystem.chosen_ports(values.pop("on", None)):
        subsystem.settings[port].update(values)


@command
def effects(subsystem, words):
    """OPCODE BITS [on=]: log 05h for an admin command, or for I/O at 256 + OPCODE; `set lpa=4`: no such log"""
    (opcode, bits), values, _ = sort_out(words, 2, ON)
    if not 0 <= number(opcode) < 512:
        raise Bad(f"{opcode}: not an opcode")
    for port in subsystem.chosen_ports(values.get("on")):
        subsystem.effects[port][number(opcode)] = number(bits) & 0xffffffff


# --- ports ----------------------------------------------------------------------------------------------------------

@command
def close(subsystem, words):
    """[on=]: connections there end, and no new ones are accepted"""
    for port in ports_of(subsystem, words):
        port.close()


@command
async def open_(subsystem, words):
    """[on=]: they are accepted again"""
    for port in ports_of(subsystem, words):
        await port.open()


@command
def drop(subsystem, words):
    """[on=]: connections there end; the host reconnects"""
    for port in ports_of(subsystem, words):
        port.drop()


def ports_of(subsystem, words):
    _, values, _ = sort_out(words, 0, ON)
    return [subsystem.ports[name] for name in subsystem.chosen_ports(values.get("on"))]


# --- what there is, and was -----------------------------------------------------------------------------------------

@command
def trace(subsystem, words):
    """[COMMAND [FIELD=N...] [on=]]: what came and what became of it; also `notice [type=ns] [outcome=sent]`"""
    return lines(chosen(subsystem, words))


@command
def count(subsystem, words):
    """as trace: how many"""
    return f"{len(chosen(subsystem, words))}\n"


def chosen(subsystem, words):
    match = Match(words or ["any"])
    return [entry for entry in subsystem.trace if match.fits(entry.name, entry.group, entry.fields)]


@command
def forget(subsystem, words):
    """trace and count start anew"""
    sort_out(words)
    subsystem.trace.clear()


@command
def namespaces(subsystem, words):
    """[on=]: NSIDs, as the controllers there should list them"""
    _, values, _ = sort_out(words, 0, ON)
    return lines(sorted({space.nsid for port in subsystem.chosen_ports(values.get("on"))
                         for space in subsystem.listed(port)}))


@command
def controllers(subsystem, words):
    """one line each: port, number, queues, notices wanted, notices masked, host"""
    sort_out(words)
    return lines(f"on={c.port} cntlid={c.cntlid} queues={len(c.queues)} notices={c.features[0x0b]:#x} "
                 f"masked={','.join(sorted(c.masked)) or '-'} host={c.hostnqn}" for c in subsystem.controllers)


@command
def ports(subsystem, words):
    """one line each: number, address, whether it is open"""
    sort_out(words)
    return lines(f"{name} {port.host}:{port.service} {'open' if port.server else 'closed'}"
                 for name, port in subsystem.ports.items())


@command
def help_(_, words):
    """this"""
    sort_out(words)
    return (lines(f"{name} {function.__doc__}" for name, function in COMMANDS.items()) + "\nactions of faults\n" +
            lines(f"{name}{'' if function.__doc__.startswith('=') else ': '}{function.__doc__}"
                  for name, function in ACTIONS.items()))
