#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A host with 80 subsystems of 450 namespaces, as a copy of its /sys: one look with few descriptors and little memory.

In each subsystem one namespace is missing. Expected by number, then by UUID.
"""

import os
import resource
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SUBSYSTEMS, NAMESPACES = 80, 450
DESCRIPTORS = 32
ADDRESS_SPACE = 400 << 20       # bytes; the sanitizers' builds need more than any limit
MISSING = 321                   # the namespace that is not there


def uuid_of(subsystem, nsid):
    return f"1b4e28ba-2fa1-11d2-{subsystem:04d}-{nsid:012d}"


def nqn_of(subsystem):
    """It contains the UUID of a namespace of another subsystem, which must not be taken for an identity."""
    return f"nqn.2014-08.org.example:{uuid_of((subsystem + 1) % SUBSYSTEMS, MISSING)}"


def roomy(directory):
    """That one, in memory, if all those files find room in it: each takes a page there. Else None: the usual place."""
    try:
        room = os.statvfs(directory)
    except OSError:
        return None
    enough = room.f_bavail * room.f_frsize > 3 << 30 and room.f_favail > 1 << 20
    return directory if enough and os.access(directory, os.W_OK) else None


class Machine:
    """The files of /sys that matter, with two controllers a subsystem."""

    def __init__(self, root):
        self.root = root
        for name in ("nvme", "nvme-subsystem", "block"):
            (root / "class" / name).mkdir(parents=True)
        for subsystem in range(SUBSYSTEMS):
            self.add_subsystem(subsystem)

    def put(self, directory, **attributes):
        os.makedirs(directory, exist_ok=True)
        for name, value in attributes.items():
            fd = os.open(f"{directory}/{name}", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(fd, f"{value}\n".encode())
            os.close(fd)

    def add_subsystem(self, number):
        devices = self.root / "devices/virtual"
        subsystem = devices / f"nvme-subsystem/nvme-subsys{number}"
        self.put(subsystem, subsysnqn=nqn_of(number), subsystype="nvm")
        (self.root / f"class/nvme-subsystem/nvme-subsys{number}").symlink_to(
            f"../../devices/virtual/nvme-subsystem/nvme-subsys{number}")
        ctrls = [2 * number, 2 * number + 1]
        for ctrl in ctrls:
            directory = devices / f"nvme-fabrics/ctl/nvme{ctrl}"
            self.put(directory, subsysnqn=nqn_of(number), state="live", cntrltype="io", cntlid=ctrl, queue_count=3,
                     transport="tcp", hostnqn="nqn.2014-08.org.example:host")
            (self.root / f"class/nvme/nvme{ctrl}").symlink_to(f"../../devices/virtual/nvme-fabrics/ctl/nvme{ctrl}")
            (subsystem / f"nvme{ctrl}").symlink_to(f"../../nvme-fabrics/ctl/nvme{ctrl}")
        for nsid in range(1, NAMESPACES + 1):
            if nsid == MISSING:
                continue
            # No more than is read: there are 100,000 directories to be made.
            disk = dict(nsid=nsid, wwid=f"uuid.{uuid_of(number, nsid)}")
            self.put(subsystem / f"nvme{number}n{nsid}", size=2048, **disk)
            for ctrl in ctrls:
                self.put(devices / f"nvme-fabrics/ctl/nvme{ctrl}/nvme{number}c{ctrl}n{nsid}", hidden=1, **disk)


class Large(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = Path(tempfile.mkdtemp(prefix="nvme-nsheal-large-", dir=roomy("/dev/shm")))
        cls.sys = cls.work / "sys"
        Machine(cls.sys)
        cls.program = Path(os.environ.get("top_builddir", ".")) / "nvme-nsheal"
        symbols = subprocess.run(["nm", "-D", cls.program], capture_output=True, text=True).stdout
        cls.sanitized = "__asan_" in symbols

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.work)

    def limit(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
        if not self.sanitized:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    def status(self, lines_of):
        configuration = self.work / "c.conf"
        configuration.write_text("".join(
            f"[subsystem s{subsystem}]\nnqn = {nqn_of(subsystem)}\n" + lines_of(subsystem)
            for subsystem in range(SUBSYSTEMS)))
        configuration.chmod(0o644)
        done = subprocess.run([self.program, "status", "--config", configuration, "--sysroot", self.sys],
                              capture_output=True, text=True, preexec_fn=self.limit)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        return done.stdout

    def one_missing_in_each(self, out, name_of):
        for subsystem in range(SUBSYSTEMS):
            with self.subTest(subsystem=subsystem):
                self.assertRegex(out, rf"(?m)^s{subsystem} .* {NAMESPACES - 1} of {NAMESPACES} present, 2 of 2 controllers live")
                self.assertRegex(out, rf"(?m){name_of(subsystem)} .*\bmissing\b")
        self.assertEqual(len(out.splitlines()), 2 * SUBSYSTEMS + 1)

    def test_by_number(self):
        out = self.status(lambda subsystem: f"namespace = nsid=1-{NAMESPACES}\n")
        self.one_missing_in_each(out, lambda subsystem: f"nsid={MISSING}")

    def test_by_uuid(self):
        out = self.status(lambda subsystem: "".join(
            f"namespace = uuid={uuid_of(subsystem, nsid)}\n" for nsid in range(1, NAMESPACES + 1)))
        self.one_missing_in_each(out, lambda subsystem: f"uuid={uuid_of(subsystem, MISSING)}")


if __name__ == "__main__":
    unittest.main()
