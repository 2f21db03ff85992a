#!/usr/bin/env python3
"""aged.py DB REVISION MIB - makes the database of an etcd that is stopped look old: its latest revision becomes
REVISION, and its file grows to MIB, without the hours of writes that this takes. It stays a whole database:
bbolt, whose pages are little-endian and whose revisions, as keys, are not."""
import os
import re
import struct
import sys

MAGIC = 0xED0CDAED
META = struct.Struct('<IIII4QQ')  # magic, version, page size, flags, root, sequence, freelist, pages, txid
HEADER = 16


def checksum(data):
    """FNV-1a, of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 % (1 << 64)
    return value


def main():
    path, revision, mib = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    with open(path, 'r+b') as file:
        data = bytearray(file.read())
        keys = [(m.start(), m.group(1)) for m in re.finditer(rb'(?=(\0{5}[^_]{3})_\0{8})', data, re.S)]
        latest = max(key for _, key in keys)
        for at, key in keys:
            if key == latest:
                data[at:at + 8] = struct.pack('>Q', revision)
        size = struct.unpack_from('<I', data, HEADER + 8)[0]
        for page in range(2):
            meta = list(META.unpack_from(data, page * size + HEADER))
            assert meta[0] == MAGIC
            meta[7] = (mib << 20) // size
            packed = META.pack(*meta)
            data[page * size + HEADER:page * size + HEADER + META.size + 8] = packed + struct.pack('<Q', checksum(packed))
        file.seek(0)
        file.write(data)
    os.truncate(path, mib << 20)


main()
