# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NVMe/TCP target that misbehaves when it is told to.

python3 -m faulty run --nqn NQN --control SOCKET NUMBER=ADDRESS:SERVICE...     the target, and its ports
python3 -m faulty ctl SOCKET COMMAND...         tells a running one what to do; `help` lists it
"""

import socket
import sys

ANSWER_LIMIT = 30           # seconds; the emulated machine may be slow, but the target never is


def ctl(path, words):
    """One command to the target behind the socket; its text to stdout, what it refuses to stderr."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(ANSWER_LIMIT)
        connection.connect(path)
        connection.sendall(" ".join(words).encode() + b"\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b"")).decode()
    verdict, _, text = answer.partition("\n")
    if verdict != "ok":
        sys.exit(f"{' '.join(words)}: {verdict or 'no answer'}")
    sys.stdout.write(text)


def run(arguments):
    # Only here: a scenario calls ctl often, and under emulation asyncio alone takes longer to import than ctl to run.
    import argparse
    import asyncio

    from .server import serve

    parser = argparse.ArgumentParser(prog="faulty run", description=__doc__)
    parser.add_argument("--nqn", required=True)
    parser.add_argument("--control", required=True, metavar="SOCKET")
    parser.add_argument("addresses", nargs="+", metavar="NUMBER=ADDRESS:SERVICE")
    options = parser.parse_args(arguments)
    asyncio.run(serve(options.nqn, options.control, options.addresses))


def main(arguments):
    if arguments[:1] == ["run"]:
        run(arguments[1:])
    elif arguments[:1] == ["ctl"] and len(arguments) > 2:
        ctl(arguments[1], arguments[2:])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
