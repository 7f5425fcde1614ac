# SPDX-License-Identifier: LGPL-2.1-or-later
"""An NVMe/TCP target that misbehaves when it is told to. tests/vm/FAULTY.md describes it."""
