"""Where a store may stand: which file systems and folders lose what SQLite writes to them.

Locks and the log's shared memory must hold for everybody who has the file open, and network file systems promise
neither; a program that synchronises a folder carries database and log to another machine one by one, and back
(sqlite.org/howtocorrupt.html, sqlite.org/wal.html).
"""

from __future__ import annotations

import os
import re
import struct
import sys
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from ledgerstone.errors import StoreError

# File systems whose other end is another machine, by the types that Linux and macOS give them.
REMOTE: Final = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb2", "smb3", "smbfs", "ncpfs", "afs", "coda", "ceph", "glusterfs", "lustre"),
        *("gpfs", "beegfs", "orangefs", "pvfs2", "panfs", "wekafs", "davfs", "webdav", "afpfs", "ftp", "fuse"),
        *("macfuse", "osxfuse", "fusefs"),
    }
)
# Folders of a host that a virtual machine or a container shares with it: what one of them locks, or has in its memory,
# the other does not see.
SHARED: Final = frozenset(
    {
        *("9p", "virtiofs", "applevirtiofs", "vboxsf", "vboxvfs", "vmhgfs", "hgfs", "prl_fs", "prlufs", "drvfs"),
        *("fakeowner", "osxfs"),
    }
)
# Those by which a machine or a sandbox is given the disk that it starts from, and nothing else may be below it.
_WHOLE: Final = frozenset({"virtiofs", "9p"})
# File systems in user space that are on a disk of this machine; every other one is not known to be.
LOCAL_FUSE: Final = frozenset(
    {
        *("apfs", "bindfs", "cryfs", "dwarfs", "encfs", "exfat", "exfat-fuse", "ext2fs", "fuse-ext2", "fuse-overlayfs"),
        *("fuse2fs", "gocryptfs", "lxcfs", "mergerfs", "ntfs", "ntfs-3g", "ntfs3", "portal", "securefs"),
        *("squashfuse", "unionfs", "unionfs-fuse", "veracrypt", "zfs-fuse"),
    }
)
# Names of folders that programs which synchronise them make, and what some append to them.
_SYNCED: Final = re.compile(
    r"(Dropbox|OneDrive|iCloud ?Drive|Google ?Drive|Nextcloud|ownCloud|Syncthing|MEGA|MEGAsync"
    r"|pCloud ?Drive|Proton ?Drive|Seafile|SynologyDrive|Box Sync|Insync)(?: ?\(.*| - .*)?"
)
# Folders of macOS in which all is synchronised: iCloud Drive, and what other programs put under its roof.
_SYNCED_PARTS: Final = {"Mobile Documents": "iCloud Drive", "CloudStorage": "a cloud's program"}
# What such programs leave at the top of a folder.
_MARKS: Final = {
    ".stfolder": "Syncthing",
    ".dropbox": "Dropbox",
    ".dropbox.cache": "Dropbox",
    ".owncloudsync.log": "ownCloud",
    ".nextcloudsync.log": "Nextcloud",
    ".tmp.drivedownload": "Google Drive",
    ".tmp.driveupload": "Google Drive",
    ".849C9593-D756-4E56-8D6E-42412F2A707B": "OneDrive",
    ".resilio-sync": "Resilio Sync",
    ".sync/ID": "Resilio Sync",
}
_ESCAPED: Final = re.compile(r"\\([0-7]{3})")
MOUNTS: Final = Path("/proc/self/mountinfo")
# What macOS says of a file system (statfs(2), with 64-bit inodes): its flags, and its type's name.
_FLAGS_AT: Final = 64
_TYPE_AT: Final = 72
_TYPE_BYTES: Final = 16
_MNT_LOCAL: Final = 0x1000
_STATFS_BYTES: Final = 4096


class Carrier(NamedTuple):
    """The file system that carries a path: its type, where it is mounted, and whether the system calls it local."""

    kind: str
    point: str | None = None
    local: bool | None = None


def check(path: Path) -> None:
    """Refuse a place where a store would be lost or forked, with StoreError; one that cannot be told is let pass."""
    found = peril(path)
    if found is not None:
        raise StoreError(
            f"{path} {found}",
            hint="put the store on a disk of this machine (LEDGERSTONE_STORE); to read it where it is: --read-only; "
            "to use it there whatever comes of it: LEDGERSTONE_STORE_ON=anywhere",
        )


def peril(path: Path) -> str | None:
    """What is wrong with the place of a path, as the end of a sentence, or None."""
    real = Path(os.path.realpath(path))
    found = carrier(real)
    if found is not None and is_remote(found):
        return f"is on a file system of type {found.kind}, where locks and shared memory do not hold"
    program = synced(real) or marked(real)
    if program is not None:
        return f"is in a folder that {program} synchronises, database and log each by itself"
    return None


def carrier(real: Path) -> Carrier | None:
    """The file system that carries an absolute path, as far as this system tells; None where it does not."""
    return told(_statfs(real)) if sys.platform == "darwin" else carried(mounts(), str(real))


def _statfs(real: Path) -> bytes:  # pragma: no cover - macOS alone has it in this form
    """What macOS says of the file system below a path, or below the first folder above it that is there."""
    import ctypes  # noqa: PLC0415 - nobody else pays for it

    held = ctypes.create_string_buffer(_STATFS_BYTES)
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        ask = getattr(library, "statfs$INODE64", None) or library.statfs
        for each in (real, *real.parents):
            if ask(os.fsencode(each), held) == 0:
                return held.raw
    return b""


def told(statfs: bytes) -> Carrier | None:
    """A file system by what macOS says of it; None when that is nothing."""
    name = statfs[_TYPE_AT : _TYPE_AT + _TYPE_BYTES].partition(b"\0")[0].decode("ascii", "replace")
    if not name:
        return None
    (flags,) = struct.unpack_from("=I", statfs, _FLAGS_AT)
    return Carrier(name, local=bool(flags & _MNT_LOCAL))


def mounts() -> str:
    """What this process has mounted, as Linux lists it; empty where it does not say."""
    try:
        return os.fsdecode(MOUNTS.read_bytes())
    except OSError:
        return ""


def carried(mountinfo: str, path: str) -> Carrier | None:
    """The file system that carries an absolute path, by proc_pid_mountinfo(5); None when none does.

    The deepest mount point above the path counts, and of several mounts at one point the last.
    """
    deepest, found = -1, None
    for line in mountinfo.splitlines():
        before, dash, after = line.partition(" - ")
        fields = before.split(" ")
        if not dash or len(fields) < len(("id", "parent", "device", "root", "point")):
            continue
        point = _ESCAPED.sub(lambda spelled: chr(int(spelled[1], 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= deepest:
            deepest, found = len(point), Carrier(after.split(" ")[0], point)
    return found


def is_remote(found: Carrier) -> bool:
    """Whether a file system is, or may be, on another machine, or shared with the host of this one.

    virtiofs or 9p below everything is the disk that a virtual machine or a sandbox was given for its own.
    """
    kind = found.kind.lower()
    if kind in _WHOLE and found.point == "/":
        return False
    family, _, program = kind.partition(".")
    return kind in REMOTE | SHARED or (family == "fuse" and program not in LOCAL_FUSE) or found.local is False


def synced(path: PurePath) -> str | None:
    """Which program synchronises a path, as far as the names of the folders above it say; None when they say none."""
    for part in path.parts[:-1]:
        if part in _SYNCED_PARTS:
            return _SYNCED_PARTS[part]
        found = _SYNCED.fullmatch(part)
        if found is not None:
            return found[1]
    return None


def marked(path: Path) -> str | None:
    """Which program synchronises a path, as far as its marks in the folders above it say; None without any."""
    for folder in path.parents:
        for mark, program in _MARKS.items():
            # In a home folder, .dropbox is the folder of the program's own settings.
            if os.path.lexists(folder / mark) and not (mark == ".dropbox" and (folder / mark).is_dir()):
                return program
    return None
