"""Reads the dynamic section and program headers of a 64-bit little-endian ELF file (elf(5))."""

import pathlib
import struct

PT_DYNAMIC, PT_GNU_STACK, PT_GNU_RELRO = 2, 0x6474E551, 0x6474E552
DT_STRTAB, DT_SYMTAB, DT_RPATH, DT_BIND_NOW, DT_RUNPATH, DT_FLAGS, DT_FLAGS_1 = 5, 6, 15, 24, 29, 30, 0x6FFFFFFB
PT_LOAD, PF_X, DF_BIND_NOW, DF_1_NOW, ET_DYN, SHT_DYNSYM = 1, 1, 8, 1, 3, 11


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(6) == b"\x7fELF\x02\x01"


class Elf:
    def __init__(self, path):
        self.data = pathlib.Path(path).read_bytes()
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path} is not a 64-bit little-endian ELF file")
        self.type = struct.unpack_from("<H", self.data, 16)[0]
        program_at, section_at = struct.unpack_from("<QQ", self.data, 32)
        program_size, programs, section_size, sections = struct.unpack_from("<HHHH", self.data, 54)
        # type, flags, offset, address, physical address, size in the file
        self.segments = [struct.unpack_from("<IIQQQQ", self.data, program_at + i * program_size) for i in range(programs)]
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", self.data, section_at + i * section_size) for i in range(sections)]
        self.dynamic = list(self._dynamic())

    def _dynamic(self):
        for kind, _, offset, _, _, size in self.segments:
            if kind == PT_DYNAMIC:
                for tag, value in struct.iter_unpack("<qQ", self.data[offset : offset + size]):
                    if tag == 0:
                        return
                    yield tag, value

    def _offset(self, address):
        for kind, _, offset, start, _, size in self.segments:
            if kind == PT_LOAD and start <= address < start + size:
                return offset + address - start
        raise ValueError("the address is outside the file")

    def _text(self, at):
        return self.data[at : self.data.index(b"\0", at)].decode()

    def run_paths(self):
        """Entries of RPATH and RUNPATH, empty ones included."""
        tables = [self._offset(value) for tag, value in self.dynamic if tag == DT_STRTAB]
        paths = [self._text(tables[0] + value) for tag, value in self.dynamic if tag in (DT_RPATH, DT_RUNPATH)]
        return [entry for path in paths for entry in path.split(":")]

    def binds_now(self):
        flags = dict(self.dynamic)
        return DT_BIND_NOW in flags or bool(flags.get(DT_FLAGS, 0) & DF_BIND_NOW or flags.get(DT_FLAGS_1, 0) & DF_1_NOW)

    def has_relro(self):
        return any(segment[0] == PT_GNU_RELRO for segment in self.segments)

    def stack_flags(self):
        return [segment[1] for segment in self.segments if segment[0] == PT_GNU_STACK]

    def undefined(self):
        """Symbols that shared libraries must provide."""
        names = set()
        for _, kind, _, _, offset, size, link, _, _, _ in self.sections:
            if kind == SHT_DYNSYM:
                strings = self.sections[link][4]
                for name, _, _, section, _, _ in struct.iter_unpack("<IBBHQQ", self.data[offset : offset + size]):
                    if section == 0 and name:
                        names.add(self._text(strings + name))
        return names
