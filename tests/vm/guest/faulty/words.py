# SPDX-License-Identifier: LGPL-2.1-or-later
"""The words that scenarios write. What is not understood is refused: a typing error must not become a missing fault."""

import uuid


class Bad(Exception):
    """A command that is refused; the message is for a person."""


def number(text):
    try:
        return int(text, 0)
    except ValueError:
        raise Bad(f"{text}: not a number") from None


def ranges(text):
    for part in text.split(","):
        first, dash, last = part.partition("-")
        found = range(number(first), number(last if dash else first) + 1)
        if not found:
            raise Bad(f"{part}: an empty range")
        yield found


def numbers(text):
    """1,3,7-9 as a question: is this number among them?"""
    found = list(ranges(text))
    return lambda value: any(value in r for r in found)


def number_list(text):
    """1,3,7-9 as a list."""
    return [value for found in ranges(text) for value in found]


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        raise Bad(f"{text}: not a number of seconds") from None
    if not 0 <= value < 1e6:
        raise Bad(f"{text}: not a number of seconds")
    return value


def size(text):
    """Bytes, with K, M or G."""
    factor = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return number(text if factor == 1 else text[:-1]) * factor


def identifier(length):
    """So many bytes in hexadecimal, with dashes or not; `0`: all zero; `none`: the identifier is not there."""
    def convert(text):
        if text == "none":
            return None
        if text == "0":
            return bytes(length)
        try:
            value = bytes.fromhex(text.replace("-", ""))
        except ValueError:
            value = b""
        if len(value) != length:
            raise Bad(f"{text}: not {length} bytes in hexadecimal")
        return value
    return convert


def default_uuid(nsid):
    """That of uuid_of NSID in lib.sh."""
    return uuid.UUID(f"5ca1ab1e-0000-4000-8000-{nsid:012d}").bytes


def sort_out(words, positional=0, keys=None, flags=()):
    """Splits the words of a command into positional ones, converted `key=value`, and flags."""
    plain, values, given = [], {}, set()
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in (keys or {}):
            values[key] = keys[key](value)
        elif word in flags:
            given.add(word)
        elif not equals and len(plain) < positional:
            plain.append(word)
        else:
            raise Bad(f"{word}: not understood")
    if len(plain) < positional:
        raise Bad("too few words")
    return plain, values, given
